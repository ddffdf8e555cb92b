/**
 * @module
 * What the drills of data have in common: names, and settings and expectations that recur.
 */
import { ATTR, EVENT } from '../../telemetry/signals.ts';
import type { DrillInput } from '../drill-schema.ts';

type Expectation = DrillInput['expect'][number];
type Load = DrillInput['load'][number];

/** Dependencies of the two tools, as they are called on every signal. */
export const WEATHER = 'weather-api';
export const SEARCH = 'search-api';

/** No limit that agents of a drill would meet, and no answer that was kept from before. */
export const OPEN_DOOR = { rateLimit: false, cache: false } as const;

/** Agents that ask for the weather of a place that has no substitute answer. */
export const weatherLoad = (settings: Partial<Load> = {}): Load => ({
  name: 'weather',
  tool: 'get_weather',
  arguments: { city: 'Springfield' },
  agents: 2,
  everyMs: 100,
  ...settings,
});

/** An agent that uses the other tool meanwhile. */
export const searchLoad = (settings: Partial<Load> = {}): Load => ({
  name: 'search',
  tool: 'search',
  arguments: { query: 'circuit breaker' },
  everyMs: 100,
  ...settings,
});

/** In the steady state every call of a load succeeds. */
export const steadily = (...loads: readonly string[]): Expectation[] =>
  loads.map((load) => ({
    that: `before, every call of ${load} succeeds`,
    measure: 'share',
    of: { source: 'calls', phase: 'steady', load, outcome: 'success' },
    equals: 1,
  }));

/** Who does not call what is broken notices nothing. */
export const searchUnaffected: Expectation = {
  that: 'search beside it is unaffected: every call succeeds',
  measure: 'share',
  of: { source: 'calls', phase: 'fault', load: 'search', outcome: 'success' },
  equals: 1,
};

/** The fault opens the breaker of the weather API. */
export const breakerOpens: Expectation = {
  that: 'the breaker opens',
  measure: 'count',
  of: {
    source: 'events',
    phase: 'fault',
    name: EVENT.breakerStateChanged,
    attributes: { [ATTR.dependency]: WEATHER, [ATTR.to]: 'open' },
  },
  atLeast: 1,
};

/** Once the fault is gone, the breaker of the weather API closes in time. `openTime` is in milliseconds. */
export const breakerClosesAfter = (openTime: number): Expectation => ({
  that: 'the breaker closes within two open times of the clearing',
  measure: 'first',
  of: {
    source: 'events',
    phase: 'recovery',
    name: EVENT.breakerStateChanged,
    attributes: { [ATTR.dependency]: WEATHER, [ATTR.to]: 'closed' },
  },
  atMost: (2 * openTime) / 1_000,
});

/** Two places, of which one has a substitute answer, and the other tool beside them. */
export const besideASubstitute = {
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
} satisfies Partial<DrillInput>;

/** A substitute says that it is one. */
export const substitutesAreMarked: Expectation = {
  that: 'where there is a substitute, every answer is one, and marked degraded',
  measure: 'share',
  of: { source: 'calls', phase: 'fault', load: 'substituted', outcome: 'degraded' },
  equals: 1,
};
