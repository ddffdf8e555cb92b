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
import type { BreakerOutcome, BreakerPermit } from './breaker-model.ts';
import type { Bulkhead } from './bulkhead.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { Clock } from './clock.ts';
import type { Deadline } from './deadline.ts';
import { createFailure, type Failure, ResilienceError } from './failure.ts';
import type { Racer } from './hedge.ts';
import type { ExpiryQueue } from './timeout.ts';

/**
 * How an attempt failed. Thrown inside, so that everybody who asks what it was has one answer: a
 * classifier of the user's may be dear, or count.
 */
export class FailedAttempt {
  /** What was thrown; or the result that a classifier took for a failure, handed out in the end. */
  readonly error: unknown;
  readonly isResult: boolean;
  readonly #classify: () => Failure;
  #failure: Failure | undefined;

  constructor(error: unknown, classify: () => Failure, isResult = false) {
    this.error = error;
    this.isResult = isResult;
    this.#classify = classify;
  }

  get failure(): Failure {
    this.#failure ??= this.#classify();
    return this.#failure;
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
  /** What was thrown on the way of an attempt, with what it means. */
  failed(error: unknown): FailedAttempt;
}

export class Call<T> implements AttemptHost {
  readonly clock: Clock;
  readonly expiry: ExpiryQueue | undefined;
  readonly timeout: number;
  readonly deadline: Deadline | undefined;
  readonly callerSignal: AbortSignal | undefined;
  /** Attempts started, hedges included. */
  attempts = 0;
  /** When its first attempt began, where somebody wants to know how long it took. */
  startedAt: number | undefined = undefined;
  succeeded = false;
  /** How it has failed in the end: what `run` throws, or what the result tells of. */
  failure: Failure | undefined = undefined;
  readonly #env: CallEnvironment;
  readonly #classifyResult: ((value: T) => Failure | undefined) | undefined;
  /** Where events belong that happen when nothing of the call runs: its time is up. */
  readonly #context: Context | undefined;
  /** The same for fault injection; undefined without it. */
  readonly #subject: object | undefined;
  /** Where it holds a place. */
  #places: Bulkhead | undefined = undefined;
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
    const { attemptBreaker } = this.#env;
    const permit = attemptBreaker?.tryAcquire();
    if (attemptBreaker && !permit) {
      return { promise: Promise.reject(attemptBreaker.refuse()), abandon() {} };
    }
    this.#working++;
    const attempt = new Attempt<T>(this, ++this.attempts);
    let abandoned = false;
    const givenUp = () => abandoned || this.callerSignal?.aborted === true;
    return {
      promise: this.#observe(attempt, work, retry, permit, givenUp),
      abandon: (reason) => {
        abandoned = true;
        attempt.abandon(reason);
      },
    };
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

  /**
   * Judges the result; traces the second and later attempts, counts those that are retries, and
   * tells the breaker that counts attempts.
   *
   * @throws FailedAttempt
   */
  async #observe(
    attempt: Attempt<T>,
    work: Work<T>,
    retry: boolean,
    permit: BreakerPermit | undefined,
    givenUp: () => boolean,
  ): Promise<T> {
    const { name, attemptBreaker } = this.#env;
    const started = this.clock.now();
    const judged = async (): Promise<T> => {
      const value = await attempt.run(work);
      const failure = this.#failureIn(value);
      if (failure) {
        const classify = () => this.#env.classify(new ResilienceError(failure));
        throw new FailedAttempt(value, classify, true);
      }
      return value;
    };
    const number = attempt.attempt;
    const attributes = { [ATTR.dependency]: name, [ATTR.attempt]: number };
    const span = number > 1 ? startChildSpan(attemptSpanName(number), attributes) : undefined;
    const counted = (outcome: string) =>
      retry &&
      instruments().retryAttempts.add(1, { [ATTR.dependency]: name, [ATTR.outcome]: outcome });
    let outcome: BreakerOutcome = 'ignored';
    try {
      const value = span
        ? await context.with(trace.setSpan(context.active(), span), judged)
        : await judged();
      outcome = 'success';
      counted(outcome);
      return value;
    } catch (error) {
      const failed = this.#env.failed(error);
      span?.setAttribute(ATTR.failureCode, failed.failure.code);
      // Cancelled, or made needless by a hedge: it has not failed.
      if (!givenUp()) {
        counted('failure');
        if (permit && failed.failure.weight === 'infrastructure') outcome = 'failure';
      }
      throw failed;
    } finally {
      endSpan(span);
      if (permit) attemptBreaker?.settle(permit, outcome, started);
    }
  }

  /** @param cause what had failed before, while the time that was left went by */
  timedOut(
    reason: 'attempt' | 'deadline',
    attempt: number = this.attempts,
    cause?: unknown,
  ): ResilienceError {
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
    const failure = createFailure('DEADLINE_EXCEEDED', { message, cause });
    this.#deadlinePassed = new ResilienceError(failure);
    return this.#deadlinePassed;
  }

  /** Has a place, until all that it does there has ended. */
  holds(places: Bulkhead): void {
    this.#places = places;
    if (this.#subject) faultHook()?.hold(places, this.#subject, 1);
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
    this.failure = failure;
    this.#overloaded = saysOverload(failure);
  }

  // Work that nobody waits for any more still uses the dependency, so the place is held until
  // all of it has ended.
  #giveBack(): void {
    const places = this.#places;
    if (!this.#over || this.#working > 0 || places === undefined) return;
    this.#places = undefined;
    // Only one undisturbed attempt tells how long the dependency takes.
    const telling = this.#overloaded || (this.succeeded && this.attempts === 1);
    const { startedAt } = this;
    const rtt = telling && startedAt !== undefined ? this.clock.now() - startedAt : undefined;
    if (this.#subject) faultHook()?.hold(places, this.#subject, -1);
    places.release(rtt, this.#overloaded);
  }
}
