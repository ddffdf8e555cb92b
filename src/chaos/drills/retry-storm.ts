/**
 * @module
 * Drill: agents that repeat what failed at once, over a server that retries as well.
 */
import { ATTR, EVENT } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';
import { OPEN_DOOR, SEARCH, searchLoad, steadily, WEATHER, weatherLoad } from './common.ts';

const BUDGET = 0.2;

/** Calls of the steady state fill the budget too: some 10 of them, to 200 and more in the fault. */
const CARRIED_OVER = 0.05;

const THRESHOLD = 3;
const AGENTS = 2;
const RETRIES = 3;

const requestsTo = (dependency: string) =>
  ({
    source: 'events',
    phase: 'fault',
    name: EVENT.faultInjected,
    attributes: { [ATTR.faultTarget]: `dependency:${dependency}` },
  }) as const;

export const retryStorm: DrillInput = {
  name: 'retry-storm',
  hypothesis:
    'Agents that repeat at once cannot multiply what the upstream gets: a budget bounds the retries, and a breaker ends the storm.',
  server: {
    config: {
      tools: {
        // Without a breaker, so that the budget is seen alone.
        get_weather: {
          ...OPEN_DOOR,
          breaker: false,
          retry: { maxRetries: RETRIES, baseDelay: 20, budget: { ratio: BUDGET } },
        },
        search: {
          ...OPEN_DOOR,
          breaker: { threshold: THRESHOLD, openDuration: 10_000 },
          retry: { maxRetries: RETRIES, baseDelay: 20 },
        },
      },
    },
  },
  load: [
    weatherLoad({ agents: 4, everyMs: 200, retries: 3 }),
    searchLoad({ agents: AGENTS, everyMs: 200, retries: 3 }),
  ],
  steady: { seconds: 0.5, expect: steadily('weather', 'search') },
  fault: { seconds: 3 },
  recovery: { seconds: 0.5 },
  faults: [
    { inject: { kind: 'status', status: 503, target: { dependency: WEATHER } } },
    { inject: { kind: 'status', status: 503, target: { dependency: SEARCH } } },
  ],
  expect: [
    {
      that: 'agents storm: calls of theirs that failed',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', load: 'weather', outcome: 'error' },
      atLeast: 50,
    },
    {
      that: 'requests per call, without a breaker: one, and the share of the budget',
      measure: 'count',
      of: requestsTo(WEATHER),
      per: { source: 'calls', phase: 'fault', load: 'weather' },
      atMost: 1 + BUDGET + CARRIED_OVER,
    },
    {
      that: 'requests in all, with a breaker: those of the calls that opened it or were under way',
      measure: 'count',
      of: requestsTo(SEARCH),
      atMost: (THRESHOLD + AGENTS - 1) * (1 + RETRIES),
    },
    {
      that: 'with a breaker, the storm is refused',
      measure: 'share',
      of: { source: 'calls', phase: 'fault', load: 'search', code: 'CIRCUIT_OPEN' },
      atLeast: 0.5,
    },
  ],
};
