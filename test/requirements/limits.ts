import type { Requirement } from '../requirements.ts';

/** Rate limiter, bulkhead, adaptive limit, cache, single flight. */
export const requirements = {
  L11: {
    promise:
      'A caller whose wait for a token would pass its limit is refused at once with retryAfter, and whoever leaves the line gives its token back.',
    source: 'resilience4j/resilience4j#2336',
  },
  L20: {
    promise: 'An exhausted rate limit is never waved through, whatever is asked for.',
    source: 'animir/node-rate-limiter-flexible#337',
  },
  L36: {
    promise: 'An adaptive limit counts calls from their start, so slow ones are bounded at once.',
    source: 'zeromicro/go-zero#5011',
  },
  M9: {
    promise: 'An error is shared by those in flight and reaches nobody who asks later.',
    source: 'opossum 10.0.0: coalesce keeps a rejection for coalesceTTL',
  },
  M22: {
    promise: 'Work that rejects or throws gives its place in the bulkhead back.',
    source: 'hono 4.13.19 utils/concurrent: a rejection leaks the slot',
  },
  'limiter.exact-retry-after': {
    promise:
      'The wait that is told is exact: after it a token is there, a moment before it is not, for any rate.',
    source: 'design 3, rate limiter: exact retryAfter',
  },
  'limiter.never-over': {
    promise: 'In no time t more than burst + rate * t calls pass, waiting or not, blocked or not.',
    source: 'design 3, rate limiter: token bucket',
  },
  'limiter.no-drift': {
    promise: 'A bucket that has been busy for years still gives exactly its rate.',
    source: 'design 3, rate limiter: refilled by elapsed time',
  },
  'limiter.keys-bounded': {
    promise: 'Keys are kept apart, at most maxKeys of them; the least recently used one goes.',
    source: 'design 3, rate limiter: keys bounded',
  },
  'limiter.background-last': {
    promise:
      'Background calls leave a fifth of the bucket to interactive ones and wait behind them.',
    source: 'policy.ts, Priority: under pressure background work is shed first',
  },
  'limiter.model': {
    promise:
      'Under any sequence of takes, aborts, deadlines and clock steps the limiter does what an exact token bucket with two queues does.',
    source: 'design 3, rate limiter: optional bounded wait',
  },
  'bulkhead.permits-conserved': {
    promise:
      'Places are conserved under any sequence of acquire, abort, timeout, release, limit change and clock step.',
    source: 'design 3, bulkhead: permits are conserved whatever happens',
  },
  'bulkhead.grant-and-abort': {
    promise: 'An abort in the moment of the grant leaves the place with the caller, once.',
    source: 'design 3, bulkhead: permits are conserved whatever happens',
  },
  'bulkhead.bounded-wait': {
    promise: 'The queue is bounded in length and in time, by maxWait and by the deadline.',
    source: 'design 3, bulkhead: bounded queue',
  },
  'bulkhead.interactive-first': {
    promise:
      'Interactive calls overtake background ones, and the newest background one makes room for them.',
    source: 'policy.ts, Priority: under pressure background work is shed first',
  },
  'bulkhead.execute-holds': {
    promise:
      'A standalone bulkhead holds a place until its work has really ended, however early its caller left.',
    source: 'design 3, bulkhead: a timed-out call holds its slot',
  },
  'bulkhead.observable': {
    promise: 'Active, queued, limit and oldest wait are reported for as long as it exists.',
    source: 'design 4, resilience.bulkhead.*',
  },
  'limits.counted': {
    promise: 'Each decision of limiter and bulkhead is counted once, by outcome.',
    source: 'design 4, resilience.rate_limiter.decisions, resilience.bulkhead.decisions',
  },
  'adaptive.recovers': {
    promise:
      'When a backend loses half its capacity and gets it back, the adaptive limit follows: throughput at least 90 % of what is possible, latency at most twice the unloaded one.',
    source: 'design 3, bulkhead: adaptive limit (gradient, from measured latency)',
  },
  'adaptive.bounded': {
    promise: 'An adaptive limit is a whole number within its bounds whatever it measures.',
    source: 'design 3, bulkhead: adaptive limit',
  },
  'cache.key-canonical': {
    promise: 'The order of keys never matters to a cache key; every other difference does.',
    source: 'design 3, cache: key includes dependency, tool, canonical arguments and principal',
  },
  'cache.key-unclear': {
    promise: 'Arguments without an identity as data are refused with a reason, cycles included.',
    source: 'design 3, cache: canonical arguments',
  },
  'cache.errors-never': {
    promise: 'A call that failed leaves nothing in the cache.',
    source: 'design 3, cache: errors are never cached',
  },
  'cache.stale': {
    promise: 'An answer is fresh, then stale, then good only in place of an error, then gone.',
    source: 'RFC 5861, sections 3 and 4',
  },
  'cache.bounded': {
    promise: 'The cache never holds more than maxEntries, and drops what is beyond all its times.',
    source: 'design 3, cache: bounded',
  },
  'single-flight.shared': {
    promise: 'Identical calls at the same time are one call, and the next one is a new call.',
    source: 'design 3, cache: concurrent identical calls share one flight',
  },
  'single-flight.abort-is-local': {
    promise:
      'A caller that leaves has its reason at once and disturbs no other; after the last one the work is aborted.',
    source: "design 3, cache: one caller's abort does not abort the others",
  },
} as const satisfies Record<string, Requirement>;
