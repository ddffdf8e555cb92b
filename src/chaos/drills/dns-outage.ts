/**
 * @module
 * Drill: the name of an upstream cannot be resolved.
 */
import { ATTR, METRIC } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import { besideASubstitute, searchUnaffected, substitutesAreMarked, WEATHER } from './common.ts';

/** Each of them may have a request under way when the fault is armed. */
const AGENTS = 2;

export const dnsOutage: DrillInput = {
  name: 'dns-outage',
  hypothesis:
    'When a name does not resolve, calls fail with a code that says so, a substitute is marked as one, and the breaker spares the rest.',
  ...besideASubstitute,
  fault: { seconds: 3 },
  recovery: { seconds: 2 },
  faults: [{ inject: { kind: 'dns', dnsCode: 'ENOTFOUND', target: { dependency: WEATHER } } }],
  expect: [
    {
      that: 'calls fail with DNS_FAILURE until the breaker opens',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', load: 'weather', code: 'DNS_FAILURE' },
      atLeast: 1,
    },
    {
      that: 'then they are refused',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', load: 'weather', code: 'CIRCUIT_OPEN' },
      atLeast: 1,
    },
    substitutesAreMarked,
    {
      that: 'substitutes are counted',
      measure: 'total',
      of: {
        source: 'metric',
        name: METRIC.fallbacks.name,
        attributes: { [ATTR.dependency]: WEATHER },
      },
      atLeast: 3,
    },
    {
      that: 'no request reaches the upstream, but for those that were under way',
      measure: 'count',
      of: { source: 'upstream', phase: 'fault', upstream: 'weather' },
      atMost: AGENTS,
    },
    searchUnaffected,
    {
      that: 'calls succeed within two open times of the clearing',
      measure: 'first',
      of: { source: 'calls', phase: 'recovery', load: 'weather', outcome: 'success' },
      atMost: 1.6,
    },
  ],
};
