/**
 * @module
 * One protected call on its way through a pipeline: its limits, the place it holds, the
 * attempts it has made. Everything that must be given back is given back here.
 */
import { type Context, context, diag, trace } from '@opentelemetry/api';
import {
  emitEvent,
  endSpan,
  faultHook,
  faultMarks,
  instruments,
  startChildSpan,
} from '../telemetry/instruments.ts';
import { ATTR, attemptSpanName, EVENT } from '../telemetry/signals.ts';
import { saysOverload } from './adaptive-limit.ts';
import { Attempt, type AttemptHost, type Work } from './attempt.ts';
import type { BreakerPermit } from './breaker-model.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { Clock } from './clock.ts';
import type { Deadline } from './deadline.ts';
import { createFailure, type Failure, ResilienceError } from './failure.ts';
import type { Racer } from './hedge.ts';
import type { ExpiryQueue } from './timeout.ts';

/** A result that a classifier took for a failure: thrown inside, handed out as the result. */
export class FailedResult<T> {
  readonly value: T;
  readonly failure: Failure;

  constructor(value: T, failure: Failure) {
    this.value = value;
    this.failure = failure;
  }
}

/** What the calls of one pipeline have in common. */
export interface CallEnvironment {
  readonly name: string;
  readonly clock: Clock;
  readonly expiry: ExpiryQueue | undefined;
  readonly timeout: number;
  /** The breaker, when it counts attempts. */
  readonly attemptBreaker: CircuitBreaker | undefined;
  classify(error: unknown): Failure;
  /** Gives the place in the bulkhead back, with what an adaptive limit learns from the call. */
  release(rtt: number | undefined, dropped: boolean): void;
}

export class Call<T> implements AttemptHost {
  readonly clock: Clock;
  readonly expiry: ExpiryQueue | undefined;
  readonly timeout: number;
  readonly deadline: Deadline | undefined;
  readonly callerSignal: AbortSignal | undefined;
  /** Attempts started, hedges included. */
  attempts = 0;
  holdsPlace = false;
  /** When its first attempt began, where somebody wants to know how long it took. */
  startedAt: number | undefined = undefined;
  succeeded = false;
  /** The failure that the result itself tells of, if it does. */
  resultFailure: Failure | undefined = undefined;
  readonly #env: CallEnvironment;
  readonly #classifyResult: ((value: T) => Failure | undefined) | undefined;
  /** Where events belong that happen when nothing of the call runs: its time is up. */
  readonly #context: Context | undefined;
  /** The same for fault injection; undefined without it. */
  readonly #subject: object | undefined;
  #overloaded = false;
  #deadlinePassed: ResilienceError | undefined = undefined;
  #working = 0;
  #over = false;

  constructor(
    env: CallEnvironment,
    deadline: Deadline | undefined,
    signal: AbortSignal | undefined,
    classifyResult: ((value: T) => Failure | undefined) | undefined,
  ) {
    this.#env = env;
    this.#classifyResult = classifyResult;
    this.clock = env.clock;
    this.expiry = env.expiry;
    this.timeout = env.timeout;
    this.deadline = deadline;
    this.callerSignal = signal;
    this.#context = env.expiry || deadline ? context.active() : undefined;
    this.#subject = faultHook()?.call();
  }

  /** Starts the next attempt. */
  launch(work: Work<T>): Promise<T> {
    if (this.attempts === 0 && !this.#env.attemptBreaker && !this.#classifyResult) {
      this.attempts = 1;
      this.#working++;
      return new Attempt<T>(this, 1).run(work);
    }
    return this.#launch(work, this.attempts > 0).promise;
  }

  /** Starts the next attempt of a race; `retry` tells a race that is a retry from a hedge. */
  launchRacer(work: Work<T>, retry: boolean): Racer<T> {
    return this.#launch(work, retry);
  }

  #launch(work: Work<T>, retry: boolean): Racer<T> {
    const { attemptBreaker, classify } = this.#env;
    const permit = attemptBreaker?.tryAcquire();
    if (attemptBreaker && !permit) {
      return { promise: Promise.reject(attemptBreaker.refuse()), abandon() {} };
    }
    this.#working++;
    const attempt = new Attempt<T>(this, ++this.attempts);
    let abandoned = false;
    const givenUp = () => abandoned || this.callerSignal?.aborted === true;
    const started = this.clock.now();
    const promise = this.#observe(attempt.attempt, retry, givenUp, () => attempt.run(work)).then(
      (value) => {
        this.#settle(permit, 'success', started);
        return value;
      },
      (error: unknown) => {
        const failed = !givenUp() && classify(failureOf(error)).weight === 'infrastructure';
        this.#settle(permit, failed ? 'failure' : 'ignored', started);
        throw error;
      },
    );
    return {
      promise,
      abandon: (reason) => {
        abandoned = true;
        attempt.abandon(reason);
      },
    };
  }

  #settle(
    permit: BreakerPermit | undefined,
    outcome: 'success' | 'failure' | 'ignored',
    started: number,
  ): void {
    if (permit) this.#env.attemptBreaker?.settle(permit, outcome, started);
  }

  /** A classifier that throws is passed over: it must not lose an answer that is there. */
  #failureIn(value: T): Failure | undefined {
    try {
      return this.#classifyResult?.(value);
    } catch (error) {
      diag.error(`classifyResult of "${this.#env.name}" threw`, error);
      return undefined;
    }
  }

  /** Judges the result; traces the second and later attempts, and counts those that are retries. */
  async #observe(
    number: number,
    retry: boolean,
    givenUp: () => boolean,
    run: () => Promise<T>,
  ): Promise<T> {
    const { name, classify } = this.#env;
    const judged = async (): Promise<T> => {
      const value = await run();
      const failure = this.#failureIn(value);
      if (failure) throw new FailedResult(value, failure);
      return value;
    };
    if (number === 1) return judged();
    const attributes = { [ATTR.dependency]: name, [ATTR.attempt]: number };
    const span = startChildSpan(attemptSpanName(number), attributes);
    const counted = (outcome: string) =>
      retry &&
      instruments().retryAttempts.add(1, { [ATTR.dependency]: name, [ATTR.outcome]: outcome });
    try {
      const value = span
        ? await context.with(trace.setSpan(context.active(), span), judged)
        : await judged();
      counted('success');
      return value;
    } catch (error) {
      const failure = classify(failureOf(error));
      span?.setAttribute(ATTR.failureCode, failure.code);
      // Cancelled, or made needless by a hedge: it has not failed.
      if (!givenUp()) counted('failure');
      throw error;
    } finally {
      endSpan(span);
    }
  }

  timedOut(reason: 'attempt' | 'deadline', attempt: number = this.attempts): ResilienceError {
    // The deadline ends all attempts that are out, but passes once.
    if (reason === 'deadline' && this.#deadlinePassed) return this.#deadlinePassed;
    const { name, timeout } = this.#env;
    const attributes = {
      [ATTR.dependency]: name,
      [ATTR.reason]: reason,
      ...(this.#subject && faultMarks(this.#subject)),
    };
    context.with(this.#context ?? context.active(), () => {
      instruments().timeouts.add(1, attributes);
      emitEvent(EVENT.timeoutExceeded, 'warn', { ...attributes, [ATTR.attempt]: attempt });
    });
    if (reason === 'attempt') {
      const message = `"${name}" did not answer within ${timeout} ms`;
      return new ResilienceError(createFailure('TIMEOUT', { message }));
    }
    const message = `the deadline passed before "${name}" had answered`;
    this.#deadlinePassed = new ResilienceError(createFailure('DEADLINE_EXCEEDED', { message }));
    return this.#deadlinePassed;
  }

  workEnded(): void {
    this.#working--;
    this.#giveBack();
  }

  /** The caller has its answer; work that was given up may still be running. */
  end(): void {
    this.#over = true;
    this.#giveBack();
  }

  /** It has failed for good: tells an adaptive limit whether its dependency has too much to do. */
  failed(failure: Failure): void {
    this.#overloaded = saysOverload(failure);
  }

  // Work that nobody waits for any more still uses the dependency, so the place is held until
  // all of it has ended.
  #giveBack(): void {
    if (!this.#over || this.#working > 0 || !this.holdsPlace) return;
    this.holdsPlace = false;
    // Only one undisturbed attempt tells how long the dependency takes.
    const telling = this.#overloaded || (this.succeeded && this.attempts === 1);
    const { startedAt } = this;
    const rtt = telling && startedAt !== undefined ? this.clock.now() - startedAt : undefined;
    this.#env.release(rtt, this.#overloaded);
  }
}

/** What a policy threw, or the failure in a result that was judged one. */
export const failureOf = (error: unknown): unknown =>
  error instanceof FailedResult ? new ResilienceError(error.failure) : error;
