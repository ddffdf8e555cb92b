/**
 * @module
 * What a circuit breaker can be, take, tell and leave behind.
 */
import type { BreakerSettings } from './policy.ts';

/**
 * What a breaker does with calls: `closed` lets them through, `open` refuses them, `half-open`
 * lets a few through as probes. `isolated` refuses too; it is set by hand and left by hand.
 *
 * @example
 * ```ts
 * import { type BreakerState, CircuitBreaker } from 'mcp-resilience';
 * const lamps = { closed: 'green', 'half-open': 'yellow', open: 'red', isolated: 'grey' };
 * const lampOf = (state: BreakerState) => lamps[state];
 * lampOf(new CircuitBreaker('billing').state); // 'green'
 * ```
 */
export type BreakerState = 'closed' | 'open' | 'half-open' | 'isolated';

/**
 * How a call ended, for the breaker: `ignored` decides nothing.
 *
 * @example
 * ```ts
 * import { type BreakerOutcome, classify } from 'mcp-resilience';
 * const outcomeOf = (error: unknown): BreakerOutcome =>
 *   classify(error).weight === 'infrastructure' ? 'failure' : 'ignored';
 * outcomeOf(new Response(null, { status: 404 })); // 'ignored'
 * ```
 */
export type BreakerOutcome = 'success' | 'failure' | 'ignored';

/**
 * Right to make one call, or, while closed, any number of them. Opaque.
 *
 * @example
 * ```ts
 * import { type BreakerPermit, CircuitBreaker } from 'mcp-resilience';
 * const breaker = new CircuitBreaker('billing');
 * const permit: BreakerPermit | undefined = breaker.tryAcquire();
 * if (permit === undefined) throw breaker.refuse();
 * breaker.settle(permit, 'success'); // once, when the call has ended
 * ```
 */
export interface BreakerPermit {
  /** Milliseconds of the clock at which a probe's permit is taken back; none while closed. */
  readonly leaseUntil: number;
}

/**
 * What `on` can listen to. `rejected` is told for every refusal.
 *
 * @example
 * ```ts
 * import { type BreakerEvent, CircuitBreaker } from 'mcp-resilience';
 * const events: readonly BreakerEvent[] = ['open', 'closed'];
 * const breaker = new CircuitBreaker('billing');
 * for (const event of events) breaker.on(event, ({ name }) => console.error(`${name}: ${event}`));
 * ```
 */
export type BreakerEvent = 'open' | 'half-open' | 'closed' | 'isolated' | 'rejected';

/**
 * What `toJSON` gives, `restore` takes and health checks show.
 *
 * @example
 * ```ts
 * import { type BreakerSnapshot, CircuitBreaker } from 'mcp-resilience';
 * const kept = JSON.stringify(new CircuitBreaker('billing'));
 * const snapshot = JSON.parse(kept) as BreakerSnapshot; // in the next process
 * new CircuitBreaker('billing').restore(snapshot);
 * ```
 */
export interface BreakerSnapshot {
  readonly name: string;
  readonly state: BreakerState;
  /** Failures the window remembers; while open, those that opened it. */
  readonly failureCount: number;
  /** Successes since the last failure. */
  readonly successCount: number;
  /** Seconds until a call may be let through; absent while one may be now, and when isolated. */
  readonly retryAfter?: number;
  /** ISO time of opening; present while open or half-open. */
  readonly openedAt?: string;
  /** Times it opened without having been closed in between. */
  readonly openings: number;
}

/** Every state: one metric series each. */
export const BREAKER_STATES: readonly BreakerState[] = ['closed', 'open', 'half-open', 'isolated'];

/** A state with what belongs to it and to no other. */
export type Inner =
  | { readonly state: 'closed'; readonly permit: BreakerPermit }
  | { readonly state: 'open'; readonly until: number; readonly failureCount: number }
  | { readonly state: 'half-open'; readonly probes: Set<BreakerPermit>; successes: number }
  | { readonly state: 'isolated' };

/** A closed state of its own: permits of an earlier one are not its. */
export const closed = (): Inner => ({
  state: 'closed',
  permit: { leaseUntil: Number.POSITIVE_INFINITY },
});

/** Settings with their defaults; only a slow call has none. */
export type ResolvedBreakerSettings = Required<Omit<BreakerSettings, 'slowCallDuration'>> &
  Pick<BreakerSettings, 'slowCallDuration'>;

/**
 * Milliseconds until a call may be let through; undefined while one may be now, and when isolated.
 * While probes take every place it is the time after which one is surely free (the end of the
 * first lease), at most an open time: a probe that is answered sooner frees it sooner.
 */
export const waitIn = (
  inner: Inner,
  now: number,
  { probes: places, openDuration }: ResolvedBreakerSettings,
): number | undefined => {
  if (inner.state === 'open') return Math.max(0, inner.until - now);
  if (inner.state !== 'half-open' || inner.probes.size < places) return undefined;
  // In the order they were let through, so the first lease ends first.
  const [oldest] = inner.probes;
  if (oldest === undefined || oldest.leaseUntil <= now) return undefined;
  return Math.min(oldest.leaseUntil - now, openDuration);
};

/**
 * When the breaker of a snapshot opened, in milliseconds since the Unix epoch; undefined for states
 * that have no such time.
 *
 * @throws TypeError when the snapshot is not one of `toJSON()`
 */
export const openingOf = (snapshot: BreakerSnapshot): number | undefined => {
  if (!BREAKER_STATES.includes(snapshot?.state)) {
    throw new TypeError(`restore: state must be one of ${BREAKER_STATES.join(', ')}`);
  }
  if (snapshot.state === 'closed' || snapshot.state === 'isolated') return undefined;
  const openedAt = Date.parse(snapshot.openedAt ?? '');
  if (Number.isNaN(openedAt)) throw new TypeError('restore: openedAt must be an ISO time');
  return openedAt;
};
