import type { Requirement } from '../requirements.ts';

const drills = 'issue 5, 4: drills';
const founding = 'issue 5, 5: slow-shard is the founding incident';

/** Drills: what is run, and how the verdict is found. */
export const requirements = {
  'drill.slow-shard': {
    promise:
      'with one shard stalled, the healthy tool keeps its p99, stalled calls fail fast, pending requests are bounded, and service is normal within 2 open times',
    source: founding,
  },
  'drill.hang': {
    promise:
      'a dependency that never answers costs a few timeouts; later calls are refused at once and told when to come again',
    source: drills,
  },
  'drill.burst-503': {
    promise: 'a burst of 503 is absorbed by retries: no call fails and no span is an error',
    source: drills,
  },
  'drill.rate-limited': {
    promise: 'no request comes before the Retry-After is over, and throttling opens no breaker',
    source: drills,
  },
  'drill.flapping': {
    promise: 'when an upstream comes and goes, the open time bounds the number of failing calls',
    source: drills,
  },
  'drill.dns-outage': {
    promise: 'a name that does not resolve is told as such, and substitutes are marked',
    source: drills,
  },
  'drill.garbage-body': {
    promise: 'garbage with status 200 is a failure of its own code and never an answer',
    source: drills,
  },
  'drill.collector-outage': {
    promise: 'a black-holed collector delays no call, and the exit within its bound',
    source: drills,
  },
  'drill.retry-storm': {
    promise:
      'agents that repeat at once cannot multiply the upstream requests beyond 1 and the share of the budget',
    source: drills,
  },
  'drill.recovery': {
    promise:
      'after an outage the breaker is closed within 2 open times, and the time it took is recorded',
    source: drills,
  },
  'drill.comparison': {
    promise:
      'the table of slow-shard shows the unprotected server failing where the protected one does not, in the same run',
    source: founding,
  },
  'drill.not-excused': {
    promise: 'the verdict on slow-shard fails figures like those of the unprotected server',
    source: founding,
  },
  'drill.list': {
    promise: '--list names every drill with its hypothesis, and runs none',
    source: drills,
  },
  'drill.usage': {
    promise: 'whoever calls it wrongly gets exit code 2 and what to give instead',
    source: drills,
  },
  'drill.unmet': {
    promise:
      'an expectation that is not met ends the command with code 1, with the expected and the measured figure in every report',
    source: drills,
  },
  'drill.steady-first': {
    promise: 'where the steady state does not hold, no fault is armed and the verdict is FAIL',
    source: drills,
  },
  'drill.cannot-run': {
    promise: 'a drill that cannot be run to its end says why, and its verdict is FAIL',
    source: drills,
  },
  'drill.reports': {
    promise:
      'the JSON holds every figure, and the JUnit XML is well-formed whatever texts are in it',
    source: drills,
  },
  'drill.file-refused': {
    promise: 'a wrong drill file is refused before anything is started, with all of its problems',
    source: drills,
  },
  'drill.interrupted': {
    promise: 'a signal ends a drill in its midst, with every process and folder that it made',
    source: drills,
  },
  'drill.forwarding': {
    promise:
      'with OTEL_EXPORTER_OTLP_ENDPOINT set, every batch of the drilled server arrives there unchanged',
    source: "issue 5, It is done when: the stack's Drill dashboard is fed by a real drill",
  },
  'drill.docs': {
    promise: 'the page on drills lists all of them, and its example is a drill that passes',
    source: drills,
  },
} as const satisfies Record<string, Requirement>;
