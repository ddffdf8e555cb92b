/**
 * @module
 * What is measured: no proxy, ours, and those from npm, each in every arrangement that it offers.
 */
import { spawn } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UpstreamAddress } from '../../src/gateway/types.ts';

/** Transport of the upstream, then that of the client. */
export const ARRANGEMENTS = [
  { name: 'HTTP behind HTTP', upstream: 'http', front: 'http' },
  { name: 'stdio behind HTTP', upstream: 'stdio', front: 'http' },
  { name: 'stdio behind stdio', upstream: 'stdio', front: 'stdio' },
  { name: 'HTTP behind stdio', upstream: 'http', front: 'stdio' },
] as const;

export type Arrangement = (typeof ARRANGEMENTS)[number];

/** Packages that are compared, at the versions that are compared. */
export const PEERS = { 'mcp-proxy': '6.7.19', supergateway: '4.0.0', fastmcp: '4.20.16' } as const;

/** The least that a proxy can do (`peers/bare.ts`): a measure, and no competitor. */
export const BARE = 'bare node:http';

/** A command and its arguments. */
export type Words = readonly [command: string, ...args: string[]];

/** A subject as it runs. */
export interface Running {
  /** How its client reaches it. */
  readonly address: UpstreamAddress;
  /** Of the process to blame for its cost; undefined where there is none, or the client starts it. */
  readonly pid?: number | undefined;
  stop(): Promise<void>;
}

/** A subject in one arrangement. */
export interface Subject {
  readonly name: 'direct' | typeof BARE | 'mcp-resilience' | keyof typeof PEERS;
  /** The words that start it; undefined for a direct connection. */
  words(port: number): Words | undefined;
}

const here = import.meta.dirname;
const node = process.execPath;
const UPSTREAM = join(here, 'upstream.ts');
const CLI = join(here, '..', '..', 'src', 'cli.ts');

/** The upstream as a command line, for those that start it themselves. */
const upstreamWords: Words = [node, UPSTREAM];

/** Subjects of an arrangement. @param url of the HTTP upstream */
export const subjectsOf = (
  { upstream, front }: Arrangement,
  url: string,
  peers: string,
): readonly Subject[] => {
  const program = (...path: string[]) => join(peers, 'node_modules', ...path);
  const target = upstream === 'http' ? ['--url', url] : ['--', ...upstreamWords];
  const ours = (port: number): Words => {
    const door = front === 'http' ? ['--http', '--port', String(port)] : [];
    return [node, CLI, 'wrap', '--config', join(here, 'ours.json'), ...door, ...target];
  };
  const fast = (port: number): Words => {
    const file = join(here, 'peers', 'fastmcp.ts');
    return [node, file, '--front', front, '--port', String(port), ...target];
  };
  const proxy = (port: number): Words =>
    upstream === 'http'
      ? [node, join(here, 'peers', 'mcp-proxy.ts'), '--port', String(port), ...target]
      : [
          node,
          program('mcp-proxy', 'dist', 'bin', 'mcp-proxy.mjs'),
          '--host',
          '127.0.0.1',
          '--port',
          String(port),
          ...target,
        ];
  const bare = (port: number): Words => {
    return [node, join(here, 'peers', 'bare.ts'), '--port', String(port), ...target];
  };
  const superWords = (port: number): Words => {
    const file = program('supergateway', 'dist', 'index.js');
    const quiet = ['--logLevel', 'none'];
    return upstream === 'http'
      ? [node, file, '--streamableHttp', url, ...quiet]
      : [
          node,
          file,
          '--stdio',
          upstreamWords.join(' '),
          '--outputTransport',
          'streamableHttp',
          '--stateful',
          '--port',
          String(port),
          ...quiet,
        ];
  };
  return [
    { name: 'direct', words: () => undefined },
    ...(upstream === 'http' && front === 'http' ? [{ name: BARE, words: bare } as const] : []),
    { name: 'mcp-resilience', words: ours },
    ...(front === 'http' ? [{ name: 'mcp-proxy', words: proxy } as const] : []),
    // It has neither HTTP behind HTTP nor stdio behind stdio.
    ...(upstream !== front ? [{ name: 'supergateway', words: superWords } as const] : []),
    { name: 'fastmcp', words: fast },
  ];
};

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** Starts a process and resolves with its URL, once it has said or serves it. */
const startProcess = async (
  [command, ...args]: Words,
  env: NodeJS.ProcessEnv,
  port?: number,
): Promise<{ url: string; pid: number; stop(): Promise<void> }> => {
  const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-10_000);
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
    await exited;
    clearTimeout(timer);
  };
  for (let wait = 0; wait < 600; wait += 1) {
    const url =
      port === undefined ? /listening on (\S+)/.exec(said)?.[1] : `http://127.0.0.1:${port}/mcp`;
    if (url !== undefined && (port === undefined || (await answers(url)))) {
      return { url, pid: child.pid ?? 0, stop };
    }
    if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended: ${said}`);
    await sleep(50);
  }
  await stop();
  throw new Error(`${args.join(' ')} does not serve: ${said}`);
};

const answers = (url: string): Promise<boolean> =>
  fetch(url, { method: 'OPTIONS' }).then(
    async (response) => {
      await response.body?.cancel();
      return true;
    },
    () => false,
  );

/** Starts the HTTP upstream. */
export const startUpstream = () => startProcess([node, UPSTREAM, '--http'], process.env);

/** Starts a subject, or only says how its client is to start it. */
export const startSubject = async (
  subject: Subject,
  arrangement: Arrangement,
  url: string,
  env: Readonly<Record<string, string>>,
): Promise<Running> => {
  const stop = async (): Promise<void> => {};
  const port = await freePort();
  const words = subject.words(port);
  if (words === undefined && arrangement.upstream === 'http') {
    return { address: { kind: 'http', url, headers: {} }, stop };
  }
  if (words === undefined || arrangement.front === 'stdio') {
    const [command, ...args] = words ?? upstreamWords;
    return { address: { kind: 'stdio', command, args, env }, stop };
  }
  const started = await startProcess(words, { ...process.env, ...env }, port);
  const address = { kind: 'http', url: started.url, headers: {} } as const;
  return { address, pid: started.pid, stop: started.stop };
};
