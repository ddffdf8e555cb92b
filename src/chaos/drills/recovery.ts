/**
 * @module
 * Drill: what comes after an outage.
 */
import { ATTR, EVENT, METRIC } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import {
  breakerClosesAfter,
  breakerOpens,
  OPEN_DOOR,
  steadily,
  WEATHER,
  weatherLoad,
} from './common.ts';

const OPEN_TIME = 800;

export const recovery: DrillInput = {
  name: 'recovery',
  hypothesis:
    'Service is back within two open times of the end of an outage, by itself, and how long it took is recorded.',
  server: {
    config: {
      tools: {
        get_weather: {
          ...OPEN_DOOR,
          retry: false,
          breaker: { threshold: 3, openDuration: OPEN_TIME },
        },
      },
    },
  },
  load: [weatherLoad({ everyMs: 50 })],
  steady: { seconds: 1, expect: steadily('weather') },
  fault: { seconds: 2 },
  recovery: { seconds: 2.5 },
  faults: [{ inject: { kind: 'connection_refused', target: { dependency: WEATHER } } }],
  expect: [
    breakerOpens,
    breakerClosesAfter(OPEN_TIME),
    {
      that: 'calls succeed again by then',
      measure: 'first',
      of: { source: 'calls', phase: 'recovery', outcome: 'success' },
      atMost: (2 * OPEN_TIME) / 1_000,
    },
    {
      that: 'it stays closed',
      measure: 'count',
      of: {
        source: 'events',
        phase: 'recovery',
        name: EVENT.breakerStateChanged,
        attributes: { [ATTR.from]: 'closed' },
      },
      equals: 0,
    },
    {
      that: 'the time to recovery is recorded, once',
      measure: 'total',
      of: {
        source: 'metric',
        name: METRIC.breakerRecoveryDuration.name,
        attributes: { [ATTR.dependency]: WEATHER },
      },
      equals: 1,
    },
  ],
};
