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
import type { Call } from './call.ts';
import type { CallOptions, PipelineOptions } from './call-options.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import { type Clock, systemClock } from './clock.ts';
import { Deadline, runWithDeadline } from './deadline.ts';
import { createFailure, type Failure } from './failure.ts';
import { Guard } from './guard.ts';
import type { Hedge } from './hedge.ts';
import { waitFor } from './or-aborted.ts';
import { type PolicySettings, policyRules } from './policy.ts';
import type { RateLimiter } from './rate-limiter.ts';
import type { Retry } from './retry.ts';
import { resolve } from './settings.ts';
import { apart, SingleFlight } from './single-flight.ts';

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
   * `RATE_LIMIT_EXCEEDED`, `BULKHEAD_FULL`, `DEADLINE_EXCEEDED`, `OUTCOME_UNKNOWN`;
   * `INTERNAL_ERROR` for work that waits for its own `cacheKey`)
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
  outcome<T>(work: Work<T>, options: CallOptions<T> = NO_OPTIONS): Promise<Outcome<T>> {
    const key = this.cache && options.cacheKey;
    return key === undefined ? this.#uncached(work, options) : this.#cached(key, work, options);
  }

  /** Ends timers and metrics of all policies. Calls in flight go on. Idempotent. */
  destroy(): void {
    this.#guard.destroy();
  }

  async #uncached<T>(work: Work<T>, options: CallOptions<T>): Promise<Outcome<T>> {
    const call = this.#guard.call(options);
    const fetched = await this.#fetch(call, work, options);
    return fetched.ok ? fetched : this.#orFallback(fetched, call, options);
  }

  async #cached<T>(key: string, work: Work<T>, options: CallOptions<T>): Promise<Outcome<T>> {
    const cache = this.cache as ResultCache<T>;
    const { useCache = true } = options;
    const hit = cache.get(key);
    if (useCache && hit?.state === 'fresh') {
      this.#countCache('hit');
      return answerOf(hit, 'cache');
    }
    if (useCache && hit?.state === 'stale') {
      this.#serveStale(hit);
      // Nobody waits for the new one: it must not end with this caller or at its deadline.
      const { signal: _signal, deadline: _deadline, ...background } = options;
      const refresh = () => this.#fly(cache, key, this.#guard.call(background), work, background);
      apart(() => runWithDeadline(Deadline.never, refresh));
      return answerOf(hit, 'stale');
    }
    const call = this.#guard.call(options);
    const askedAt = hit ? this.#clock.now() : 0;
    const { promise, shared } = this.#fly(cache, key, call, work, options);
    this.#countCache(shared ? 'shared' : useCache ? 'miss' : 'bypass');
    const fetched = await promise;
    if (shared) faultHook()?.adopt(fetched);
    if (fetched.ok) return fetched;
    if (hit && passes(fetched.failure)) {
      // It has grown older while the call failed.
      const stale = { ...hit, age: hit.age + this.#clock.now() - askedAt };
      if (stale.age < cache.ttl + this.#staleIfError) {
        this.#serveStale(stale);
        const { failure, attempts } = fetched;
        return { ...answerOf(stale, 'stale'), failure, attempts };
      }
    }
    return this.#orFallback(fetched, call, options);
  }

  #fly<T>(
    cache: ResultCache<T>,
    key: string,
    passenger: Call<T>,
    work: Work<T>,
    options: CallOptions<T>,
  ): { promise: Promise<Outcome<T>>; shared: boolean } {
    const flights = this.#flights as unknown as SingleFlight<Outcome<T>>;
    let call: Call<T> | undefined;
    const start = async (signal: AbortSignal, deadline: Deadline | undefined) => {
      const flight = { ...options, signal };
      call = this.#guard.call(flight, deadline);
      const fetched = await this.#fetch(call, work, flight);
      if (!fetched.ok || fetched.failure !== undefined) {
        faultHook()?.carry(fetched);
        return fetched;
      }
      cache.set(key, fetched.value);
      return { ...fetched, cachedUntil: this.#clock.wallTime() + cache.ttl };
    };
    const { promise, shared } = flights.run(key, options.signal, start, passenger);
    // Rejects when this caller leaves; the attempts are those of who began it.
    const told = (error: unknown) => this.#failed<T>(error, passenger, call?.attempts);
    return { promise: promise.catch(told), shared };
  }

  async #fetch<T>(call: Call<T>, work: Work<T>, options: CallOptions<T>): Promise<Outcome<T>> {
    try {
      const value = await this.#guard.run(call, work, options);
      const { attempts, failure } = call;
      return { ok: true, value, source: 'call', attempts, ...(failure && { failure }) };
    } catch (error) {
      return this.#failed(error, call);
    }
  }

  #failed<T>(error: unknown, call: Call<T>, attempts = call.attempts): Outcome<T> & { ok: false } {
    const failure = call.callerSignal?.aborted
      ? cancelled(this.name, error)
      : (call.failure ?? this.#guard.classify(error));
    return { ok: false, error, failure, attempts };
  }

  async #orFallback<T>(
    failed: Outcome<T> & { ok: false },
    call: Call<T>,
    { fallback }: CallOptions<T>,
  ): Promise<Outcome<T>> {
    const { failure, attempts } = failed;
    if (!fallback || !passes(failure)) return failed;
    const { callerSignal: signal, clock, deadline } = call;
    let value: T | undefined;
    try {
      const ask = async () => fallback(failure);
      const wait = waitFor(deadline ? runWithDeadline(deadline, ask) : ask(), signal);
      if (deadline) wait.leaveAt(deadline, clock, () => LATE);
      value = await wait.promise;
    } catch (error) {
      if (signal?.aborted) {
        const { reason } = signal;
        return { ...failed, error: reason, failure: cancelled(this.name, reason) };
      }
      if (error === LATE) {
        if (failure.code === 'DEADLINE_EXCEEDED') return failed;
        const late = call.timedOut('deadline', attempts, failed.error);
        return { ...failed, error: late, failure: late.failure };
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

/** The deadline passed before the fallback had answered. */
const LATE = Symbol();

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
