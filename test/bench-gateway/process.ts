/**
 * @module
 * Processes that serve HTTP: starting one, waiting until it does, and ending it.
 */
import { spawn } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A command and its arguments. */
export type Words = readonly [command: string, ...args: string[]];

/** A process that serves. */
export interface Served {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** A port that nobody listens on now. */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

const answers = (url: string): Promise<boolean> =>
  fetch(url, { method: 'OPTIONS' }).then(
    async (response) => {
      await response.body?.cancel();
      return true;
    },
    () => false,
  );

/**
 * Starts a process and resolves with its URL, once it has said or serves it.
 *
 * @param port where it will serve; without, it says so on stderr
 */
export const startProcess = async (
  [command, ...args]: Words,
  env: NodeJS.ProcessEnv,
  port?: number,
): Promise<Served> => {
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
