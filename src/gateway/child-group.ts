/**
 * @module
 * Child processes in groups of their own, so that whatever they started ends with them: `npx`
 * is one process, the server that it runs another.
 */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { type Clock, sleep, type Timer } from '../resilience/clock.ts';

/** What to start. */
export interface ChildCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
}

/** Windows has no process groups: there the child alone is ended. */
const GROUPS = process.platform !== 'win32';

/** Milliseconds that each step of an orderly end may take. */
const STEP = 2_000;
/** Milliseconds between two looks at what is left of a group. */
const LOOK = 25;

const alive = new Set<ChildProcess>();

// A process that ends by itself, by process.exit() or by an uncaught error takes its children
// along. One that is killed cannot: its children see their stdin end.
const killAll = (): void => {
  for (const child of alive) signalGroup(child, 'SIGKILL');
};

const remember = (child: ChildProcess): void => {
  if (alive.size === 0) process.on('exit', killAll);
  alive.add(child);
};

const forget = (child: ChildProcess): void => {
  alive.delete(child);
  if (alive.size === 0) process.off('exit', killAll);
};

/** Sends a signal to the whole group; 0 only asks. False when nobody is left in it. */
const signalGroup = (child: ChildProcess, signal: NodeJS.Signals | 0): boolean => {
  if (child.pid === undefined) return false;
  if (!GROUPS) return child.exitCode === null && child.signalCode === null && child.kill(signal);
  try {
    return process.kill(-child.pid, signal);
  } catch {
    return false;
  }
};

/** Starts it without a shell, leading a process group of its own. Errors come as its `error` event. */
export const spawnGroup = (command: ChildCommand): ChildProcessWithoutNullStreams => {
  const child = spawn(command.command, command.args, {
    env: command.env,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: GROUPS,
    windowsHide: true,
    ...(command.cwd !== undefined && { cwd: command.cwd }),
  });
  if (child.pid !== undefined) remember(child);
  return child;
};

/**
 * Ends what is left of the group of a child that has ended itself: SIGTERM, and SIGKILL after 2 s.
 * Resolves when nobody is left, or was killed.
 */
export const endRest = async (child: ChildProcess, clock: Clock): Promise<void> => {
  if (signalGroup(child, 'SIGTERM')) {
    const killed = clock.now() + STEP;
    while (signalGroup(child, 0) && clock.now() < killed) await sleep(clock, LOOK);
    signalGroup(child, 'SIGKILL');
  }
  forget(child);
};

/**
 * Sees to it that a child whose stdin was ended does end: SIGTERM to its group after 2 s, SIGKILL
 * after 2 s more. Does not wait; its `exit` event tells. The timer that it returns must be cancelled then.
 */
export const endGroup = (child: ChildProcess, clock: Clock): Timer => {
  let timer = clock.setTimer(
    STEP,
    () => {
      signalGroup(child, 'SIGTERM');
      timer = clock.setTimer(STEP, () => void signalGroup(child, 'SIGKILL'), true);
    },
    true,
  );
  return { cancel: () => timer.cancel() };
};
