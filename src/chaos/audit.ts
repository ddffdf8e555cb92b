/**
 * @module
 * The audit trail of faults: a log record for each that is armed, strikes or ends, with who, why,
 * whom, the seed and the counts. Texts that people wrote are redacted where they come in.
 */
import type { Attributes } from '@opentelemetry/api';
import { emitEvent, instruments } from '../telemetry/instruments.ts';
import { ATTR, EVENT } from '../telemetry/signals.ts';
import type { ActiveFault, EndReason } from './active-fault.ts';

const named = ({ id, spec }: ActiveFault, target: string): Attributes => ({
  [ATTR.faultId]: id,
  [ATTR.faultKind]: spec.kind,
  [ATTR.faultTarget]: target,
});

export const auditArmed = (fault: ActiveFault, target: string): void =>
  emitEvent(EVENT.faultArmed, 'warn', {
    ...named(fault, target),
    [ATTR.faultActor]: fault.by,
    ...(fault.spec.reason && { [ATTR.faultReason]: fault.spec.reason }),
    [ATTR.faultTtl]: fault.spec.ttlSeconds,
    [ATTR.faultSeed]: fault.seed,
  });

/** Counts it, too. */
export const auditInjected = (fault: ActiveFault, target: string): void => {
  const { [ATTR.faultId]: _, ...attributes } = named(fault, target);
  instruments().faultsInjected.add(1, attributes);
  emitEvent(EVENT.faultInjected, 'warn', {
    ...named(fault, target),
    [ATTR.faultInjected]: true,
    [ATTR.faultCount]: fault.injected,
  });
};

export const auditCleared = (fault: ActiveFault, target: string, reason: EndReason): void =>
  emitEvent(EVENT.faultCleared, 'info', {
    ...named(fault, target),
    [ATTR.faultActor]: fault.by,
    [ATTR.reason]: reason,
    [ATTR.faultCount]: fault.injected,
    [ATTR.faultSeed]: fault.seed,
  });
