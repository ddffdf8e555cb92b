/**
 * @module
 * Time and randomness for every policy. Both are injected, so that tests never sleep and
 * never roll dice, and both are monotonic or bounded where that matters: a wall clock that
 * is stepped back by NTP must not keep a breaker open for an hour.
 */

/**
 * A pending timer. Cancelling one that has fired, or cancelling twice, does nothing.
 *
 * @example
 * ```ts
 * import { systemClock, type Timer } from 'mcp-resilience';
 * const timer: Timer = systemClock.setTimer(5_000, () => console.error('5 s are over'));
 * timer.cancel();
 * ```
 */
export interface Timer {
  cancel(): void;
}

/**
 * Source of time. `now()` is monotonic and is what every duration is measured with;
 * `wallTime()` is the calendar and serves HTTP dates and timestamps shown to people only.
 *
 * @example
 * ```ts
 * import { type Clock, systemClock } from 'mcp-resilience';
 * const started = systemClock.now();
 * const skewed: Clock = { ...systemClock, wallTime: () => systemClock.wallTime() + 60_000 };
 * ```
 */
export interface Clock {
  /** Monotonic milliseconds from an arbitrary origin. */
  now(): number;
  /** Milliseconds since the Unix epoch. May jump. */
  wallTime(): number;
  /**
   * Calls `callback` once, `delay` milliseconds from now. The timer does not keep the process
   * alive, unless `keepAlive` says that a caller waits for it and for nothing else: a script
   * must not end in the middle of a backoff. Any finite delay works, beyond 2^31 ms too; a
   * negative one counts as 0, and `Infinity` never fires.
   */
  setTimer(delay: number, callback: () => void, keepAlive?: boolean): Timer;
}

/**
 * Source of randomness: a number in [0, 1). Default `Math.random`.
 *
 * @example
 * ```ts
 * import { createPipeline, type Random } from 'mcp-resilience';
 * const middle: Random = () => 0.5; // a test waits for half of each backoff
 * const billing = createPipeline('billing', { retry: {} }, { random: middle });
 * ```
 */
export type Random = () => number;

/** The random source of the process. */
export const systemRandom: Random = Math.random;

/** Longest delay that Node's timers take; a longer one would fire after 1 ms. */
export const MAX_TIMER_DELAY = 2 ** 31 - 1;

class SystemTimer implements Timer {
  #handle: NodeJS.Timeout | undefined;
  readonly #callback: () => void;
  readonly #keepAlive: boolean;
  #remaining: number;

  constructor(delay: number, callback: () => void, keepAlive: boolean) {
    this.#callback = callback;
    this.#keepAlive = keepAlive;
    this.#remaining = Math.max(0, delay);
    this.#arm();
  }

  #arm(): void {
    // A delay beyond what the platform takes is waited for in slices.
    const slice = Math.min(this.#remaining, MAX_TIMER_DELAY);
    this.#remaining -= slice;
    this.#handle = setTimeout(() => {
      if (this.#remaining > 0) this.#arm();
      else {
        this.#handle = undefined;
        this.#callback();
      }
    }, slice);
    if (!this.#keepAlive) this.#handle.unref();
  }

  cancel(): void {
    if (this.#handle !== undefined) clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}

const NEVER: Timer = { cancel() {} };

/**
 * The clock of the process: `performance.now()`, `Date.now()` and its timers, all milliseconds.
 * The default wherever a clock can be given.
 *
 * @throws RangeError from `setTimer` when the delay is not a number
 *
 * @example
 * ```ts
 * import { CircuitBreaker, type Clock, systemClock } from 'mcp-resilience';
 * let skipped = 0;
 * const clock: Clock = { ...systemClock, now: () => systemClock.now() + skipped };
 * const breaker = new CircuitBreaker('billing', { openDuration: 30_000 }, { clock });
 * skipped = 30_000; // an open breaker is half-open now
 * ```
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  setTimer: (delay, callback, keepAlive = false) => {
    if (Number.isNaN(delay)) throw new RangeError('setTimer: delay must be a number, got NaN');
    return delay === Number.POSITIVE_INFINITY ? NEVER : new SystemTimer(delay, callback, keepAlive);
  },
};

/**
 * For a caller that waits: resolves after `delay` milliseconds, or rejects with the signal's reason as soon as the
 * signal aborts. Leaves neither timer nor listener behind, whichever comes first. The process lives
 * on meanwhile, unless `keepAlive` is false.
 */
export const sleep = (
  clock: Clock,
  delay: number,
  signal?: AbortSignal,
  keepAlive = true,
): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const onTime = () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    };
    const timer = clock.setTimer(delay, onTime, keepAlive);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
