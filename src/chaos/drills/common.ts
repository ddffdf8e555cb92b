/**
 * @module
 * What the drills of data have in common: names, and settings and expectations that recur.
 */
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
