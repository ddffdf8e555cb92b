/**
 * @module
 * Whether a failed attempt is followed by another one, and when. A pure decision: the pipeline
 * does the waiting.
 */
import { type Backoff, backoffDelay } from './backoff.ts';
import { type Random, systemRandom } from './clock.ts';
import type { Failure } from './failure.ts';
import { type RetrySettings, retryRules } from './policy.ts';
import { RetryBudget } from './retry-budget.ts';
import { resolve } from './settings.ts';

/** Why a call is not tried again. */
export type GiveUpReason =
  | 'not_retryable'
  | 'not_idempotent'
  | 'exhausted'
  | 'deadline'
  | 'retry_after'
  | 'budget';

/** What a decision is made from. */
export interface FailedAttempt {
  readonly failure: Failure;
  /** Attempts made so far, this one included. */
  readonly attempt: number;
  /** Whether executing the work twice does no harm. */
  readonly idempotent: boolean;
  /** Milliseconds until the deadline of the call; `Infinity` without one. */
  readonly remaining: number;
  /** The wait before this attempt, in milliseconds; 0 for the first. */
  readonly previousDelay: number;
  readonly now: number;
}

/**
 * Work may be repeated if that does no harm, or if it is known that nothing was executed:
 * the request was never sent, or the peer refused to process it.
 */
export const mayRepeat = (failure: Failure, idempotent: boolean): boolean =>
  idempotent || failure.delivery === 'not_sent' || failure.delivery === 'refused';

/**
 * The retry policy of one dependency: decides, and leaves the waiting to its caller. A pipeline
 * uses it by itself; alone it serves who has a loop of his own.
 *
 * @example
 * ```ts
 * import { classify, Retry, systemClock } from 'mcp-resilience';
 * const retry = new Retry({ maxRetries: 3, baseDelay: 200 });
 * const next = retry.decide({
 *   failure: classify(new Response(null, { status: 503 })),
 *   attempt: 1,
 *   idempotent: true,
 *   remaining: 5_000,
 *   previousDelay: 0,
 *   now: systemClock.now(),
 * });
 * if (typeof next === 'number') console.error(`again in ${next} ms`);
 * else console.error(`not again: ${next}`); // such as 'exhausted' or 'budget'
 * ```
 */
export class Retry {
  readonly budget: RetryBudget | undefined;
  readonly #maxAttempts: number;
  readonly #backoff: Backoff;
  readonly #respectRetryAfter: boolean;
  readonly #random: Random;

  /** @throws SettingsError naming the setting, its range and the value given */
  constructor(settings: RetrySettings = {}, env: { random?: Random } = {}) {
    const { budget, ...rest } = resolve(retryRules, settings, 'retry') as Required<RetrySettings>;
    this.#maxAttempts = rest.maxRetries + 1;
    this.#backoff = rest;
    this.#respectRetryAfter = rest.respectRetryAfter;
    this.#random = env.random ?? systemRandom;
    this.budget = budget === false ? undefined : new RetryBudget(budget ?? {});
  }

  /**
   * Milliseconds to wait before the next attempt, or the reason why there is none. A wait that
   * would not end before the deadline is not begun. Retry-After is never shortened: one that is
   * longer than `maxDelay` ends the call, and jitter is added on top of it.
   */
  decide(failed: FailedAttempt): number | GiveUpReason {
    const { failure, attempt, remaining, previousDelay, now } = failed;
    if (!failure.retryable || failure.weight === 'caller') return 'not_retryable';
    if (!mayRepeat(failure, failed.idempotent)) return 'not_idempotent';
    if (attempt >= this.#maxAttempts) return 'exhausted';
    let delay = backoffDelay(this.#backoff, attempt, this.#random, previousDelay);
    const { retryAfter = Number.NaN } = failure;
    if (this.#respectRetryAfter && retryAfter >= 0) {
      const asked = retryAfter * 1000;
      if (asked > this.#backoff.maxDelay) return 'retry_after';
      delay = Math.min(
        asked + this.#random() * Math.min(asked, 1_000) * 0.1,
        this.#backoff.maxDelay,
      );
      if (delay >= remaining) return 'retry_after';
    }
    if (delay >= remaining) return 'deadline';
    if (this.budget && !this.budget.tryTake(now)) return 'budget';
    return delay;
  }
}
