/**
 * @module
 * Drill: an upstream that refuses every eighth request with 503.
 */
import { ATTR, EVENT, METRIC } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import { OPEN_DOOR, steadily, WEATHER, weatherLoad } from './common.ts';

export const burst503: DrillInput = {
  name: 'burst-503',
  hypothesis: 'A burst of 503 is absorbed by retries: no call fails, and no span is an error.',
  server: {
    config: { tools: { get_weather: { ...OPEN_DOOR, retry: { maxRetries: 2, baseDelay: 50 } } } },
  },
  load: [weatherLoad()],
  steady: { seconds: 1, expect: steadily('weather') },
  fault: { seconds: 3 },
  recovery: { seconds: 1 },
  // One in eight stays below the retry budget, which is a fifth of the calls.
  faults: [{ inject: { kind: 'status', status: 503, every: 8, target: { tool: 'get_weather' } } }],
  expect: [
    {
      that: 'requests are refused',
      measure: 'count',
      of: { source: 'events', phase: 'fault', name: EVENT.faultInjected },
      atLeast: 3,
    },
    {
      that: 'every call succeeds all the same',
      measure: 'share',
      of: { source: 'calls', phase: 'fault', outcome: 'success' },
      equals: 1,
    },
    {
      that: 'no span of a call is an error',
      measure: 'count',
      of: { source: 'spans', kind: 'server', name: 'tools/call get_weather', error: true },
      equals: 0,
    },
    {
      that: 'retries that succeeded are counted',
      measure: 'total',
      of: {
        source: 'metric',
        name: METRIC.retryAttempts.name,
        attributes: { [ATTR.dependency]: WEATHER, [ATTR.outcome]: 'success' },
      },
      atLeast: 3,
    },
    {
      that: 'the breaker stays closed',
      measure: 'count',
      of: { source: 'events', name: EVENT.breakerStateChanged },
      equals: 0,
    },
  ],
};
