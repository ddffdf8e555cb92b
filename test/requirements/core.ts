import type { Requirement } from '../requirements.ts';

const design3 = 'design 3, The pipeline';

/** Pipeline, breaker, retry, timeout, deadline, bulkhead, hedge. */
export const requirements = {
  // Clock and backoff
  'clock.monotonic': {
    promise: 'a step of the wall clock changes no open time, timeout, wait or window',
    source: `${design3}, Clock`,
  },
  'clock.long-timers': {
    promise: 'a delay beyond 2^31 ms does not fire early',
    source: `${design3}, Clock; axios-retry with Retry-After of 30 days`,
  },
  'clock.unreferenced': {
    promise:
      'a pending timer does not keep the process alive, but for a wait that a caller waits for',
    source: `${design3}, Clock`,
  },
  'backoff.bounds': {
    promise: 'every delay lies in [0, cap] for every attempt number, setting and random source',
    source: `${design3}, Clock`,
  },
  // Cancel
  'cancel.reason': {
    promise:
      "the caller's abort surfaces the caller's reason and counts as cancelled, never as failure, timeout or breaker outcome",
    source: `${design3}, Cancel is not timeout`,
  },
  'cancel.no-attempt-after': {
    promise:
      'abort ends a backoff sleep, a queue wait and a hedge at once, and no attempt starts after it',
    source: `${design3}, Cancel is not timeout`,
  },
  // Retry
  'retry.full-jitter-default': {
    promise: 'retry waits exponentially with full jitter by default',
    source: `${design3}, Retry`,
  },
  'retry.retry-after': {
    promise: 'Retry-After wins over the backoff, in seconds and as an HTTP date',
    source: `${design3}, Retry; RFC 9110 10.2.3`,
  },
  'retry.retry-after-too-long': {
    promise:
      'a Retry-After that does not fit before the deadline or the longest wait ends the call at once, with retryAfter in the failure',
    source: `${design3}, Retry`,
  },
  'retry.only-what-is-safe': {
    promise:
      'work that is not idempotent is repeated only when it was never sent or was refused; a lost answer is OUTCOME_UNKNOWN',
    source: 'design 5, The MCP rules',
  },
  'retry.budget': {
    promise:
      'retries and hedges of one dependency share a budget; an exhausted one only suppresses extras',
    source: `${design3}, Retry`,
  },
  // Breaker
  'breaker.windows': {
    promise:
      'consecutive, count and time windows count exactly what they say, and the time window forgets after idling',
    source: `${design3}, Breaker`,
  },
  'breaker.minimum-calls': {
    promise: 'a rate does not open it before the minimum number of calls',
    source: `${design3}, Breaker`,
  },
  'breaker.slow-calls': {
    promise: 'slow calls can open it',
    source: `${design3}, Breaker`,
  },
  'breaker.excess-probes-refused': {
    promise: 'half-open admits N probes; the excess is refused at once, never queued',
    source: `${design3}, Breaker`,
  },
  'breaker.probe-lease': {
    promise:
      'a probe that hangs, is cancelled or ends undecided gives its permit back and decides nothing',
    source: `${design3}, Breaker`,
  },
  'breaker.generations': {
    promise: 'results of an older generation are dropped',
    source: `${design3}, Breaker`,
  },
  'breaker.open-not-extended': {
    promise: 'failures while open do not extend it',
    source: `${design3}, Breaker`,
  },
  'breaker.open-backoff': {
    promise: 'the open time can back off, up to its cap',
    source: `${design3}, Breaker`,
  },
  'breaker.visible-without-traffic': {
    promise: 'open to half-open is visible to a reader without traffic',
    source: `${design3}, Breaker`,
  },
  'breaker.refusal': {
    promise: 'a refusal carries CIRCUIT_OPEN and the seconds to wait and reuses a prepared error',
    source: `${design3}, Breaker`,
  },
  'breaker.local-refusals': {
    promise: 'local refusals never feed a breaker',
    source: `${design3}, Breaker`,
  },
  'breaker.by-hand': {
    promise:
      'on, recordSuccess, recordFailure, reset, isolate, destroy, toJSON and restore do what they say',
    source: `${design3}, Breaker`,
  },
  'breaker.scope': {
    promise:
      'by default one call is one outcome; scope attempt counts each attempt and ends retries when it opens',
    source: `${design3}`,
  },
  'breaker.programming-errors': {
    promise: 'programming errors do not open a breaker',
    source: `${design3}, Failure`,
  },
  'breaker.listeners': {
    promise: 'a listener that throws changes no outcome',
    source: 'reference/resilience 1.3.16',
  },
  'breaker.model': {
    promise:
      'no sequence of calls, hangs, cancels, late results, clock steps and probes wedges it, loses a permit or mixes two generations',
    source: `${design3}, Breaker`,
  },
  // Timeout and deadline
  'timeout.aborts-work': {
    promise: 'an attempt that takes too long fails with TIMEOUT and its signal is aborted',
    source: `${design3}, Timeout`,
  },
  'timeout.remaining-budget': {
    promise: 'the time left until the deadline is what a retry gets',
    source: `${design3}, Timeout`,
  },
  'deadline.inherited': {
    promise: 'a call made within another one never outlives the outer deadline',
    source: 'design 3, Timeout; issue 3, deadline propagation',
  },
  'deadline.lazy-signal': {
    promise: 'no AbortSignal is made unless somebody reads it',
    source: 'design 2, deadline.ts',
  },
  // Bulkhead in the pipeline
  'bulkhead.held-until-ended': {
    promise: 'a timed-out call holds its place until its work has really ended',
    source: `${design3}, Bulkhead`,
  },
  // Cache and fallback in the pipeline
  'cache.stale-while-revalidate': {
    promise: 'a stale answer is served, marked with its age, while one new one is fetched',
    source: `${design3}, Cache; RFC 5861`,
  },
  'cache.stale-if-error': {
    promise: 'a stale answer is served, marked with its age, when the call fails',
    source: `${design3}, Cache; RFC 5861`,
  },
  'cache.one-flight': {
    promise:
      "concurrent identical calls share one flight, and one caller's abort does not abort the others",
    source: `${design3}, Cache`,
  },
  'cache.flight-deadline': {
    promise:
      "whoever shares a flight leaves it at its own deadline: no shorter one of another, the first caller's among them, ends the flight for those who have more time",
    source: `${design3}, Cache and Timeout`,
  },
  'cache.waits-for-itself': {
    promise:
      'work that asks for the very answer that it makes fails at once with an error that names the key, on whatever way around it asks',
    source: `${design3}, Cache`,
  },
  'fallback.bounded': {
    promise:
      "a fallback that takes its time ends with the call's deadline, with what had failed first as the cause, and with the caller's abort; one that answers at once is given even after the deadline",
    source: `${design3}, Timeout and Fallback`,
  },
  'failure.classified-once': {
    promise: 'each failed attempt is classified once, whoever wants to know what it was',
    source: `${design3}, Failure`,
  },
  'fallback.marked': {
    promise:
      'a fallback is tried after stale-if-error has nothing to give, is always marked with the reason, and is never cached',
    source: `${design3}, Fallback`,
  },
  'fallback.not-for-callers-faults': {
    promise: 'a fallback does not hide a fault of the caller or of the program',
    source: `${design3}, Fallback`,
  },
  // Hedge
  'hedge.first-answer-wins': {
    promise: 'the first non-fatal answer wins and the loser is cancelled',
    source: 'issue 3, hedge',
  },
  'hedge.only-repeatable': {
    promise: 'only what may be repeated is hedged',
    source: 'issue 3, hedge; design 5',
  },
  'hedge.quantile': {
    promise: 'a hedge can be sent after a measured quantile of latency',
    source: 'issue 3, hedge',
  },
  // Policy
  'policy.presets': {
    promise:
      'the presets have the thresholds, open times, retries, backoffs and rates of the founding matrix',
    source: `${design3}, Presets`,
  },
  'policy.validated': {
    promise: 'wrong settings are refused with every path, the allowed range and the value given',
    source: 'design 2, policy.ts',
  },
  'policy.absent-stage': {
    promise: 'a pipeline without settings calls the work and nothing else',
    source: `${design3}`,
  },
  'pipeline.order': {
    promise: 'the stages stand in the one order',
    source: `${design3}`,
  },
  'pipeline.nothing-left': {
    promise: 'after any mix of calls no timer, listener, permit or map entry is left',
    source: 'issue 2, done when',
  },
  'pipeline.heap': {
    promise:
      'a million protected calls leave the heap where it was, and no listener, timer or map entry',
    source: 'issue 2, done when',
  },
  'pipeline.no-sdk': {
    promise:
      'everything works with no SDK registered, and instruments bind to one that is registered later',
    source: 'design 4',
  },
  'pipeline.telemetry': {
    promise:
      'a known sequence of calls gives the metrics of the contract with the right values and the events on the active span',
    source: 'design 4',
  },
  'docs.first-screen': {
    promise: 'the first screen of the README has the two commands',
    source: 'how we work',
  },
  'docs.presets': {
    promise: 'the policy table of the README is that of the code',
    source: 'issue 2, Docs',
  },
  'architecture.arrows': {
    promise:
      'imports go one way: resilience never imports from mcp, only start.ts the OTel SDK, only mcp the MCP SDK',
    source: 'design 2',
  },
  'e2e.founding-story': {
    promise:
      'a real client sees retries, Retry-After, timeouts, an open breaker and its recovery, and the healthy tool is unaffected',
    source: 'issue 2, done when; seeds/003',
  },
  'e2e.trace-and-metrics': {
    promise:
      'one trace from the client to the upstream, and the metrics of a known sequence of calls',
    source: 'issue 2, done when',
  },
  // Public reports
  L1: {
    promise: 'a probe result always decides half-open; thresholds do not apply there',
    source: 'nodeshift/opossum#276',
  },
  L2: {
    promise: 'an ignored outcome of a probe releases its permit; the next call may probe',
    source: 'nodeshift/opossum#388',
  },
  L4: {
    promise: 'opening is idempotent under simultaneous failures',
    source: 'nodeshift/opossum#385',
  },
  L7: {
    promise: 'the longest wait applies on every path, overflow included',
    source: 'App-vNext/Polly#1866',
  },
  L8: {
    promise: 'a probe that ends in an unhandled error leaves half-open open to another probe',
    source: 'App-vNext/Polly#1979',
  },
  L9: {
    promise:
      'half-open lets N through while the first probe hangs; one transition event per generation',
    source: 'App-vNext/Polly#216',
  },
  L10: {
    promise: 'permits taken and never returned come back after their lease',
    source: 'resilience4j#935',
  },
  L13: {
    promise: 'abort while the work runs rejects within a tick, without another sleep',
    source: 'sindresorhus/p-retry#97',
  },
  L15: {
    promise: "the caller's abort is final: no attempt is burnt on a dead signal",
    source: 'smithy-lang/smithy-typescript#2268',
  },
  L16: {
    promise: 'what is left of the deadline is what the next attempt gets, and nothing is left at 0',
    source: 'softonic/axios-retry#21',
  },
  L17: { promise: 'respectRetryAfter: false is honoured', source: 'nodejs/undici#5682' },
  L18: {
    promise: 'an upstream that never answers is bounded by attempts and deadline',
    source: 'nodejs/undici#5137',
  },
  L26: {
    promise: 'business errors in results do not open a breaker',
    source: 'NousResearch/hermes-agent#11113',
  },
  L27: {
    promise:
      'a probe runs the work anew: work that connects first replaces a dead child, and recovers',
    source: 'NousResearch/hermes-agent#16788',
  },
  L28: { promise: 'a tripped breaker recovers by time', source: 'NousResearch/hermes-agent#13474' },
  L29: { promise: 'every way out of a probe settles its permit', source: 'decocms/studio#5322' },
  L32: {
    promise: 'the exponent is the number of backoffs taken',
    source: 'openai/openai-agents-python#4174',
  },
  L34: {
    promise: 'Retry-After is honoured, or the call ends when it is longer than the cap',
    source: 'comet-ml/opik-mcp#96',
  },
  L35: { promise: 'an ambiguous write is never repeated', source: 'hostinger/api-mcp-server#68' },
  L38: {
    promise: 'an exceeded budget does not fail the call that runs',
    source: 'failsafe-go#139, #141',
  },
  M1: {
    promise: 'a restored breaker stays open for the rest of its open time',
    source: 'opossum 10.0.0',
  },
  M2: {
    promise: 'a late success of the closed era does not close half-open',
    source: 'opossum 10',
  },
  M3: { promise: 'refusals of the own bulkhead do not open the breaker', source: 'opossum 10' },
  M4: { promise: 'a hung probe does not keep the breaker shut for ever', source: 'opossum 10' },
  M5: { promise: 'work that returns undefined synchronously succeeds', source: 'opossum 10' },
  M6: { promise: 'one timeout aborts neither its siblings nor later calls', source: 'opossum 10' },
  M8: {
    promise: 'an ignored error in half-open decides nothing',
    source: 'opossum 10, cockatiel 4',
  },
  M11: { promise: "a failing call's cost does not grow with the window", source: 'opossum 10' },
  M12: {
    promise: 'a retry sleep ends on abort and the work is not called again',
    source: 'cockatiel 4',
  },
  M14: {
    promise: 'a late failure of the closed era does not re-open half-open',
    source: 'cockatiel 4',
  },
  M16: { promise: 'a parent abort is not reported as a timeout', source: 'cockatiel 4' },
  M17: { promise: 'the exponent of the backoff is honoured', source: 'cockatiel 4' },
  M19: {
    promise: 'a Retry-After of 30 days neither overflows nor is shortened',
    source: 'axios-retry 4.5.0',
  },
  M23: {
    promise: 'caller faults are not retried, and jitter is on by default',
    source: 'p-retry 9.0.0',
  },
  B04: { promise: 'the gauge shows half-open without traffic', source: 'cockatiel#91' },
  B06: {
    promise: 'the first failure does not open a breaker below its threshold',
    source: 'nodeshift/opossum#660',
  },
  B07: {
    promise: 'a timed-out action is aborted, and an open breaker lets the process exit',
    source: 'opossum PR#64',
  },
  C06: { promise: 'a timeout aborts the work behind it', source: 'punkpeye/fastmcp PR#328' },
  R03: {
    promise:
      'read-only work that fails twice and then succeeds is tried three times, with the attempt number on spans',
    source: 'PrefectHQ/fastmcp#3855',
  },
  R06: {
    promise: 'callers of a flapping dependency share one flight',
    source: 'LibreChat PR#12162',
  },
} as const satisfies Record<string, Requirement>;
