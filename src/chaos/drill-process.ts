/**
 * @module
 * A server of a drill as a child process: started, waited for, ended, and never left behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '../resilience/clock.ts';

/** How a server ended. */
export interface ServerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** From the signal that told it to end until it had. */
  readonly seconds: number;
}

/** A server that serves. */
export interface ServerProcess {
  /** Of its MCP endpoint. */
  readonly url: string;
  /** Resolves when it has ended, however that came. */
  readonly ended: Promise<unknown>;
  /** Messages that it sends to its parent, if it sends any. */
  onMessage(listener: (message: unknown) => void): void;
  /** Ends it with SIGTERM, and after 8 s with SIGKILL. A second call gives what the first did. */
  stop(): Promise<ServerEnd>;
}

/** What to start. */
export interface ServerCommand {
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const START_TIMEOUT = 30_000;
const END_TIMEOUT = 8_000;

const alive = new Set<ChildProcess>();
// Whatever ends this process, a child does not outlive it.
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** The last lines of what a process said. */
const tail = (text: string): string => text.trim().split('\n').slice(-6).join('\n');

/**
 * Starts a server and waits until it says where it serves.
 *
 * @throws Error when it ends or says nothing for 30 s, with what it said; the reason of the
 * signal when that aborts
 */
export const startServer = async (options: ServerCommand): Promise<ServerProcess> => {
  const { command, env, clock, signal } = options;
  signal.throwIfAborted();
  const [file = '', ...args] = command;
  const child = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  alive.add(child);
  let said = '';
  const end = new Promise<Omit<ServerEnd, 'seconds'>>((resolve) => {
    child.once('error', (error) => {
      said += error.message;
      resolve({ code: null, signal: null });
    });
    child.once('exit', (code, killed) => resolve({ code, signal: killed }));
  });
  void end.then(() => alive.delete(child));

  let stopping: Promise<ServerEnd> | undefined;
  const stop = async (): Promise<ServerEnd> => {
    const told = clock.now();
    child.kill('SIGTERM');
    const killer = clock.setTimer(END_TIMEOUT, () => child.kill('SIGKILL'), true);
    const ended = await end;
    killer.cancel();
    return { ...ended, seconds: (clock.now() - told) / 1_000 };
  };

  const url = await new Promise<string>((resolve, reject) => {
    const fail = (why: unknown) => {
      child.kill('SIGKILL');
      reject(why);
    };
    const onAbort = () => fail(signal.reason);
    const timer = clock.setTimer(
      START_TIMEOUT,
      () => fail(new Error(`the server said nothing of where it serves:\n${tail(said)}`)),
      true,
    );
    signal.addEventListener('abort', onAbort, { once: true });
    const settle = () => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
    };
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(-20_000);
      const [, found] = /serves MCP at (\S+)\n/.exec(said) ?? [];
      if (found === undefined) return;
      settle();
      resolve(found);
    });
    void end.then(({ code }) => {
      settle();
      reject(new Error(`the server did not start (exit code ${code}):\n${tail(said)}`));
    });
  });
  return {
    url,
    ended: end,
    onMessage: (listener) => void child.on('message', listener),
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
};
