/**
 * @module
 * Drill: an upstream that answers 200 with something that is no JSON.
 */
import { ATTR, EVENT } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import {
  OPEN_DOOR,
  searchLoad,
  searchUnaffected,
  steadily,
  WEATHER,
  weatherLoad,
} from './common.ts';

export const garbageBody: DrillInput = {
  name: 'garbage-body',
  hypothesis:
    'Garbage with status 200 is never taken for an answer: it fails with a code of its own, opens the breaker, and a substitute is marked as one.',
  server: {
    config: {
      tools: {
        get_weather: {
          ...OPEN_DOOR,
          retry: { maxRetries: 1, baseDelay: 20 },
          breaker: { threshold: 3, openDuration: 800 },
        },
        search: OPEN_DOOR,
      },
    },
  },
  load: [
    weatherLoad({ agents: 1 }),
    // A city of the climate table: there is something to say without the upstream.
    weatherLoad({ name: 'substituted', agents: 1, arguments: { city: 'Tokyo' } }),
    searchLoad(),
  ],
  steady: { seconds: 1, expect: steadily('weather', 'substituted', 'search') },
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
    {
      that: 'where there is a substitute, every answer is one, and marked degraded',
      measure: 'share',
      of: { source: 'calls', phase: 'fault', load: 'substituted', outcome: 'degraded' },
      equals: 1,
    },
    {
      that: 'the breaker opens',
      measure: 'count',
      of: {
        source: 'events',
        phase: 'fault',
        name: EVENT.breakerStateChanged,
        attributes: { [ATTR.dependency]: WEATHER, [ATTR.to]: 'open' },
      },
      atLeast: 1,
    },
    searchUnaffected,
  ],
};
