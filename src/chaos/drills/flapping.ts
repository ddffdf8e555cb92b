/**
 * @module
 * Drill: an upstream that comes and goes every second.
 */
import { ATTR, EVENT, METRIC } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import { OPEN_DOOR, steadily, WEATHER, weatherLoad } from './common.ts';

const OPEN_TIME = 400;
const THRESHOLD = 3;
const AGENTS = 2;
/** Seconds; the fault is on for one and off for one, twice. */
const FAULT = 4;
const OUTAGES = 2;

/** Those that open the breaker, those under way by then, and a probe for each open time begun. */
const FAILURES_PER_OUTAGE = THRESHOLD + AGENTS - 1 + Math.ceil(1_000 / OPEN_TIME);

export const flapping: DrillInput = {
  name: 'flapping',
  hypothesis: 'When an upstream comes and goes, its open time bounds how many calls fail.',
  server: {
    config: {
      tools: {
        get_weather: {
          ...OPEN_DOOR,
          retry: false,
          breaker: { threshold: THRESHOLD, openDuration: OPEN_TIME },
        },
      },
    },
  },
  load: [weatherLoad({ agents: AGENTS, everyMs: 50 })],
  steady: { seconds: 1, expect: steadily('weather') },
  fault: { seconds: FAULT },
  recovery: { seconds: 1.5 },
  faults: [
    {
      inject: {
        kind: 'status',
        status: 503,
        flapping: { onSeconds: 1, offSeconds: 1 },
        target: { dependency: WEATHER },
      },
    },
  ],
  expect: [
    {
      that: 'calls that fail in two outages: those that open the breaker, those under way, and probes',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', outcome: 'error' },
      atLeast: THRESHOLD,
      atMost: OUTAGES * FAILURES_PER_OUTAGE,
    },
    {
      that: 'others are refused without being sent',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', code: 'CIRCUIT_OPEN' },
      atLeast: 10,
    },
    {
      that: 'the breaker opens in each outage',
      measure: 'count',
      of: {
        source: 'events',
        phase: 'fault',
        name: EVENT.breakerStateChanged,
        attributes: { [ATTR.from]: 'closed', [ATTR.to]: 'open' },
      },
      atLeast: OUTAGES,
    },
    {
      that: 'calls succeed in between',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', outcome: 'success' },
      atLeast: 5,
    },
    {
      that: 'the breaker is closed at the end',
      measure: 'total',
      of: {
        source: 'metric',
        name: METRIC.breakerState.name,
        attributes: { [ATTR.dependency]: WEATHER, [ATTR.state]: 'closed' },
      },
      equals: 1,
    },
  ],
};
