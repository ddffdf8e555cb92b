/**
 * @module
 * Drill: an upstream that answers 200 with something that is no JSON.
 */
import type { DrillInput } from '../drill-schema.ts';
import {
  besideASubstitute,
  breakerOpens,
  searchUnaffected,
  substitutesAreMarked,
  WEATHER,
} from './common.ts';

export const garbageBody: DrillInput = {
  name: 'garbage-body',
  hypothesis:
    'Garbage with status 200 is never taken for an answer: it fails with a code of its own, opens the breaker, and a substitute is marked as one.',
  ...besideASubstitute,
  fault: { seconds: 3 },
  recovery: { seconds: 2 },
  faults: [{ inject: { kind: 'malformed_json', target: { dependency: WEATHER } } }],
  expect: [
    {
      that: 'calls fail with UPSTREAM_INVALID_RESPONSE until the breaker opens',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', load: 'weather', code: 'UPSTREAM_INVALID_RESPONSE' },
      atLeast: 1,
    },
    {
      that: 'no call takes garbage for an answer',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', load: 'weather', outcome: ['success', 'cached'] },
      equals: 0,
    },
    substitutesAreMarked,
    breakerOpens,
    searchUnaffected,
  ],
};
