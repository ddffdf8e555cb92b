/**
 * @module
 * How long to wait before the next attempt. Pure arithmetic: every result lies in [0, max],
 * for every attempt number, every setting and every random source.
 */
import { type Random, systemRandom } from './clock.ts';

/**
 * How randomness spreads the waits of many callers, so that they do not come back together
 * ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015):
 * - `full`: anywhere in [0, wait]; the default, and the least load for the same time to success
 * - `equal`: anywhere in [wait / 2, wait]
 * - `decorrelated`: anywhere in [base, 3 x the previous wait]
 * - `none`: exactly the wait
 *
 * @example
 * ```ts
 * import { createPipeline, type Jitter } from 'mcp-resilience';
 * const jitter: Jitter = 'decorrelated';
 * const billing = createPipeline('billing', { retry: { baseDelay: 200, jitter } });
 * ```
 */
export type Jitter = 'none' | 'full' | 'equal' | 'decorrelated';

/**
 * Settings of `backoffDelay`, all resolved.
 *
 * @example
 * ```ts
 * import { type Backoff, backoffDelay } from 'mcp-resilience';
 * const settings: Backoff = { baseDelay: 100, maxDelay: 500, factor: 3, jitter: 'none' };
 * [1, 2, 3].map((attempt) => backoffDelay(settings, attempt)); // [100, 300, 500]
 * ```
 */
export interface Backoff {
  /** Milliseconds before the second attempt. */
  readonly baseDelay: number;
  /** Longest wait, in milliseconds. */
  readonly maxDelay: number;
  /** What each wait is multiplied with for the next one. */
  readonly factor: number;
  readonly jitter: Jitter;
}

const clamp = (value: number, max: number): number =>
  // NaN (an infinite power times zero, a random source gone wrong) counts as the cap.
  value >= 0 ? Math.min(value, max) : value < 0 ? 0 : max;

/**
 * Milliseconds to wait after failed attempt `attempt` (1 for the first).
 *
 * @param previous the wait before this one, for `decorrelated`; 0 when there was none
 *
 * @example
 * ```ts
 * import { backoffDelay } from 'mcp-resilience';
 * const settings = { baseDelay: 500, maxDelay: 30_000, factor: 2, jitter: 'none' } as const;
 * [1, 2, 3].map((attempt) => backoffDelay(settings, attempt)); // [500, 1000, 2000]
 * ```
 */
export const backoffDelay = (
  settings: Backoff,
  attempt: number,
  random: Random = systemRandom,
  previous = 0,
): number => {
  const { baseDelay, maxDelay, factor, jitter } = settings;
  if (jitter === 'decorrelated') {
    const low = Math.min(baseDelay, maxDelay);
    const high = Math.max(low, Math.min(maxDelay, 3 * (previous > 0 ? previous : baseDelay)));
    return clamp(low + random() * (high - low), maxDelay);
  }
  const wait = clamp(baseDelay * factor ** (Math.max(1, attempt) - 1), maxDelay);
  if (jitter === 'none') return wait;
  if (jitter === 'equal') return clamp(wait / 2 + (random() * wait) / 2, maxDelay);
  return clamp(random() * wait, maxDelay);
};
