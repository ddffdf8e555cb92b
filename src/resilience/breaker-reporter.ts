/**
 * @module
 * Tells what a circuit breaker does: to its listeners, and to OpenTelemetry. Nothing here
 * decides anything.
 */
import { diag } from '@opentelemetry/api';
import { emitEvent, faultHook, faultMarks, instruments } from '../telemetry/instruments.ts';
import { ATTR, EVENT } from '../telemetry/signals.ts';
import type { BreakerEvent, BreakerState } from './breaker-model.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';

type Listener = (breaker: CircuitBreaker) => void;

/** What `resilience.circuit_breaker.calls` tells apart. */
type CallOutcome = 'success' | 'failure' | 'slow' | 'ignored' | 'rejected';

export class BreakerReporter {
  readonly #breaker: CircuitBreaker;
  readonly #listeners = new Map<BreakerEvent, Set<Listener>>();
  /** Made once: attributes are told apart by their identity. */
  readonly #outcomes: Readonly<Record<CallOutcome, Record<string, string>>>;
  readonly #dependency: Record<string, string>;

  constructor(breaker: CircuitBreaker) {
    this.#breaker = breaker;
    this.#dependency = { [ATTR.dependency]: breaker.name };
    const attributes = (outcome: CallOutcome) => ({ ...this.#dependency, [ATTR.outcome]: outcome });
    this.#outcomes = {
      success: attributes('success'),
      failure: attributes('failure'),
      slow: attributes('slow'),
      ignored: attributes('ignored'),
      rejected: attributes('rejected'),
    };
  }

  listen(event: BreakerEvent, listener: Listener): () => void {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  forgetListeners(): void {
    this.#listeners.clear();
  }

  count(outcome: CallOutcome): void {
    const meters = instruments();
    if (meters.enabled) meters.breakerCalls.add(1, this.#outcomes[outcome]);
  }

  rejected(): void {
    // A call that a faulted one shut out suffers from the same fault.
    faultHook()?.adopt(this.#breaker);
    this.count('rejected');
    this.#tell('rejected');
    emitEvent(EVENT.breakerRejected, 'warn', this.#outcomes.rejected);
  }

  changed(from: BreakerState, to: BreakerState): void {
    if (to === 'open' || to === 'isolated') faultHook()?.carry(this.#breaker);
    const marks = faultMarks(this.#breaker);
    const change = { ...this.#dependency, [ATTR.from]: from, [ATTR.to]: to, ...marks };
    instruments().breakerTransitions.add(1, change);
    const severity = to === 'closed' || to === 'half-open' ? 'info' : 'warn';
    emitEvent(EVENT.breakerStateChanged, severity, change);
    this.#tell(to);
  }

  /** @param seconds from the first opening until it was closed again */
  recovered(seconds: number): void {
    const attributes = { ...this.#dependency, ...faultMarks(this.#breaker) };
    instruments().breakerRecoveryDuration.record(seconds, attributes);
  }

  #tell(event: BreakerEvent): void {
    const listeners = this.#listeners.get(event);
    if (listeners === undefined) return;
    // A copy: one that listens anew while it is told would be told again, without end.
    for (const listener of [...listeners]) {
      try {
        listener(this.#breaker);
      } catch (error) {
        const { name } = this.#breaker;
        diag.error(`circuit breaker "${name}": a listener of "${event}" threw`, error);
      }
    }
  }
}
