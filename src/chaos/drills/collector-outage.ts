/**
 * @module
 * Drill: a collector that takes telemetry and never answers.
 */
import type { DrillInput } from '../drill-schema.ts';
import { OPEN_DOOR, searchLoad, steadily, weatherLoad } from './common.ts';

/** Seconds by which telemetry may delay an exit. */
const EXIT_BOUND = 2;

/** Seconds that ending takes without telemetry, on a busy machine. */
const SPARE = 1;

export const collectorOutage: DrillInput = {
  name: 'collector-outage',
  hypothesis: 'A black-holed collector delays no call, and the exit by no more than two seconds.',
  server: { config: { tools: { get_weather: OPEN_DOOR, search: OPEN_DOOR } } },
  load: [weatherLoad({ everyMs: 50 }), searchLoad()],
  steady: { seconds: 1.5, expect: steadily('weather', 'search') },
  fault: { seconds: 3 },
  recovery: { seconds: 0.5 },
  faults: [{ collector: 'black_hole' }],
  expect: [
    {
      that: 'every call succeeds',
      measure: 'share',
      of: { source: 'calls', phase: 'fault', outcome: 'success' },
      equals: 1,
    },
    {
      // A call that waited for an export would take seconds; less than that may be the machine.
      that: 'calls do not wait for it: p50 against the steady state',
      measure: 'p50',
      of: { source: 'calls', phase: 'fault', load: 'weather' },
      comparedTo: 'steady',
      atMost: 3,
    },
    {
      that: 'the server has ended in time',
      measure: 'seconds',
      of: { source: 'exit' },
      atMost: EXIT_BOUND + SPARE,
    },
  ],
};
