/**
 * @module
 * What a breaker remembers of past calls: counts only, so that a failing call costs the same
 * whatever the size of the window (a sorted list of samples would make an outage expensive
 * just when it hurts). Time is passed in; nothing here knows a clock or a state machine.
 */

/** Counts of the calls that a window remembers at this moment. */
export interface WindowCounts {
  readonly calls: number;
  readonly failures: number;
  readonly slow: number;
}

/** Remembers outcomes and says when they are bad enough to open. */
export interface FailureWindow {
  record(failed: boolean, slow: boolean, now: number): void;
  /** True when the remembered calls cross a threshold. */
  tripped(now: number): boolean;
  counts(now: number): WindowCounts;
  reset(): void;
}

/** Shares at which a window trips, and the calls it wants to have seen first. */
export interface WindowThresholds {
  readonly failureRate: number;
  readonly slowCallRate: number;
  readonly minimumCalls: number;
}

const crossed = (counts: WindowCounts, thresholds: WindowThresholds): boolean =>
  counts.calls >= thresholds.minimumCalls &&
  // Divided, not multiplied: 0.07 * 100 is more than 7.
  (counts.failures / counts.calls >= thresholds.failureRate ||
    counts.slow / counts.calls >= thresholds.slowCallRate);

/** Trips after `threshold` failures in a row; a slow call counts as one when that is watched. */
export class ConsecutiveWindow implements FailureWindow {
  readonly #threshold: number;
  readonly #slowCounts: boolean;
  #failures = 0;
  #slow = 0;
  #run = 0;

  constructor(threshold: number, slowCounts = false) {
    this.#threshold = threshold;
    this.#slowCounts = slowCounts;
  }

  record(failed: boolean, slow: boolean): void {
    if (failed || (slow && this.#slowCounts)) {
      this.#run++;
      if (failed) this.#failures++;
      if (slow) this.#slow++;
    } else if (this.#run !== 0) this.reset();
  }

  tripped(): boolean {
    return this.#run >= this.#threshold;
  }

  counts(): WindowCounts {
    return { calls: this.#run, failures: this.#failures, slow: this.#slow };
  }

  reset(): void {
    this.#run = 0;
    this.#failures = 0;
    this.#slow = 0;
  }
}

const FAILED = 1;
const SLOW = 2;

/** Remembers the last `size` calls in a ring. */
export class CountWindow implements FailureWindow {
  readonly #ring: Uint8Array;
  readonly #thresholds: WindowThresholds;
  #next = 0;
  #calls = 0;
  #failures = 0;
  #slow = 0;

  constructor(size: number, thresholds: WindowThresholds) {
    this.#ring = new Uint8Array(size);
    this.#thresholds = thresholds;
  }

  record(failed: boolean, slow: boolean): void {
    const ring = this.#ring;
    if (this.#calls === ring.length) {
      const forgotten = ring[this.#next] ?? 0;
      if (forgotten & FAILED) this.#failures--;
      if (forgotten & SLOW) this.#slow--;
    } else this.#calls++;
    if (failed) this.#failures++;
    if (slow) this.#slow++;
    ring[this.#next] = (failed ? FAILED : 0) | (slow ? SLOW : 0);
    this.#next = this.#next + 1 === ring.length ? 0 : this.#next + 1;
  }

  tripped(): boolean {
    return crossed(this.counts(), this.#thresholds);
  }

  counts(): WindowCounts {
    return { calls: this.#calls, failures: this.#failures, slow: this.#slow };
  }

  reset(): void {
    this.#next = 0;
    this.#calls = 0;
    this.#failures = 0;
    this.#slow = 0;
  }
}

const BUCKETS = 10;

/**
 * Remembers the calls of the last `duration` milliseconds, in ten buckets. Buckets are evicted
 * by the time that has passed, on writing and on reading alike: after an idle hour nothing of
 * the hour before is left.
 */
export class TimeWindow implements FailureWindow {
  readonly #width: number;
  readonly #thresholds: WindowThresholds;
  readonly #buckets = new Uint32Array(BUCKETS * 3);
  /** The time at which bucket 0 began for the first time; a clock may count from anywhere. */
  #origin: number | undefined;
  /** Index, in widths since then, of the newest bucket. */
  #newest = 0;
  #calls = 0;
  #failures = 0;
  #slow = 0;

  constructor(duration: number, thresholds: WindowThresholds) {
    this.#width = duration / BUCKETS;
    this.#thresholds = thresholds;
  }

  record(failed: boolean, slow: boolean, now: number): void {
    this.#evict(now);
    const at = (this.#newest % BUCKETS) * 3;
    this.#add(at, 1, failed ? 1 : 0, slow ? 1 : 0);
  }

  tripped(now: number): boolean {
    return crossed(this.counts(now), this.#thresholds);
  }

  counts(now: number): WindowCounts {
    this.#evict(now);
    return { calls: this.#calls, failures: this.#failures, slow: this.#slow };
  }

  reset(): void {
    this.#buckets.fill(0);
    this.#calls = 0;
    this.#failures = 0;
    this.#slow = 0;
  }

  #add(at: number, calls: number, failures: number, slow: number): void {
    const buckets = this.#buckets;
    buckets[at] = (buckets[at] ?? 0) + calls;
    buckets[at + 1] = (buckets[at + 1] ?? 0) + failures;
    buckets[at + 2] = (buckets[at + 2] ?? 0) + slow;
    this.#calls += calls;
    this.#failures += failures;
    this.#slow += slow;
  }

  #evict(now: number): void {
    this.#origin ??= now;
    const newest = Math.floor((now - this.#origin) / this.#width);
    const passed = newest - this.#newest;
    if (passed <= 0) return;
    if (passed >= BUCKETS) this.reset();
    else {
      for (let index = this.#newest + 1; index <= newest; index++) {
        const at = (index % BUCKETS) * 3;
        const buckets = this.#buckets;
        this.#add(at, -(buckets[at] ?? 0), -(buckets[at + 1] ?? 0), -(buckets[at + 2] ?? 0));
      }
    }
    this.#newest = newest;
  }
}

/** The window that the settings of a breaker ask for. */
export const createWindow = (settings: {
  readonly window: 'consecutive' | 'count' | 'time';
  readonly threshold: number;
  readonly size: number;
  readonly duration: number;
  readonly failureRate: number;
  readonly slowCallRate: number;
  readonly minimumCalls: number;
  readonly slowCallDuration?: number;
}): FailureWindow => {
  const watchesSlow = settings.slowCallDuration !== undefined;
  if (settings.window === 'consecutive') {
    return new ConsecutiveWindow(settings.threshold, watchesSlow);
  }
  const thresholds: WindowThresholds = {
    failureRate: settings.failureRate,
    slowCallRate: watchesSlow ? settings.slowCallRate : Number.POSITIVE_INFINITY,
    // A count window that wants more calls than it remembers would never trip.
    minimumCalls:
      settings.window === 'count'
        ? Math.min(settings.minimumCalls, settings.size)
        : settings.minimumCalls,
  };
  return settings.window === 'count'
    ? new CountWindow(settings.size, thresholds)
    : new TimeWindow(settings.duration, thresholds);
};
