/**
 * @module
 * What a circuit breaker can be, take, tell and leave behind.
 */

/** `isolated` is set by hand and left by hand. */
export type BreakerState = 'closed' | 'open' | 'half-open' | 'isolated';

/** How a call ended, for the breaker: `ignored` decides nothing. */
export type BreakerOutcome = 'success' | 'failure' | 'ignored';

/** Right to make one call, or, while closed, any number of them. Opaque. */
export interface BreakerPermit {
  /** Milliseconds of the clock at which a probe's permit is taken back; none while closed. */
  readonly leaseUntil: number;
}

/** What `on` can listen to. `rejected` is told for every refusal. */
export type BreakerEvent = 'open' | 'half-open' | 'closed' | 'isolated' | 'rejected';

/** What `toJSON` gives, `restore` takes and health checks show. */
export interface BreakerSnapshot {
  readonly name: string;
  readonly state: BreakerState;
  /** Failures the window remembers; while open, those that opened it. */
  readonly failureCount: number;
  /** Successes since the last failure. */
  readonly successCount: number;
  /** Seconds until a probe is let through; present while open. */
  readonly retryAfter?: number;
  /** ISO time of opening; present while open or half-open. */
  readonly openedAt?: string;
  /** Times it opened without having been closed in between. */
  readonly openings: number;
}

/** Every state: one metric series each. */
export const BREAKER_STATES: readonly BreakerState[] = ['closed', 'open', 'half-open', 'isolated'];
