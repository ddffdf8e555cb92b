/**
 * @module
 * The inner part of a pipeline: everything between the cache and the work. One function walks
 * a call through the policies, so that whatever was taken is given back in one place.
 */
import { emitEvent, instruments } from '../telemetry/instruments.ts';
import { ATTR, EVENT } from '../telemetry/signals.ts';
import type { Work } from './attempt.ts';
import type { BreakerOutcome, BreakerPermit } from './breaker-model.ts';
import { Bulkhead } from './bulkhead.ts';
import { Call, type CallEnvironment, FailedAttempt } from './call.ts';
import type { CallOptions, PipelineOptions } from './call-options.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { currentDeadline, Deadline } from './deadline.ts';
import { classify, createFailure, type Failure, ResilienceError } from './failure.ts';
import { Hedge } from './hedge.ts';
import { type PolicySettings, usualProbeLease } from './policy.ts';
import { RateLimiter } from './rate-limiter.ts';
import { rejected } from './rejected.ts';
import { mayRepeat, Retry } from './retry.ts';
import { RetryBudget } from './retry-budget.ts';
import { ExpiryQueue } from './timeout.ts';

/** The live policies of one dependency, without cache and fallback. */
export class Guard {
  readonly name: string;
  readonly rateLimiter: RateLimiter | undefined;
  readonly bulkhead: Bulkhead | undefined;
  readonly breaker: CircuitBreaker | undefined;
  readonly retry: Retry | undefined;
  readonly hedge: Hedge | undefined;
  readonly #budget: RetryBudget | undefined;
  readonly #callBreaker: CircuitBreaker | undefined;
  readonly #clock: Clock;
  readonly #limit: number | undefined;
  readonly #adaptive: boolean;
  readonly classifyResult: PipelineOptions['classifyResult'];
  readonly #inject: PipelineOptions['inject'];
  readonly #env: CallEnvironment;

  /** @param settings checked and resolved by `Pipeline` */
  constructor(name: string, settings: PolicySettings, options: PipelineOptions) {
    const { deadline, timeout, rateLimit, bulkhead, breaker, retry, hedge } = settings;
    const clock = options.clock ?? systemClock;
    const env = { clock };
    this.name = name;
    this.#clock = clock;
    this.#limit = deadline;
    this.rateLimiter = rateLimit ? new RateLimiter(name, rateLimit, env) : undefined;
    this.bulkhead = bulkhead ? new Bulkhead(name, bulkhead, env) : undefined;
    this.#adaptive = bulkhead ? typeof bulkhead.limit === 'object' : false;
    this.retry = retry ? new Retry(retry, options) : undefined;
    this.hedge = hedge ? new Hedge(hedge) : undefined;
    // A probe may take as long as a call may: a shorter lease would never let one decide.
    const probeLease = usualProbeLease(settings);
    this.breaker = breaker
      ? new CircuitBreaker(name, probeLease ? { probeLease, ...breaker } : breaker, env)
      : undefined;
    const perAttempt = breaker ? breaker.scope === 'attempt' : false;
    this.#callBreaker = perAttempt ? undefined : this.breaker;
    this.#budget = this.retry ? this.retry.budget : hedge ? new RetryBudget() : undefined;
    const { classifier } = options;
    this.classifyResult = options.classifyResult;
    this.#inject = options.inject;
    const classifyOptions = { ...(classifier && { classifier }), wallTime: () => clock.wallTime() };
    this.#env = {
      name,
      clock,
      expiry: timeout === undefined ? undefined : new ExpiryQueue(clock, timeout),
      timeout: timeout ?? Number.POSITIVE_INFINITY,
      attemptBreaker: perAttempt ? this.breaker : undefined,
      classify: (error) => classify(error, classifyOptions),
      failed: (error) =>
        error instanceof FailedAttempt
          ? error
          : new FailedAttempt(error, () => this.classify(error)),
    };
  }

  /** A new call. The deadline is by default the earliest of those that hold for it. */
  call<T>(
    options: CallOptions<T>,
    deadline: Deadline | undefined = this.#deadline(options),
  ): Call<T> {
    const { signal, classifyResult = this.classifyResult } = options;
    return new Call<T>(this.#env, deadline, signal, classifyResult);
  }

  classify(error: unknown): Failure {
    return this.#env.classify(error);
  }

  destroy(): void {
    this.breaker?.destroy();
    this.bulkhead?.destroy();
    this.#env.expiry?.destroy();
  }

  /** Walks the call through the policies; see `Pipeline.execute` for what it rejects with. */
  run<T>(call: Call<T>, work: Work<T>, options: CallOptions<T>): Promise<T> {
    const { rateLimitKey, priority } = options;
    const gone = goneIn(call);
    if (gone) return gone;
    if (this.#inject) work = injected(this.name, this.#inject, work);
    const { rateLimiter } = this;
    if (rateLimiter && rateLimiter.tryTake(rateLimitKey, undefined, priority) !== 0) {
      const turn = rateLimiter.take(rateLimitKey, waiting(call, options));
      return turn.then(() => goneIn(call) ?? this.#enter(call, work, options));
    }
    return this.#enter(call, work, options);
  }

  #enter<T>(call: Call<T>, work: Work<T>, options: CallOptions<T>): Promise<T> {
    const { bulkhead } = this;
    if (bulkhead && !bulkhead.tryAcquire(options.priority)) {
      const place = bulkhead.acquire(waiting(call, options));
      return place.then(() => {
        call.holds(bulkhead);
        const gone = goneIn(call);
        if (gone) call.end();
        return gone ?? this.#start(call, work, options);
      });
    }
    if (bulkhead) call.holds(bulkhead);
    return this.#start(call, work, options);
  }

  #start<T>(call: Call<T>, work: Work<T>, options: CallOptions<T>): Promise<T> {
    const breaker = this.#callBreaker;
    const permit = breaker?.tryAcquire();
    if (breaker && permit === undefined) {
      call.end();
      return rejected(breaker.refuse());
    }
    return this.#attempts(call, work, options, permit);
  }

  async #attempts<T>(
    call: Call<T>,
    work: Work<T>,
    options: CallOptions<T>,
    permit: BreakerPermit | undefined,
  ): Promise<T> {
    const { signal, idempotent = true } = options;
    const breaker = this.#callBreaker;
    const started = breaker?.timed ? this.#clock.now() : 0;
    let outcome: BreakerOutcome = 'ignored';
    let previousDelay = 0;
    let previous: FailedAttempt | undefined;
    this.#budget?.onCall(this.#clock.now());
    if (this.#adaptive) call.startedAt = this.#clock.now();
    try {
      for (let round = 1; ; round++) {
        try {
          const value = await (this.hedge && idempotent
            ? this.#race(this.hedge, call, work, round > 1)
            : call.launch(work));
          outcome = 'success';
          call.succeeded = true;
          return value;
        } catch (caught) {
          if (signal?.aborted) throw signal.reason;
          // A breaker that opens between two attempts ends the call, and says less than they did.
          let failed = this.#env.failed(caught);
          const tripped = this.breaker?.refused(failed.error) === true;
          if (tripped && previous) failed = previous;
          const { error, failure } = failed;
          const next = tripped
            ? undefined
            : this.#next(failure, call, round, idempotent, previousDelay);
          if (next !== undefined) {
            await sleep(this.#clock, next, signal);
            if (signal?.aborted) throw signal.reason;
            // A process that was blocked may wake when the time for another attempt is over.
            if (!call.deadline?.expired) {
              previousDelay = next;
              previous = failed;
              continue;
            }
          }
          outcome = failure.weight === 'infrastructure' ? 'failure' : 'ignored';
          call.failed(failure);
          if (failed.isResult) return error as T;
          if (mayRepeat(failure, idempotent) || failure.delivery !== 'lost') throw error;
          const unknown = outcomeUnknown(this.name, failure, error);
          call.failure = unknown.failure;
          throw unknown;
        }
      }
    } finally {
      if (permit) breaker?.settle(permit, outcome, started);
      call.end();
    }
  }

  /** Milliseconds until the next attempt, announced; undefined when there is none. */
  #next<T>(
    failure: Failure,
    call: Call<T>,
    round: number,
    idempotent: boolean,
    previousDelay: number,
  ): number | undefined {
    const decision = this.retry?.decide({
      failure,
      attempt: round,
      idempotent,
      remaining: call.deadline?.remaining() ?? Number.POSITIVE_INFINITY,
      previousDelay,
      now: this.#clock.now(),
    });
    if (typeof decision === 'number') {
      emitEvent(EVENT.retryScheduled, 'info', {
        [ATTR.dependency]: this.name,
        [ATTR.attempt]: round + 1,
        [ATTR.delay]: decision / 1000,
        [ATTR.failureCode]: failure.code,
      });
      return decision;
    }
    if (decision === 'budget') {
      const outcome = { [ATTR.dependency]: this.name, [ATTR.outcome]: 'budget_exhausted' };
      instruments().retryAttempts.add(1, outcome);
    }
    return undefined;
  }

  #race<T>(hedge: Hedge, call: Call<T>, work: Work<T>, retry: boolean): Promise<T> {
    const counted = (outcome: string) =>
      instruments().hedges.add(1, { [ATTR.dependency]: this.name, [ATTR.outcome]: outcome });
    let first = true;
    return hedge.race<T>({
      clock: this.#clock,
      launch: () => {
        const racer = call.launchRacer(work, retry && first);
        first = false;
        return racer;
      },
      mayHedge: () => {
        if (call.callerSignal?.aborted) return false;
        const may = this.#budget?.tryTake(this.#clock.now()) ?? true;
        if (!may) counted('budget_exhausted');
        return may;
      },
      isFatal: (error) => {
        // A hedge that the breaker refused says nothing of the attempts that are out.
        const failed = this.#env.failed(error);
        if (this.breaker?.refused(failed.error)) return false;
        return call.callerSignal?.aborted === true || !failed.failure.retryable;
      },
      onHedge: (outcome) => {
        counted(outcome);
        if (outcome === 'won') emitEvent(EVENT.hedgeWon, 'info', { [ATTR.dependency]: this.name });
      },
    });
  }

  /** The earliest of the settings' deadline, the caller's, and that of the call around this one. */
  #deadline<T>(options: CallOptions<T>): Deadline | undefined {
    let earliest = currentDeadline();
    if (options.deadline) earliest = options.deadline.earlier(earliest);
    if (this.#limit !== undefined) {
      earliest = Deadline.after(this.#limit, this.#clock).earlier(earliest);
    }
    return earliest?.at === Number.POSITIVE_INFINITY ? undefined : earliest;
  }
}

const injected =
  <T>(name: string, inject: NonNullable<PipelineOptions['inject']>, work: Work<T>): Work<T> =>
  (context) =>
    inject(name, context, () => work(context));

/** Set when nobody waits for the answer any more, as may come to pass while a call waits. */
const goneIn = <T>(call: Call<T>): Promise<never> | undefined => {
  if (call.callerSignal?.aborted) return rejected(call.callerSignal.reason);
  return call.deadline?.expired ? rejected(call.timedOut('deadline')) : undefined;
};

const waiting = <T>({ callerSignal, deadline }: Call<T>, { priority }: CallOptions<T>) => ({
  signal: callerSignal,
  deadline,
  priority,
});

const outcomeUnknown = (name: string, failure: Failure, cause: unknown): ResilienceError => {
  const message = `the answer of "${name}" was lost (${failure.code}): the work may have been done`;
  return new ResilienceError(createFailure('OUTCOME_UNKNOWN', { message, cause }));
};
