/**
 * @module
 * Most calls at one time: what one slow dependency may occupy is bounded, and the rest of the
 * server stays afloat (the bulkhead of Nygard, "Release It!", 2nd ed. 2018, ch. 5).
 */
import {
  emitEvent,
  faultHook,
  type Observed,
  observeMetrics,
  type Report,
} from '../telemetry/instruments.ts';
import { ATTR, EVENT } from '../telemetry/signals.ts';
import { AdaptiveLimit } from './adaptive-limit.ts';
import { type Clock, systemClock } from './clock.ts';
import { Decisions } from './decisions.ts';
import { createFailure, ResilienceError } from './failure.ts';
import { type BulkheadSettings, bulkheadRules, type Priority } from './policy.ts';
import { type PlacedWork, runInPlace } from './run-in-place.ts';
import { resolve } from './settings.ts';
import { Waiter, type WaitOptions, type WaitOwner, WaitQueue } from './wait-queue.ts';

/** Why a call got no place: on the event, and in the message of the error. */
export type BulkheadRefusal = 'full' | 'timeout' | 'shed' | 'destroyed';

/** What a bulkhead is doing and has done so far. */
export interface BulkheadStats {
  /** Calls that hold a place. */
  readonly active: number;
  /** Calls that wait for one. */
  readonly queued: number;
  /** Places there are now. */
  readonly limit: number;
  /** Milliseconds the first one in line has been waiting; 0 when nobody is. */
  readonly oldestWait: number;
  readonly accepted: number;
  readonly rejected: number;
  readonly cancelled: number;
}

const PLACE = Promise.resolve();

const WHY: Readonly<Record<BulkheadRefusal, string>> = {
  full: 'all places and the queue are taken',
  timeout: 'no place came free in time',
  shed: 'background work made room for an interactive call',
  destroyed: 'it was shut down',
};

/**
 * Lets `limit` calls run at one time and `queue` more wait, first in first out.
 *
 * Interactive calls go first: a `background` call leaves the last fifth of the places (rounded
 * down) free, waits behind every interactive one, and when the queue is full the newest
 * background call in it makes room for an interactive one.
 *
 * A place belongs to the caller from the moment `tryAcquire` returns true or `acquire` resolves,
 * even if its signal aborts in that very moment, and must be given back by `release` once the
 * work has really ended, not when somebody stopped waiting for it. `execute` does all of it.
 *
 * @example
 * ```ts
 * import { Bulkhead } from 'mcp-resilience';
 * const bulkhead = new Bulkhead('search', { limit: 10, queue: 20, maxWait: 1_000 });
 * const page = await bulkhead.execute(() => fetch('https://search.example'));
 * const adaptive = new Bulkhead('search', { limit: { min: 2, max: 100 } });
 * ```
 */
export class Bulkhead implements Observed {
  readonly name: string;
  readonly #clock: Clock;
  readonly #maxQueue: number;
  readonly #maxWait: number;
  readonly #adaptive: AdaptiveLimit | undefined;
  readonly #interactive = new WaitQueue();
  readonly #background = new WaitQueue();
  readonly #owner: WaitOwner;
  readonly #decisions: Decisions;
  readonly #unobserve: () => void;
  readonly #grant = (): void => {
    this.#active += 1;
    this.#decisions.count('accepted');
  };
  #limit = 0;
  #backgroundLimit = 0;
  #active = 0;
  #destroyed = false;

  /**
   * @param name of the dependency; appears on every signal
   * @throws RangeError naming the setting, its range and the value given
   */
  constructor(name: string, settings: BulkheadSettings, env: { clock?: Clock } = {}) {
    const given = settings.limit;
    this.#adaptive =
      typeof given === 'object' ? new AdaptiveLimit(given, 'bulkhead.limit') : undefined;
    const limit = this.#adaptive?.limit ?? (given as number);
    const { queue, maxWait } = resolve(
      bulkheadRules,
      { ...settings, limit },
      'bulkhead',
    ) as Required<BulkheadSettings>;
    this.name = name;
    this.#clock = env.clock ?? systemClock;
    this.#maxQueue = queue;
    this.#maxWait = maxWait;
    this.#decisions = new Decisions('bulkheadDecisions', name);
    this.#owner = {
      cancelled: () => this.#decisions.count('cancelled'),
      // Whether a place is free was settled when it became so: nobody in line can have one.
      expired: (waiter) => this.#turnAway(waiter, 'timeout'),
    };
    this.#resize(limit);
    this.#unobserve = observeMetrics(this);
  }

  /** Takes a place if there is one and nobody who goes first waits for it. Never waits. */
  tryAcquire(priority?: Priority): boolean {
    if (this.#active >= (priority === 'background' ? this.#backgroundLimit : this.#limit)) {
      return false;
    }
    this.#grant();
    return true;
  }

  /**
   * Takes a place, waiting in line for at most `maxWait` and until the deadline.
   *
   * @throws ResilienceError `BULKHEAD_FULL`, at once when the queue is full too
   * @throws the reason of the signal, as soon as it aborts
   */
  acquire(options: WaitOptions = {}): Promise<void> {
    const { signal, deadline, priority } = options;
    if (signal?.aborted) {
      this.#decisions.count('cancelled');
      return Promise.reject(signal.reason);
    }
    if (this.tryAcquire(priority)) return PLACE;
    const now = this.#clock.now();
    const longest = now + this.#maxWait;
    if (this.#destroyed || Math.min(longest, deadline?.at ?? longest) <= now) {
      return Promise.reject(this.refusal());
    }
    if (this.#queued >= this.#maxQueue) {
      const shed = priority === 'background' ? undefined : this.#background.tail;
      if (shed === undefined) return Promise.reject(this.refusal());
      this.#turnAway(shed, 'shed');
    }
    const queue = priority === 'background' ? this.#background : this.#interactive;
    return new Waiter(queue, this.#owner, this.#clock, now, longest, options).promise;
  }

  /**
   * Gives a place back; the next one in line has it before this returns.
   *
   * @param rtt milliseconds the work took: feeds an adaptive limit, which learns from nothing
   *   else. Leave it out for work that was cancelled.
   * @param dropped whether the work failed by overload: a timeout, a refusal of the upstream
   * @throws Error when no place is taken: a release too many would let too many calls in
   */
  release(rtt?: number, dropped = false): void {
    if (this.#active === 0) throw new Error(`bulkhead "${this.name}": release without a place`);
    if (this.#adaptive !== undefined && rtt !== undefined) {
      this.#adaptive.onSample(rtt, this.#active, dropped);
      if (this.#adaptive.limit !== this.#limit) this.#resize(this.#adaptive.limit);
    }
    this.#active -= 1;
    if (this.#queued > 0) this.#serve();
  }

  /**
   * Runs `work` in a place. A caller whose signal aborts has its answer at once; the place is
   * held until the work, which is handed the same signal, has really ended.
   *
   * @throws what `acquire` and the work throw
   */
  async execute<T>(work: PlacedWork<T>, options: WaitOptions = {}): Promise<T> {
    const { signal } = options;
    await this.acquire(options);
    if (signal?.aborted) {
      this.release();
      throw signal.reason;
    }
    return runInPlace(this, work, signal, this.#adaptive && this.#clock);
  }

  /**
   * Changes the number of places. More serve those in line at once; fewer take effect as calls
   * end. With an adaptive limit the next sample decides anew.
   *
   * @throws RangeError unless it is a whole number from 1 to 100 000
   */
  setLimit(limit: number): void {
    resolve(bulkheadRules, { limit }, 'bulkhead');
    this.#resize(limit);
    this.#serve();
  }

  /** Counts a refusal and makes its error: for callers that only use `tryAcquire`. */
  refusal(reason: BulkheadRefusal = this.#destroyed ? 'destroyed' : 'full'): ResilienceError {
    // A place that a faulted call keeps is what this one lacks.
    if (reason !== 'destroyed') faultHook()?.crowded(this);
    this.#decisions.count('rejected');
    emitEvent(EVENT.bulkheadRejected, 'warn', {
      ...this.#decisions.dependency,
      [ATTR.reason]: reason,
    });
    const message = `bulkhead of "${this.name}": ${WHY[reason]}`;
    const retryable = reason !== 'destroyed';
    return new ResilienceError(createFailure('BULKHEAD_FULL', { message, retryable }));
  }

  stats(): BulkheadStats {
    return {
      active: this.#active,
      queued: this.#queued,
      limit: this.#limit,
      oldestWait: this.#oldestWait(),
      accepted: this.#decisions.accepted,
      rejected: this.#decisions.rejected,
      cancelled: this.#decisions.cancelled,
    };
  }

  /** Refuses those in line and all that come. Calls that run may still end. Idempotent. */
  destroy(): void {
    this.#destroyed = true;
    this.#resize(0);
    for (const queue of [this.#interactive, this.#background]) {
      while (queue.head !== undefined) this.#turnAway(queue.head, 'destroyed');
    }
    this.#unobserve();
  }

  /** @internal Reports the gauges when metrics are collected. */
  observe(report: Report): void {
    const { dependency } = this.#decisions;
    report('bulkheadActive', this.#active, dependency);
    report('bulkheadQueued', this.#queued, dependency);
    report('bulkheadLimit', this.#limit, dependency);
    report('bulkheadOldestWait', this.#oldestWait() / 1_000, dependency);
  }

  get #queued(): number {
    return this.#interactive.length + this.#background.length;
  }

  #oldestWait(): number {
    const first = this.#interactive.head?.since ?? Number.POSITIVE_INFINITY;
    const other = this.#background.head?.since ?? Number.POSITIVE_INFINITY;
    return this.#queued === 0 ? 0 : this.#clock.now() - Math.min(first, other);
  }

  #resize(limit: number): void {
    this.#limit = this.#destroyed ? 0 : limit;
    this.#backgroundLimit = this.#limit - Math.floor(this.#limit / 5);
  }

  /** Places that are free go to those in line, interactive ones first. */
  #serve(): void {
    for (;;) {
      const waiter = this.#interactive.head ?? this.#background.head;
      if (waiter === undefined) return;
      const background = waiter.queue === this.#background;
      if (this.#active >= (background ? this.#backgroundLimit : this.#limit)) return;
      // Its own timer is late: the process was blocked.
      if (waiter.deadline !== undefined && waiter.deadline.at < this.#clock.now()) {
        this.#turnAway(waiter, 'timeout');
      } else {
        waiter.asCall(this.#grant);
        waiter.grant();
      }
    }
  }

  #turnAway(waiter: Waiter, reason: BulkheadRefusal): void {
    waiter.refuse(waiter.inContext(() => this.refusal(reason)));
  }
}
