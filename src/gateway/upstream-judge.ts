/**
 * @module
 * In which state an upstream is, as it follows from how its connections and policies are.
 */
import type { BreakerState } from '../resilience/breaker-model.ts';
import type { UpstreamState } from './types.ts';

/** What the state follows from. */
export interface Situation {
  readonly channels: readonly { readonly connection: unknown; readonly trying: boolean }[];
  readonly gate: { readonly closed: boolean; readonly failures: number };
  readonly breaker: BreakerState | undefined;
  /** What was wrong when a list was asked for last. */
  readonly discoveryFailed: string | undefined;
  /** Nobody uses it, and its last connection worked when it ended. */
  readonly unusedAndWell: boolean;
}

/** The state, and why it is not ready where that is not known already. */
export const judge = ({
  channels,
  gate,
  breaker,
  discoveryFailed,
  unusedAndWell,
}: Situation): readonly [UpstreamState, reason?: string] => {
  const live = channels.filter(({ connection }) => connection !== undefined);
  const trying = channels.some((channel) => channel.trying);
  if (live.length === 0) {
    if (trying) return ['connecting'];
    if (gate.closed) return ['down'];
    return unusedAndWell ? ['ready'] : ['connecting'];
  }
  if (breaker !== undefined && breaker !== 'closed') {
    return ['degraded', `its circuit breaker is ${breaker}`];
  }
  if (discoveryFailed !== undefined) return ['degraded', discoveryFailed];
  if (gate.failures > 0) return ['degraded'];
  const missing = channels.length - live.length;
  if (missing > 0 && !trying) {
    return ['degraded', `${missing} of ${channels.length} sessions have no connection`];
  }
  return ['ready'];
};
