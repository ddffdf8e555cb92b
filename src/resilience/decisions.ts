/**
 * @module
 * Counts what a limit decided: as plain numbers for `stats()`, and for OpenTelemetry with
 * attributes that are made once. Internal to the rate limiter and the bulkhead.
 */
import { instruments } from '../telemetry/instruments.ts';
import { ATTR } from '../telemetry/signals.ts';

export class Decisions {
  readonly dependency: Readonly<Record<string, string>>;
  accepted = 0;
  rejected = 0;
  cancelled = 0;
  readonly #counter: 'rateLimiterDecisions' | 'bulkheadDecisions';
  readonly #attributes: Record<'accepted' | 'rejected' | 'cancelled', Record<string, string>>;

  constructor(counter: 'rateLimiterDecisions' | 'bulkheadDecisions', name: string) {
    const dependency = { [ATTR.dependency]: name };
    this.dependency = dependency;
    this.#counter = counter;
    this.#attributes = {
      accepted: { ...dependency, [ATTR.outcome]: 'accepted' },
      rejected: { ...dependency, [ATTR.outcome]: 'rejected' },
      cancelled: { ...dependency, [ATTR.outcome]: 'cancelled' },
    };
  }

  count(outcome: 'accepted' | 'rejected' | 'cancelled'): void {
    this[outcome] += 1;
    const meters = instruments();
    if (meters.enabled) meters[this.#counter].add(1, this.#attributes[outcome]);
  }
}
