/**
 * @module
 * The wait of one caller for what goes on, whether that caller stays or not.
 */
import type { Clock, Timer } from './clock.ts';
import type { Deadline } from './deadline.ts';

/** Ends once: with what is waited for, or when its caller leaves. */
export interface Wait<T> {
  readonly promise: Promise<T>;
  /** The caller leaves at the deadline, wherever that has moved by then, and is told why. */
  leaveAt(deadline: Deadline, clock: Clock, why: () => unknown): void;
}

/**
 * Waits for `running` until the signal aborts: then the caller hears the reason at once, however
 * long the work goes on. Leaves no timer or listener behind, and no rejection of `running` unhandled.
 *
 * @param onEnd called once, after the caller has been told; `left` says that it did not stay
 */
export const waitFor = <T>(
  running: Promise<T>,
  signal?: AbortSignal,
  onEnd?: (left: boolean, reason?: unknown) => void,
): Wait<T> => {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let over = false;
  let timer: Timer | undefined;
  const end = (left: boolean, reason?: unknown) => {
    if (over) return;
    over = true;
    timer?.cancel();
    signal?.removeEventListener('abort', onAbort);
    if (left) reject(reason);
    else resolve(running);
    onEnd?.(left, reason);
  };
  const onAbort = () => end(true, signal?.reason);
  // A signal that aborted while the work began tells nobody any more.
  if (signal?.aborted) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  const settled = () => end(false);
  running.then(settled, settled);
  const leaveAt: Wait<T>['leaveAt'] = (deadline, clock, why) => {
    if (over) return;
    const { at } = deadline;
    timer = clock.setTimer(at - clock.now(), () =>
      deadline.at > at ? leaveAt(deadline, clock, why) : end(true, why()),
    );
  };
  return { promise, leaveAt };
};

/** What `running` comes to, unless the signal aborts first: then its reason; see `waitFor`. */
export const orAborted = <T>(running: Promise<T>, signal: AbortSignal): Promise<T> =>
  waitFor(running, signal).promise;
