/**
 * @module
 * Drill: a dependency that takes calls and never answers.
 */
import { ATTR, METRIC } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import {
  breakerClosesAfter,
  breakerOpens,
  OPEN_DOOR,
  searchLoad,
  searchUnaffected,
  steadily,
  WEATHER,
  weatherLoad,
} from './common.ts';

/** Milliseconds. */
const TIMEOUT = 500;
const OPEN_TIME = 1_000;
const THRESHOLD = 3;
const AGENTS = 2;
const FAULT = 4;

/** A probe an open time, each of which runs into its timeout. */
const PROBES = Math.ceil((FAULT * 1_000) / (OPEN_TIME + TIMEOUT));

export const hang: DrillInput = {
  name: 'hang',
  hypothesis:
    'A dependency that never answers costs a few timeouts; then calls are refused at once and told when to come again.',
  server: {
    config: {
      tools: {
        get_weather: {
          ...OPEN_DOOR,
          timeout: TIMEOUT,
          deadline: 2_000,
          retry: false,
          breaker: { threshold: THRESHOLD, openDuration: OPEN_TIME },
        },
        search: OPEN_DOOR,
      },
    },
  },
  load: [weatherLoad({ agents: AGENTS }), searchLoad()],
  steady: { seconds: 1, expect: steadily('weather', 'search') },
  fault: { seconds: FAULT },
  recovery: { seconds: 2 },
  faults: [{ inject: { kind: 'hang', target: { dependency: WEATHER } } }],
  expect: [
    {
      that: 'calls that ran into the timeout: those that open the breaker, those under way, and probes',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', load: 'weather', code: 'TIMEOUT' },
      atLeast: THRESHOLD,
      atMost: THRESHOLD + AGENTS - 1 + PROBES,
    },
    {
      that: 'timeouts are counted',
      measure: 'total',
      of: {
        source: 'metric',
        name: METRIC.timeouts.name,
        attributes: { [ATTR.dependency]: WEATHER },
      },
      atLeast: THRESHOLD,
    },
    breakerOpens,
    {
      that: 'most calls are refused instead',
      measure: 'share',
      of: { source: 'calls', phase: 'fault', load: 'weather', code: 'CIRCUIT_OPEN' },
      atLeast: 0.5,
    },
    {
      that: 'refusals say when to come again',
      measure: 'count',
      of: { source: 'calls', load: 'weather', code: 'CIRCUIT_OPEN', retryAfter: true },
      per: { source: 'calls', load: 'weather', code: 'CIRCUIT_OPEN' },
      atLeast: 0.95,
    },
    {
      that: 'refusals are made at once: p95 within the server is a tenth of the timeout',
      measure: 'p95',
      of: {
        source: 'spans',
        name: 'tools/call get_weather',
        attributes: { [ATTR.toolOutcome]: 'rejected' },
      },
      atMost: TIMEOUT / 10_000,
    },
    searchUnaffected,
    breakerClosesAfter(OPEN_TIME),
  ],
};
