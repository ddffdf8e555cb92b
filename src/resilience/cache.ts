/**
 * @module
 * Answers kept for a while, and for how long an old one is still better than none (RFC 5861:
 * stale-while-revalidate, stale-if-error).
 */
import { type Clock, systemClock } from './clock.ts';
import { LruMap } from './lru-map.ts';
import { type CacheSettings, cacheRules } from './policy.ts';
import { resolve } from './settings.ts';

export { type CacheKeyParts, cacheKey } from './cache-key.ts';

/**
 * An answer from the cache, with its age.
 *
 * @example
 * ```ts
 * import { type CacheHit, ResultCache } from 'mcp-resilience';
 * const cache = new ResultCache<string>({ ttl: 60_000, staleIfError: 3_600_000 });
 * const hit: CacheHit<string> | undefined = cache.get('today');
 * if (hit?.state === 'expired') console.error(`${hit.value}, ${hit.age / 1_000} s ago`);
 * ```
 */
export interface CacheHit<T> {
  readonly value: T;
  /** Milliseconds since it was put in. */
  readonly age: number;
  /**
   * `fresh`: serve it. `stale`: serve it and fetch a new one meanwhile. `expired`: serve it
   * only if the call fails.
   */
  readonly state: 'fresh' | 'stale' | 'expired';
  /** Until when it is, or was, fresh: milliseconds since the Unix epoch. */
  readonly cachedUntil: number;
}

/**
 * What a cache has done so far.
 *
 * @example
 * ```ts
 * import { type CacheStats, createPipeline } from 'mcp-resilience';
 * const hitRatio = ({ hits, stale, misses }: CacheStats) =>
 *   (hits + stale) / Math.max(1, hits + stale + misses);
 * const { cache } = createPipeline('weather-api', { cache: { ttl: 60_000 } });
 * if (cache) hitRatio(cache.stats()); // 0
 * ```
 */
export interface CacheStats {
  /** Look-ups that found a fresh answer. */
  readonly hits: number;
  /** Look-ups that found nothing, or nothing but an expired answer. */
  readonly misses: number;
  /** Look-ups that found a stale answer. */
  readonly stale: number;
  /** Answers kept now. */
  readonly entries: number;
}

interface Entry<T> {
  readonly value: T;
  readonly storedAt: number;
}

/**
 * A bounded cache of answers. It keeps what it is given, so give it no error and no degraded
 * answer, and treat what it returns as read-only: everybody gets the same object.
 *
 * Times are measured with the monotonic clock: a calendar that jumps makes nothing fresh
 * again. An answer beyond all its times goes when it is looked up, or when it has not been
 * used for longest and something new comes in.
 *
 * @example
 * ```ts
 * import { cacheKey, ResultCache } from 'mcp-resilience';
 * const cache = new ResultCache<string>({ ttl: 60_000, staleIfError: 3_600_000 });
 * const key = cacheKey({ dependency: 'weather', operation: 'today', args: { city: 'Oslo' } });
 * cache.set(key, 'sunny');
 * cache.get(key); // { value: 'sunny', age: 0, state: 'fresh', cachedUntil: … }
 * ```
 */
export class ResultCache<T> {
  /** Milliseconds for which an answer is fresh. */
  readonly ttl: number;
  readonly #staleFor: number;
  readonly #keptFor: number;
  readonly #clock: Clock;
  readonly #entries: LruMap<string, Entry<T>>;
  #hits = 0;
  #misses = 0;
  #stale = 0;

  /** @throws RangeError naming the setting, its range and the value given */
  constructor(settings: CacheSettings, env: { clock?: Clock } = {}) {
    const {
      ttl,
      staleWhileRevalidate = 0,
      staleIfError = 0,
      maxEntries = 1_000,
    } = resolve(cacheRules, settings, 'cache');
    this.ttl = ttl;
    this.#staleFor = ttl + staleWhileRevalidate;
    this.#keptFor = ttl + Math.max(staleWhileRevalidate, staleIfError);
    this.#clock = env.clock ?? systemClock;
    this.#entries = new LruMap(maxEntries);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The answer kept for `key`, unless there is none or it is beyond all its times. */
  get(key: string): CacheHit<T> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      this.#misses += 1;
      return undefined;
    }
    const age = this.#age(entry);
    if (age >= this.#keptFor) {
      this.#entries.delete(key);
      this.#misses += 1;
      return undefined;
    }
    const state = age < this.ttl ? 'fresh' : age < this.#staleFor ? 'stale' : 'expired';
    if (state === 'fresh') this.#hits += 1;
    else if (state === 'stale') this.#stale += 1;
    else this.#misses += 1;
    const cachedUntil = this.#clock.wallTime() + this.ttl - age;
    return { value: entry.value, age, state, cachedUntil };
  }

  /** Keeps `value`, fresh from now on. */
  set(key: string, value: T): void {
    // The dead drift to the end of the line; two go for each that comes.
    for (let swept = 0; swept < 2; swept += 1) {
      const { oldest } = this.#entries;
      if (oldest === undefined || this.#age(oldest.value) < this.#keptFor) break;
      this.#entries.delete(oldest.key);
    }
    this.#entries.set(key, { value, storedAt: this.#clock.now() });
  }

  /** Forgets one answer; false when there was none. */
  delete(key: string): boolean {
    return this.#entries.delete(key);
  }

  /** Forgets all answers. */
  clear(): void {
    this.#entries.clear();
  }

  stats(): CacheStats {
    return { hits: this.#hits, misses: this.#misses, stale: this.#stale, entries: this.size };
  }

  #age(entry: Entry<T>): number {
    return Math.max(0, this.#clock.now() - entry.storedAt);
  }
}
