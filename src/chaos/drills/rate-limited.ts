/**
 * @module
 * Drill: an upstream that answers 429 and says when to come again.
 */
import { EVENT } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import { OPEN_DOOR, steadily, WEATHER, weatherLoad } from './common.ts';

/** Seconds. */
const RETRY_AFTER = 1;

/** Seconds by which a timer may be early: times of spans and of timers come from two clocks. */
const EARLY = 0.01;

export const rateLimited: DrillInput = {
  name: 'rate-limited',
  hypothesis:
    'Retry-After is kept to: no request comes earlier, calls succeed in the end, and throttling opens no breaker.',
  server: {
    config: {
      tools: {
        get_weather: {
          ...OPEN_DOOR,
          // Every call needs a second attempt here, more than the usual budget allows.
          retry: { maxRetries: 2, baseDelay: 10, budget: { ratio: 1 } },
        },
      },
    },
  },
  load: [weatherLoad({ agents: 4 })],
  steady: { seconds: 1, expect: steadily('weather') },
  fault: { seconds: 4 },
  recovery: { seconds: 1.5 },
  faults: [
    {
      inject: {
        kind: 'status',
        status: 429,
        retryAfter: RETRY_AFTER,
        firstAttempts: 1,
        target: { dependency: WEATHER },
      },
    },
  ],
  expect: [
    {
      that: 'requests are throttled',
      measure: 'count',
      of: { source: 'events', phase: 'fault', name: EVENT.faultInjected },
      atLeast: 8,
    },
    {
      that: 'no request of a call comes before the Retry-After of the one before is over',
      measure: 'shortestGap',
      of: {
        source: 'spans',
        phase: 'fault',
        kind: 'client',
        attributes: { 'http.request.method': 'GET' },
      },
      atLeast: RETRY_AFTER - EARLY,
    },
    {
      that: 'every call succeeds in the end',
      measure: 'share',
      of: { source: 'calls', phase: 'fault', outcome: 'success' },
      equals: 1,
    },
    {
      that: 'the breaker stays closed',
      measure: 'count',
      of: { source: 'events', name: EVENT.breakerStateChanged },
      equals: 0,
    },
  ],
};
