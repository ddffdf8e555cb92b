/**
 * @module
 * The settings of one dependency: what each means, its unit, its range and its default.
 * All durations are milliseconds. A group that is absent costs nothing and does nothing;
 * `false` switches off one that a preset set.
 */
import type { Jitter } from './backoff.ts';
import type { RetryBudgetSettings } from './retry-budget.ts';
import { count, DAY, ms, orGroup, type Rules, ratio, required } from './settings.ts';

/**
 * Who waits for the answer: under pressure background work is shed first. Default `interactive`.
 *
 * @example
 * ```ts
 * import { type CallContext, createPipeline, type Priority } from 'mcp-resilience';
 * const priority: Priority = 'background';
 * const search = createPipeline('search', { bulkhead: { limit: 10, queue: 20 } });
 * const index = ({ signal }: CallContext) => fetch('https://search.example/all', { signal });
 * await search.execute(index, { priority });
 * ```
 */
export type Priority = 'interactive' | 'background';

/**
 * Most calls in a period, per key. Token bucket: refilled by elapsed time, not by a timer.
 *
 * @example
 * ```ts
 * import { createPipeline, type RateLimitSettings } from 'mcp-resilience';
 * const rateLimit: RateLimitSettings = { limit: 10, interval: 60_000, maxWait: 2_000 };
 * const weather = createPipeline('weather-api', { rateLimit }); // 10 a minute, waits up to 2 s
 * ```
 */
export interface RateLimitSettings {
  /** Calls allowed per `interval`, 1 to 1 000 000. */
  readonly limit: number;
  /** Milliseconds over which `limit` calls are allowed. Default 1 000. */
  readonly interval?: number;
  /** Calls allowed at once after a quiet time. Default `limit`. */
  readonly burst?: number;
  /** Longest wait for a turn, in milliseconds; 0 refuses at once. Default 0. */
  readonly maxWait?: number;
  /** Keys kept apart at most; the least recently used one is forgotten. Default 10 000. */
  readonly maxKeys?: number;
}

/**
 * Bounds and temper of a limit that is found out from measured latency.
 *
 * @example
 * ```ts
 * import { type AdaptiveLimitSettings, createPipeline } from 'mcp-resilience';
 * const limit: AdaptiveLimitSettings = { min: 2, max: 50, tolerance: 2 };
 * const search = createPipeline('search', { bulkhead: { limit, queue: 100 } });
 * ```
 */
export interface AdaptiveLimitSettings {
  /** Never fewer than this, 1 to 100 000. Default 1. */
  readonly min?: number;
  /** Never more than this, 1 to 100 000, at least `min`. */
  readonly max: number;
  /** To start with. Default 10, or whichever of the bounds is nearer. */
  readonly initial?: number;
  /** Latency that is still good, as a multiple of the unloaded one, 1 to 5. Default 1.5. */
  readonly tolerance?: number;
}

/**
 * Most calls at one time.
 *
 * @example
 * ```ts
 * import { type BulkheadSettings, createPipeline } from 'mcp-resilience';
 * const bulkhead: BulkheadSettings = { limit: 4, queue: 20, maxWait: 1_000 };
 * const search = createPipeline('search', { bulkhead }); // 4 run, 20 wait for up to 1 s
 * ```
 */
export interface BulkheadSettings {
  /** Calls that may run at the same time, 1 to 100 000; or bounds, between which it adapts. */
  readonly limit: number | AdaptiveLimitSettings;
  /** Calls that may wait for a place, first in first out. Default 0. */
  readonly queue?: number;
  /** Longest wait in the queue, in milliseconds. Default 60 000; the deadline bounds it too. */
  readonly maxWait?: number;
}

/**
 * When to stop calling what keeps failing.
 *
 * @example
 * ```ts
 * import { type BreakerSettings, createPipeline } from 'mcp-resilience';
 * const breaker: BreakerSettings = { window: 'time', duration: 60_000, failureRate: 0.3 };
 * const billing = createPipeline('billing', { breaker }); // opens at 30 % failures in a minute
 * ```
 */
export interface BreakerSettings {
  /** What is looked at: failures in a row, the last calls, or the last while. Default `consecutive`. */
  readonly window?: 'consecutive' | 'count' | 'time';
  /** `consecutive`: failures in a row that open it. Default 5. */
  readonly threshold?: number;
  /** `count`: calls remembered. Default 100. */
  readonly size?: number;
  /** `time`: milliseconds remembered. Default 30 000. */
  readonly duration?: number;
  /** `count`, `time`: share of failures that opens it, above 0 to 1. Default 0.5. */
  readonly failureRate?: number;
  /** `count`, `time`: calls that must have been seen before it may open. Default 10. */
  readonly minimumCalls?: number;
  /** Milliseconds from which a call counts as slow. Default: none does. */
  readonly slowCallDuration?: number;
  /** `count`, `time`: share of slow calls that opens it. Default 1. `consecutive` counts a slow call as a failure. */
  readonly slowCallRate?: number;
  /** Milliseconds it stays open before a probe is let through. Default 30 000. */
  readonly openDuration?: number;
  /** What the open time is multiplied with each time a probe fails. Default 1: it stays the same. */
  readonly openBackoff?: number;
  /** Longest open time, in milliseconds. Default 300 000, as Envoy's outlier ejection, or `openDuration` if that is more. */
  readonly maxOpenDuration?: number;
  /** Probes let through at one time while half-open. Default 1. */
  readonly probes?: number;
  /** Successful probes that close it. Default 1. */
  readonly successThreshold?: number;
  /** Milliseconds after which a probe that has not ended gives its place back. Default: as long as the call may take and 1 000 more, or 60 000. */
  readonly probeLease?: number;
  /** Whether an outcome is that of a whole call with its retries, or of each attempt. Default `call`. */
  readonly scope?: 'call' | 'attempt';
}

/**
 * When and how to try again.
 *
 * @example
 * ```ts
 * import { createPipeline, type RetrySettings } from 'mcp-resilience';
 * const retry: RetrySettings = { maxRetries: 3, baseDelay: 200, maxDelay: 5_000 };
 * const billing = createPipeline('billing', { retry }); // waits up to 200, 400 and 800 ms
 * ```
 */
export interface RetrySettings {
  /** Attempts beyond the first, 0 to 10. Default 2. */
  readonly maxRetries?: number;
  /** Milliseconds before the second attempt, before jitter. Default 500. */
  readonly baseDelay?: number;
  /** Longest wait, in milliseconds. A longer Retry-After ends the call instead. Default 30 000. */
  readonly maxDelay?: number;
  /** What each wait is multiplied with. Default 2. */
  readonly factor?: number;
  /** How randomness spreads the waits. Default `full`. */
  readonly jitter?: Jitter;
  /** Whether the upstream's Retry-After wins over the backoff. Default true. */
  readonly respectRetryAfter?: boolean;
  /** Extra attempts allowed, shared with hedges; `false` for no bound. Default 20 % of calls, at least 3 per 10 s. */
  readonly budget?: RetryBudgetSettings | false;
}

/**
 * When to send a second request before the first has failed.
 *
 * @example
 * ```ts
 * import { createPipeline, type HedgeSettings } from 'mcp-resilience';
 * const hedge: HedgeSettings = { quantile: 0.95, delay: 1_000 };
 * const search = createPipeline('search', { hedge }); // the slowest 5 % get a second request
 * ```
 */
export interface HedgeSettings {
  /** Milliseconds before the hedge, and before each further one. Used until `quantile` has data. Default 2 000. */
  readonly delay?: number;
  /** Hedge after this quantile of measured latency instead (Dean and Barroso, CACM 2013), 0.5 to 0.999. Default: none, `delay` holds. */
  readonly quantile?: number;
  /** Hedges beyond the first request, 1 to 5. Default 1. */
  readonly maxHedges?: number;
}

/**
 * Answers kept for a while (RFC 5861 for the two stale times).
 *
 * @example
 * ```ts
 * import { type CacheSettings, createPipeline } from 'mcp-resilience';
 * const cache: CacheSettings = { ttl: 60_000, staleIfError: 3_600_000 };
 * const weather = createPipeline('weather-api', { cache }); // an hour longer if calls fail
 * ```
 */
export interface CacheSettings {
  /** Milliseconds for which an answer is fresh. */
  readonly ttl: number;
  /** Milliseconds beyond `ttl` in which the old answer is served while a new one is fetched. Default 0. */
  readonly staleWhileRevalidate?: number;
  /** Milliseconds beyond `ttl` in which the old answer is served when the call fails. Default 0. */
  readonly staleIfError?: number;
  /** Entries kept at most; the least recently used one goes first. Default 1 000. */
  readonly maxEntries?: number;
}

/**
 * Everything that can be set for one dependency. Plain data: it can stand in a file.
 *
 * @example
 * ```ts
 * import { type PolicySettings, presets } from 'mcp-resilience';
 * const settings: PolicySettings = { ...presets['public-api'], timeout: 3_000, cache: { ttl: 60_000 } };
 * ```
 */
export interface PolicySettings {
  /** Milliseconds for the whole call: queueing, attempts and waits. Default: none. */
  readonly deadline?: number;
  /** Milliseconds for one attempt. Default: none. */
  readonly timeout?: number;
  readonly rateLimit?: RateLimitSettings | false;
  readonly bulkhead?: BulkheadSettings | false;
  readonly breaker?: BreakerSettings | false;
  readonly retry?: RetrySettings | false;
  readonly hedge?: HedgeSettings | false;
  readonly cache?: CacheSettings | false;
}

/** Rules of each group; the classes of the policies check their settings with them. */
export const rateLimitRules: Rules = {
  limit: required(count(1, 1_000_000)),
  interval: ms(1, 1_000),
  burst: count(1, 1_000_000),
  maxWait: ms(0, 0),
  maxKeys: count(1, 10_000_000, 10_000),
};

export const adaptiveLimitRules: Rules = {
  min: count(1, 100_000, 1),
  max: required(count(1, 100_000)),
  initial: count(1, 100_000, 10),
  tolerance: ratio(1, 5, 1.5),
};

export const bulkheadRules: Rules = {
  limit: orGroup(required(count(1, 100_000)), adaptiveLimitRules),
  queue: count(0, 1_000_000, 0),
  maxWait: ms(0, 60_000),
};

export const breakerRules: Rules = {
  window: { kind: 'choice', choices: ['consecutive', 'count', 'time'], fallback: 'consecutive' },
  threshold: count(1, 1_000_000, 5),
  size: count(1, 1_000_000, 100),
  duration: ms(10, 30_000),
  failureRate: ratio(0.001, 1, 0.5),
  minimumCalls: count(1, 1_000_000, 10),
  slowCallDuration: ms(1),
  slowCallRate: ratio(0.001, 1, 1),
  openDuration: ms(1, 30_000),
  openBackoff: ratio(1, 10, 1),
  maxOpenDuration: ms(1, 300_000),
  probes: count(1, 1_000, 1),
  successThreshold: count(1, 1_000, 1),
  probeLease: ms(1, 60_000),
  scope: { kind: 'choice', choices: ['call', 'attempt'], fallback: 'call' },
};

export const budgetRules: Rules = {
  ratio: ratio(0, 10, 0.2),
  floor: count(0, 1_000_000, 3),
  interval: ms(10, 10_000),
};

export const retryRules: Rules = {
  maxRetries: count(0, 10, 2),
  baseDelay: ms(0, 500),
  maxDelay: ms(0, 30_000),
  factor: ratio(1, 10, 2),
  jitter: { kind: 'choice', choices: ['full', 'equal', 'decorrelated', 'none'], fallback: 'full' },
  respectRetryAfter: { kind: 'flag', fallback: true },
  budget: { kind: 'group', rules: budgetRules },
};

export const hedgeRules: Rules = {
  delay: ms(0, 2_000),
  quantile: ratio(0.5, 0.999),
  maxHedges: count(1, 5, 1),
};

export const cacheRules: Rules = {
  ttl: required(ms(1)),
  staleWhileRevalidate: ms(0, 0),
  staleIfError: ms(0, 0),
  maxEntries: count(1, 10_000_000, 1_000),
};

export const policyRules: Rules = {
  deadline: ms(1),
  timeout: ms(1),
  rateLimit: { kind: 'group', rules: rateLimitRules },
  bulkhead: { kind: 'group', rules: bulkheadRules },
  breaker: { kind: 'group', rules: breakerRules },
  retry: { kind: 'group', rules: retryRules },
  hedge: { kind: 'group', rules: hedgeRules },
  cache: { kind: 'group', rules: cacheRules },
};

/**
 * Lays `override` over `base`, group by group: settings that `override` names win, the others
 * of the same group stay, `false` switches a group off. Neither is changed, and neither is
 * checked: `createPipeline` does that.
 *
 * @example
 * ```ts
 * import { createPipeline, overridePolicy, presets } from 'mcp-resilience';
 * const settings = overridePolicy(presets.internal, { breaker: { threshold: 10 }, rateLimit: false });
 * const search = createPipeline('search', settings); // its open time is still that of the preset
 * ```
 */
export const overridePolicy = (base: PolicySettings, override: PolicySettings): PolicySettings => {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(override)) {
    const under = merged[name];
    merged[name] =
      isGroup(value) && isGroup(under) ? { ...under, ...value } : (value ?? merged[name]);
  }
  return merged;
};

/**
 * Milliseconds that a call under these settings takes at most once it is let through; undefined
 * when nothing bounds it.
 */
const longestCall = (policy: PolicySettings): number | undefined => {
  const { deadline, timeout, retry } = policy;
  if (deadline !== undefined || timeout === undefined) return deadline;
  const { maxRetries = 2, maxDelay = 30_000 } = retry || { maxRetries: 0 };
  return Math.min((maxRetries + 1) * timeout + maxRetries * maxDelay, DAY);
};

/** How late a busy process may be to notice that a time is over, in milliseconds. */
const LATENESS = 1_000;

/**
 * How long a probe may take, in milliseconds: a call that ends at its very limit must still be in
 * time to say that it failed. Undefined when nothing bounds a call.
 */
export const usualProbeLease = (policy: PolicySettings): number | undefined => {
  const longest = longestCall(policy);
  return longest === undefined ? undefined : Math.min(longest + LATENESS, DAY);
};

const isGroup = (value: unknown): value is object => typeof value === 'object' && value !== null;
