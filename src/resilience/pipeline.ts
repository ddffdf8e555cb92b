/**
 * @module
 * Puts the policies of one dependency together in the one right order:
 *
 * deadline -> cache / single flight -> fallback -> rate limit -> bulkhead -> breaker -> retry
 * (budget) -> hedge -> attempt timeout -> injected fault -> the call
 *
 * A stage that is not set costs nothing. What is not needed is not made: no timer, signal or
 * error on the way of a call that succeeds at once.
 */
import { diag } from '@opentelemetry/api';
import { boundedCode } from '../telemetry/bounded-code.ts';
import { emitEvent, faultHook, instruments } from '../telemetry/instruments.ts';
import { ATTR, EVENT } from '../telemetry/signals.ts';
import type { Work } from './attempt.ts';
import type { Bulkhead } from './bulkhead.ts';
import { type CacheHit, ResultCache } from './cache.ts';
import type { CallOptions, PipelineOptions } from './call-options.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import { type Clock, systemClock } from './clock.ts';
import { Deadline, runWithDeadline } from './deadline.ts';
import { createFailure, type Failure } from './failure.ts';
import { Guard } from './guard.ts';
import type { Hedge } from './hedge.ts';
import { orAborted } from './or-aborted.ts';
import { type PolicySettings, policyRules } from './policy.ts';
import type { RateLimiter } from './rate-limiter.ts';
import type { Retry } from './retry.ts';
import { resolve } from './settings.ts';
import { SingleFlight } from './single-flight.ts';

/**
 * How a call ended, with everything an honest answer must say about it.
 *
 * @example
 * ```ts
 * import { createPipeline, type Outcome, presets } from 'mcp-resilience';
 * const say = (outcome: Outcome<string>) =>
 *   outcome.ok ? `${outcome.value} (${outcome.source})` : outcome.failure.message;
 * const oracle = createPipeline('oracle', presets.internal);
 * say(await oracle.outcome(() => 'yes')); // 'yes (call)'
 * ```
 */
export type Outcome<T> =
  | {
      readonly ok: true;
      readonly value: T;
      /** `stale` answers are past their time; `fallback` ones are not the real thing. */
      readonly source: 'call' | 'cache' | 'stale' | 'fallback';
      /** Attempts made for this very call. */
      readonly attempts: number;
      /** Age of a cached answer, in milliseconds. */
      readonly age?: number;
      /** Until when it is fresh, in milliseconds since the Unix epoch. */
      readonly cachedUntil?: number;
      /** Why the answer is a lesser one; or the failure that the result itself tells of. */
      readonly failure?: Failure;
    }
  | {
      readonly ok: false;
      readonly failure: Failure;
      /** What `execute` throws. */
      readonly error: unknown;
      readonly attempts: number;
    };

/**
 * The policies of one dependency. Make one per dependency and share it: breaker, limits and
 * budget work across calls.
 *
 * @example
 * ```ts
 * import { createPipeline, type Pipeline, presets } from 'mcp-resilience';
 * const billing: Pipeline = createPipeline('billing', presets.internal);
 * const invoice = await billing.execute(({ signal }) => fetch('https://billing.example/1', { signal }));
 * ```
 */
export class Pipeline {
  readonly name: string;
  readonly settings: PolicySettings;
  readonly cache: ResultCache<unknown> | undefined;
  readonly #clock: Clock;
  readonly #guard: Guard;
  readonly #staleIfError: number;
  readonly #flights = new SingleFlight<Outcome<unknown>>();

  /** @throws SettingsError with every setting that is wrong, its path and its range */
  constructor(name: string, settings: PolicySettings = {}, options: PipelineOptions = {}) {
    if (typeof name !== 'string' || name === '') {
      throw new TypeError('createPipeline: name must be a non-empty string, the dependency');
    }
    this.name = name;
    this.settings = resolve(policyRules, settings, '');
    this.#clock = options.clock ?? systemClock;
    this.#guard = new Guard(name, this.settings, options);
    const { cache } = this.settings;
    this.#staleIfError = cache ? (cache.staleIfError ?? 0) : 0;
    this.cache = cache ? new ResultCache<unknown>(cache, { clock: this.#clock }) : undefined;
  }

  get rateLimiter(): RateLimiter | undefined {
    return this.#guard.rateLimiter;
  }

  get bulkhead(): Bulkhead | undefined {
    return this.#guard.bulkhead;
  }

  get breaker(): CircuitBreaker | undefined {
    return this.#guard.breaker;
  }

  get retry(): Retry | undefined {
    return this.#guard.retry;
  }

  /** As given in the options; for who puts one of his own in front of it. */
  get classifyResult(): PipelineOptions['classifyResult'] {
    return this.#guard.classifyResult;
  }

  get hedge(): Hedge | undefined {
    return this.#guard.hedge;
  }

  /**
   * Makes a protected call. Resolves with the answer of `work`, or with a cached or lesser one
   * where the settings and options provide it (`outcome` tells them apart).
   *
   * @throws what `work` threw in its last attempt; the signal's reason when the caller
   * cancelled; a `ResilienceError` for what the policies decided (`CIRCUIT_OPEN`, `TIMEOUT`,
   * `RATE_LIMIT_EXCEEDED`, `BULKHEAD_FULL`, `DEADLINE_EXCEEDED`, `OUTCOME_UNKNOWN`)
   */
  execute<T>(work: Work<T>, options: CallOptions<T> = NO_OPTIONS): Promise<T> {
    if (options.fallback === undefined && options.cacheKey === undefined) {
      return this.#guard.run(this.#guard.call(options), work, options);
    }
    return this.outcome(work, options).then((outcome) => {
      if (outcome.ok) return outcome.value;
      throw outcome.error;
    });
  }

  /** Makes a protected call and tells how it ended. Never rejects. */
  async outcome<T>(work: Work<T>, options: CallOptions<T> = NO_OPTIONS): Promise<Outcome<T>> {
    const fetched =
      this.cache && options.cacheKey !== undefined
        ? await this.#cached(this.cache as ResultCache<T>, options.cacheKey, work, options)
        : await this.#fetch(work, options);
    if (fetched.ok || !options.fallback || !passes(fetched.failure)) return fetched;
    return this.#fallback(fetched, options.fallback, options.signal);
  }

  /** Ends timers and metrics of all policies. Calls in flight go on. Idempotent. */
  destroy(): void {
    this.#guard.destroy();
  }

  async #cached<T>(
    cache: ResultCache<T>,
    key: string,
    work: Work<T>,
    options: CallOptions<T>,
  ): Promise<Outcome<T>> {
    const hit = cache.get(key);
    const wanted = options.useCache !== false;
    if (wanted && hit?.state === 'fresh') {
      this.#countCache('hit');
      return answerOf(hit, 'cache');
    }
    if (wanted && hit?.state === 'stale') {
      this.#serveStale(hit);
      // Nobody waits for the new one: it must not end with this caller or at its deadline.
      const { signal: _signal, deadline: _deadline, ...background } = options;
      runWithDeadline(Deadline.never, () => this.#fly(cache, key, work, background)).promise.catch(
        () => {},
      );
      return answerOf(hit, 'stale');
    }
    const askedAt = hit ? this.#clock.now() : 0;
    const { promise, shared } = this.#fly(cache, key, work, options);
    this.#countCache(shared ? 'shared' : wanted ? 'miss' : 'bypass');
    let fetched: Outcome<T>;
    try {
      fetched = await (shared ? this.#noLongerThan(options, promise) : promise);
      if (shared) faultHook()?.adopt(fetched);
    } catch (error) {
      return { ok: false, error, failure: cancelled(this.name, error), attempts: 0 };
    }
    if (fetched.ok || !hit || !passes(fetched.failure)) return fetched;
    // It has grown older while the call failed.
    const stale = { ...hit, age: hit.age + this.#clock.now() - askedAt };
    if (stale.age >= cache.ttl + this.#staleIfError) return fetched;
    this.#serveStale(stale);
    return { ...answerOf(stale, 'stale'), failure: fetched.failure, attempts: fetched.attempts };
  }

  /** A flight ends with the deadline of who began it; who joined may have an earlier one. */
  #noLongerThan<T>(options: CallOptions<T>, flight: Promise<Outcome<T>>): Promise<Outcome<T>> {
    const call = this.#guard.call(options);
    const { deadline } = call;
    if (deadline === undefined) return flight;
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(deadline.remaining(), () => {
        const error = call.timedOut('deadline');
        resolve({ ok: false, error, failure: error.failure, attempts: 0 });
      });
      void flight.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  #fly<T>(
    cache: ResultCache<T>,
    key: string,
    work: Work<T>,
    options: CallOptions<T>,
  ): { promise: Promise<Outcome<T>>; shared: boolean } {
    const flights = this.#flights as unknown as SingleFlight<Outcome<T>>;
    return flights.run(key, options.signal, async (signal) => {
      const fetched = await this.#fetch(work, { ...options, signal });
      if (!fetched.ok || fetched.failure !== undefined) {
        faultHook()?.carry(fetched);
        return fetched;
      }
      cache.set(key, fetched.value);
      return { ...fetched, cachedUntil: this.#clock.wallTime() + cache.ttl };
    });
  }

  async #fetch<T>(work: Work<T>, options: CallOptions<T>): Promise<Outcome<T>> {
    const call = this.#guard.call(options);
    try {
      const value = await this.#guard.run(call, work, options);
      const failure = call.resultFailure;
      return {
        ok: true,
        value,
        source: 'call',
        attempts: call.attempts,
        ...(failure && { failure }),
      };
    } catch (error) {
      const failure = options.signal?.aborted
        ? cancelled(this.name, error)
        : this.#guard.classify(error);
      return { ok: false, error, failure, attempts: call.attempts };
    }
  }

  async #fallback<T>(
    failed: Outcome<T> & { ok: false },
    fallback: NonNullable<CallOptions<T>['fallback']>,
    signal: AbortSignal | undefined,
  ): Promise<Outcome<T>> {
    const { failure, attempts } = failed;
    let value: T | undefined;
    try {
      const asked = (async () => fallback(failure))();
      value = await (signal ? orAborted(asked, signal) : asked);
    } catch (error) {
      if (signal?.aborted) {
        const { reason } = signal;
        return { ok: false, error: reason, failure: cancelled(this.name, reason), attempts };
      }
      // The first failure says more about what is wrong than that of its replacement.
      diag.error(`fallback of "${this.name}" threw`, error);
    }
    if (value === undefined) return failed;
    const reason = boundedCode(failure.code);
    const attributes = { [ATTR.dependency]: this.name, [ATTR.reason]: reason };
    instruments().fallbacks.add(1, attributes);
    emitEvent(EVENT.fallbackUsed, 'warn', attributes);
    return { ok: true, value, source: 'fallback', attempts, failure };
  }

  #serveStale(hit: CacheHit<unknown>): void {
    this.#countCache('stale');
    emitEvent(EVENT.cacheStaleServed, 'info', {
      [ATTR.dependency]: this.name,
      [ATTR.cacheAge]: hit.age / 1000,
    });
  }

  #countCache(outcome: string): void {
    instruments().cacheRequests.add(1, { [ATTR.dependency]: this.name, [ATTR.outcome]: outcome });
  }
}

/**
 * Makes the pipeline of one dependency; see `Pipeline`.
 *
 * @throws SettingsError with every setting that is wrong, its path and its range
 *
 * @example
 * ```ts
 * import { createPipeline } from 'mcp-resilience';
 * const search = createPipeline('search', { timeout: 2_000, retry: { maxRetries: 1 }, breaker: {} });
 * const answer = await search.execute(({ signal }) => fetch('https://search.example/?q=otel', { signal }));
 * ```
 */
export const createPipeline = (
  name: string,
  settings: PolicySettings = {},
  options: PipelineOptions = {},
): Pipeline => new Pipeline(name, settings, options);

const NO_OPTIONS = {};

/** What never passes by itself is somebody's to mend: a lesser answer would only hide it. */
const passes = (failure: Failure): boolean => failure.severity !== 'permanent';

const answerOf = <T>(hit: CacheHit<T>, source: 'cache' | 'stale'): Outcome<T> & { ok: true } => ({
  ok: true,
  value: hit.value,
  source,
  attempts: 0,
  age: hit.age,
  cachedUntil: hit.cachedUntil,
});

const cancelled = (name: string, cause: unknown): Failure =>
  createFailure('CANCELLED', { message: `the caller cancelled the call to "${name}"`, cause });
