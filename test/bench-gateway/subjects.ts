/**
 * @module
 * What is measured: no proxy, ours, and those from npm, each in every arrangement that it offers.
 */
import { join } from 'node:path';
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import { freePort, startProcess, type Words } from './process.ts';

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

/** Ours, and no proxy at all. */
export const OURS = 'mcp-resilience';
export const DIRECT = 'direct';

/** A subject as it runs. */
export interface Running {
  /** How its client reaches it. */
  readonly address: UpstreamAddress;
  /** Of the proxy; undefined where there is none, or the client starts it. */
  readonly pid?: number | undefined;
  stop(): Promise<void>;
}

/** The server that the subjects stand in front of, in either way, and where the peers are. */
export interface Site {
  /** Of the server as it runs on HTTP. */
  readonly url: string;
  /** Start the server on stdio, for those that start it themselves. */
  readonly words: Words;
  /** Folder that the peers are installed in. */
  readonly peers: string;
}

/** A subject in one arrangement. */
export interface Subject {
  readonly name: typeof DIRECT | typeof BARE | typeof OURS | keyof typeof PEERS;
  /** The words that start it in front of a server; undefined for a direct connection. */
  words(site: Site, port: number): Words | undefined;
}

const here = import.meta.dirname;
const node = process.execPath;
const CLI = join(here, '..', '..', 'src', 'cli.ts');

/** Subjects of an arrangement. */
export const subjectsOf = ({ upstream, front }: Arrangement): readonly Subject[] => {
  const toHttp = upstream === 'http';
  const at = (port: number) => ['--port', String(port)];
  const target = ({ url, words }: Site) => (toHttp ? ['--url', url] : ['--', ...words]);
  const own = (name: string, site: Site, ...args: readonly string[]): Words => {
    return [node, join(here, 'peers', name), ...args, ...target(site)];
  };
  const program = ({ peers }: Site, ...path: string[]) => join(peers, 'node_modules', ...path);

  const bare: Subject['words'] = (site, port) => own('bare.ts', site, ...at(port));
  const ours: Subject['words'] = (site, port) => {
    const door = front === 'http' ? ['--http', ...at(port)] : [];
    return [node, CLI, 'wrap', ...door, ...target(site)];
  };
  const proxy: Subject['words'] = (site, port) => {
    if (toHttp) return own('mcp-proxy.ts', site, ...at(port));
    const file = program(site, 'mcp-proxy', 'dist', 'bin', 'mcp-proxy.mjs');
    return [node, file, '--host', '127.0.0.1', ...at(port), ...target(site)];
  };
  const superWords: Subject['words'] = (site, port) => {
    const file = program(site, 'supergateway', 'dist', 'index.js');
    const from = toHttp
      ? ['--streamableHttp', site.url]
      : ['--stdio', site.words.join(' '), '--outputTransport', 'streamableHttp', '--stateful'];
    return [node, file, ...from, ...(toHttp ? [] : at(port)), '--logLevel', 'none'];
  };
  const fast: Subject['words'] = (site, port) =>
    own('fastmcp.ts', site, '--front', front, ...at(port));

  return [
    { name: DIRECT, words: () => undefined },
    ...(toHttp && front === 'http' ? [{ name: BARE, words: bare } as const] : []),
    { name: OURS, words: ours },
    ...(front === 'http' ? [{ name: 'mcp-proxy', words: proxy } as const] : []),
    // It has neither HTTP behind HTTP nor stdio behind stdio.
    ...(upstream !== front ? [{ name: 'supergateway', words: superWords } as const] : []),
    { name: 'fastmcp', words: fast },
  ];
};

/** Starts a subject, or only says how its client is to start it. */
export const startSubject = async (
  subject: Subject,
  { upstream, front }: Arrangement,
  site: Site,
): Promise<Running> => {
  const stop = async (): Promise<void> => {};
  const port = await freePort();
  const words = subject.words(site, port);
  if (words === undefined && upstream === 'http') {
    return { address: { kind: 'http', url: site.url, headers: {} }, stop };
  }
  const env = { PEERS: site.peers };
  if (words === undefined || front === 'stdio') {
    const [command, ...args] = words ?? site.words;
    return { address: { kind: 'stdio', command, args, env }, stop };
  }
  const started = await startProcess(words, { ...process.env, ...env }, port);
  const address = { kind: 'http', url: started.url, headers: {} } as const;
  return { address, pid: started.pid, stop: started.stop };
};
