/**
 * @module
 * Most calls in a period, per key. A token bucket that is refilled by elapsed time: no timer
 * runs unless somebody waits, and an idle bucket costs nothing but its entry.
 */
import { emitEvent } from '../telemetry/instruments.ts';
import { ATTR, EVENT } from '../telemetry/signals.ts';
import { type Clock, systemClock, type Timer } from './clock.ts';
import { Decisions } from './decisions.ts';
import { createFailure, ResilienceError } from './failure.ts';
import { LruMap } from './lru-map.ts';
import { type Priority, type RateLimitSettings, rateLimitRules } from './policy.ts';
import { resolve } from './settings.ts';
import { type Rate, TokenBucket } from './token-bucket.ts';
import { Waiter, type WaitOptions, type WaitOwner, WaitQueue } from './wait-queue.ts';

/** What a rate limiter has done so far. */
export interface RateLimiterStats {
  /** Calls let through. */
  readonly accepted: number;
  /** Calls refused. */
  readonly rejected: number;
  /** Keys remembered now. */
  readonly keys: number;
}

/** Those who wait for a token of one key. */
interface Line {
  readonly interactive: WaitQueue;
  readonly background: WaitQueue;
  readonly owner: WaitOwner;
  timer: Timer | undefined;
  wakeAt: number;
}

class KeyBucket extends TokenBucket {
  line: Line | undefined;
}

const TAKEN = Promise.resolve();

/**
 * Lets `limit` calls per `interval` through, and up to `burst` at once after a quiet time, for
 * each key on its own (token bucket; Turner 1986, GCRA in ITU-T I.371). In any time t it lets
 * at most `burst + t * limit / interval` through, also when the process was blocked meanwhile.
 *
 * A `background` call leaves the last fifth of `burst` (rounded down) to interactive ones, and
 * waits behind all of them. It has no store to lose, hence no way to be waved through: what
 * the bucket refuses is refused.
 *
 * Keys beyond `maxKeys` are forgotten, least recently used first; a forgotten key starts with
 * a full bucket again. One that somebody waits for is forgotten last.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'mcp-resilience';
 * const limiter = new RateLimiter('weather-api', { limit: 10, interval: 60_000, maxWait: 2_000 });
 * await limiter.take('tenant-1'); // throws RATE_LIMIT_EXCEEDED with `failure.retryAfter`
 * const wait = limiter.tryTake('tenant-1'); // 0: taken; else milliseconds until there is one
 * ```
 */
export class RateLimiter {
  readonly name: string;
  readonly #clock: Clock;
  readonly #rate: Rate;
  readonly #reserve: number;
  readonly #maxWait: number;
  readonly #buckets: LruMap<string, KeyBucket>;
  readonly #decisions: Decisions;
  readonly #accept = (): void => this.#decisions.count('accepted');
  #latest = Number.NEGATIVE_INFINITY;

  /**
   * @param name of the dependency; appears on every signal
   * @throws RangeError naming the setting, its range and the value given
   */
  constructor(name: string, settings: RateLimitSettings, env: { clock?: Clock } = {}) {
    const {
      limit,
      interval = 1_000,
      maxWait = 0,
      maxKeys = 10_000,
      ...rest
    } = resolve(rateLimitRules, settings, 'rateLimit');
    const burst = rest.burst ?? limit;
    this.name = name;
    this.#clock = env.clock ?? systemClock;
    this.#rate = { limit, interval, burst };
    this.#reserve = Math.floor(burst / 5);
    this.#maxWait = maxWait;
    this.#buckets = new LruMap(maxKeys, (bucket) => bucket.line !== undefined);
    this.#decisions = new Decisions('rateLimiterDecisions', name);
  }

  /**
   * Takes a token if there is one and nobody waits for it: returns 0. Otherwise takes nothing
   * and returns the exact milliseconds until there is one, if nobody else comes first. A wait
   * is not a refusal yet: that is counted when `refusal` is called.
   *
   * @param now clock time, when the caller has read it already
   */
  tryTake(key = '', now: number = this.#clock.now(), priority?: Priority): number {
    const time = this.#forward(now);
    const bucket = this.#bucket(key, time);
    const wait = this.#wait(bucket, time, priority, 1);
    if (wait > 0) return wait;
    bucket.take();
    this.#accept();
    return 0;
  }

  /**
   * Takes a token, waiting for it for at most `maxWait` and until the deadline, first come
   * first served. Whoever leaves the line lets everybody behind move up.
   *
   * @throws ResilienceError `RATE_LIMIT_EXCEEDED` with the exact `retryAfter` in seconds, at
   * once when the wait would be too long
   * @throws the reason of the signal, as soon as it aborts
   */
  take(key = '', options: WaitOptions = {}): Promise<void> {
    const { signal, deadline, priority } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const now = this.#forward(this.#clock.now());
    const wait = this.tryTake(key, now, priority);
    if (wait === 0) return TAKEN;
    const latest = Math.min(now + this.#maxWait, deadline?.at ?? Number.POSITIVE_INFINITY);
    if (wait > this.#maxWait || now + wait > latest) return Promise.reject(this.refusal(wait));

    const bucket = this.#bucket(key, now);
    bucket.line ??= this.#openLine(bucket);
    const { background, interactive, owner } = bucket.line;
    const queue = priority === 'background' ? background : interactive;
    const waiter = new Waiter(queue, owner, this.#clock, now, now + this.#maxWait, options);
    this.#serve(bucket);
    return waiter.promise;
  }

  /** Counts a refusal and makes its error; `wait` is what `tryTake` returned. */
  refusal(wait: number): ResilienceError {
    this.#decisions.count('rejected');
    const seconds = wait / 1_000;
    // Rounded up in the last place if need be, so that a wait of that many seconds suffices.
    const retryAfter = seconds * 1_000 < wait ? seconds * (1 + Number.EPSILON) : seconds;
    emitEvent(EVENT.rateLimiterRejected, 'warn', {
      ...this.#decisions.dependency,
      [ATTR.retryAfter]: retryAfter,
    });
    const message = `rate limit of "${this.name}" reached: a call fits in ${Math.ceil(wait) / 1_000} s`;
    return new ResilienceError(createFailure('RATE_LIMIT_EXCEEDED', { message, retryAfter }));
  }

  /** Whole tokens that `key` may take at this moment. Does not count as a use of the key. */
  available(key = ''): number {
    const bucket = this.#buckets.peek(key);
    if (bucket === undefined) return this.#rate.burst;
    const waiting = bucket.line === undefined ? 0 : bucket.line.interactive.length;
    const now = this.#forward(this.#clock.now());
    return Math.max(0, bucket.available(this.#rate, now) - waiting);
  }

  stats(): RateLimiterStats {
    const { accepted, rejected } = this.#decisions;
    return { accepted, rejected, keys: this.#buckets.size };
  }

  /** A clock that goes back is taken to stand still. */
  #forward(now: number): number {
    if (now > this.#latest) this.#latest = now;
    return this.#latest;
  }

  #bucket(key: string, now: number): KeyBucket {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = new KeyBucket(now);
      this.#buckets.set(key, bucket);
    }
    return bucket;
  }

  /** Milliseconds until the token is there that is `nth` after those that others wait for. */
  #wait(bucket: KeyBucket, now: number, priority: Priority | undefined, nth: number): number {
    const { line } = bucket;
    if (line !== undefined) nth += line.interactive.length;
    if (priority === 'background') {
      nth += this.#reserve;
      if (line !== undefined) nth += line.background.length;
    }
    bucket.refill(this.#rate, now);
    const ready = bucket.readyAt(this.#rate, nth);
    return ready <= now ? 0 : span(now, ready);
  }

  #openLine(bucket: KeyBucket): Line {
    const owner: WaitOwner = {
      cancelled: () => this.#serve(bucket),
      expired: (waiter) => {
        this.#serve(bucket);
        if (!waiter.waiting) return;
        this.#turnAway(bucket, waiter);
        this.#serve(bucket);
      },
    };
    const interactive = new WaitQueue();
    return { interactive, background: new WaitQueue(), owner, timer: undefined, wakeAt: 0 };
  }

  #turnAway(bucket: KeyBucket, waiter: Waiter): void {
    const priority = waiter.queue === bucket.line?.background ? 'background' : 'interactive';
    // It stands in the line itself, hence the 0.
    const wait = this.#wait(bucket, this.#forward(this.#clock.now()), priority, 0);
    waiter.refuse(waiter.inContext(() => this.refusal(wait)));
  }

  /** Grants what is due, and sets the one timer of the line to when the next one is. */
  #serve(bucket: KeyBucket): void {
    const { line } = bucket;
    if (line === undefined) return;
    const now = this.#forward(this.#clock.now());
    for (;;) {
      const waiter = line.interactive.head ?? line.background.head;
      bucket.refill(this.#rate, now);
      const nth = waiter?.queue === line.background ? 1 + this.#reserve : 1;
      const ready = bucket.readyAt(this.#rate, nth);
      if (waiter !== undefined && ready <= now) {
        // Only a process that was blocked comes here after the deadline.
        if (waiter.deadline !== undefined && waiter.deadline.at < now) {
          this.#turnAway(bucket, waiter);
        } else {
          bucket.take();
          waiter.asCall(this.#accept);
          waiter.grant();
        }
        continue;
      }
      if (waiter === undefined || ready !== line.wakeAt) {
        line.timer?.cancel();
        line.timer = undefined;
      }
      if (waiter === undefined) bucket.line = undefined;
      else {
        line.wakeAt = ready;
        const wake = () => {
          line.timer = undefined;
          this.#serve(bucket);
        };
        // A script must not end while its call waits for a turn and for nothing else.
        line.timer ??= this.#clock.setTimer(span(now, ready), wake, true);
      }
      return;
    }
  }
}

/** `to - from`, such that adding it to `from` does not fall short of `to` by rounding. */
const span = (from: number, to: number): number => {
  const wait = to - from;
  return from + wait < to ? wait + Math.abs(to) * Number.EPSILON : wait;
};
