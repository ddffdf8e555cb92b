/**
 * @module
 * Programs as child processes with a log each. The number of every running one is a file in
 * `pids` of the folder, so that whoever started the tests can end what they left.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';

export interface ProgramOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Where its log goes. */
  readonly folder: string;
  /** Whether it leads a process group, so that by force it is ended with all that it started. */
  readonly group?: boolean;
  /** Whether it is ready, asked again until it is; a rejection counts as no. */
  readonly ready: () => Promise<boolean>;
}

export interface RunningProgram {
  readonly pid: number;
  /** All that it has written so far. */
  log(): string;
  /** Its exit code, once it has ended; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Ends it and waits until it has. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Asks until the answer is yes.
 *
 * @param what named by the error
 * @param seconds how long to ask, on a machine that is busy
 * @throws Error with the last reason why not
 */
export const until = async <T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  seconds = 60,
): Promise<T> => {
  const end = performance.now() + seconds * 1_000;
  let reason: unknown = 'the answer was always no';
  while (performance.now() < end) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      reason = error;
    }
    await pause(250);
  }
  const why = reason instanceof Error ? reason.message : String(reason);
  throw new Error(`waited ${seconds} s in vain for ${what}: ${why}`);
};

/** Starts a program and waits until it is ready. Its log continues one of the same name. */
export const startProgram = async (options: ProgramOptions): Promise<RunningProgram> => {
  const { name, command, args, folder } = options;
  const pids = join(folder, 'pids');
  mkdirSync(pids, { recursive: true });
  const logFile = join(folder, `${name}.log`);
  const output = openSync(logFile, 'a');
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, HOME: folder, ...options.env },
    stdio: ['ignore', output, output],
    cwd: folder,
    detached: options.group === true,
  });
  closeSync(output);
  const log = (): string => readFileSync(logFile, 'utf8');
  await once(child, 'spawn');
  const pid = child.pid ?? 0;
  const note = join(pids, String(pid));
  writeFileSync(note, name);
  let ending: string | undefined;
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code, signal) => {
      ending = `code ${code}, signal ${signal}`;
      rmSync(note, { force: true });
      resolve(code);
    });
  });
  await until(`${name} to be ready`, async () => {
    if (ending === undefined) return options.ready();
    return 'ended';
  }).catch((error) => {
    child.kill('SIGKILL');
    throw new Error(`${error.message}\n${log().slice(-4_000)}`);
  });
  if (ending !== undefined) throw new Error(`${name} ended (${ending}):\n${log().slice(-4_000)}`);
  return {
    pid,
    log,
    ended,
    stop: async (signal = 'SIGTERM') => {
      if (ending !== undefined) return;
      child.kill(signal);
      // Whatever does not end when it is asked to would hold up the tests.
      const kill = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(kill);
    },
  };
};

/** Loopback ports that nobody listens on: all of them at once, so that they are distinct. */
export const freePorts = async (count: number): Promise<readonly number[]> => {
  const servers: Server[] = [];
  for (let index = 0; index < count; index += 1) {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
  }
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
};
