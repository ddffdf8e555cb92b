/**
 * @module
 * The telemetry contract: every span, event, metric and attribute name, with its unit and
 * buckets, is written here (or, where a convention names it, in `semconv.ts`) and nowhere
 * else. `docs/telemetry.md` is checked against it. `instruments.ts` makes them.
 */
import {
  ATTR_ERROR_TYPE,
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_GEN_AI_PROMPT_NAME,
  ATTR_GEN_AI_TOOL_NAME,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_MCP_METHOD_NAME,
  ATTR_MCP_PROTOCOL_VERSION,
  ATTR_NETWORK_PROTOCOL_NAME,
  ATTR_NETWORK_TRANSPORT,
  ATTR_RPC_RESPONSE_STATUS_CODE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_SCHEME,
  HTTP_DURATION_BUCKETS,
  METRIC_HTTP_CLIENT_REQUEST_DURATION,
  METRIC_MCP_CLIENT_OPERATION_DURATION,
  METRIC_MCP_CLIENT_SESSION_DURATION,
  METRIC_MCP_SERVER_OPERATION_DURATION,
  METRIC_MCP_SERVER_SESSION_DURATION,
  OPERATION_DURATION_BUCKETS,
} from './semconv.ts';

/** Instrumentation scope of everything we emit. */
export const SCOPE = 'mcp-resilience';

/** Attribute names of our own; those of the conventions stand in `semconv.ts`. */
export const ATTR = {
  dependency: 'resilience.dependency',
  state: 'state',
  from: 'from',
  to: 'to',
  outcome: 'outcome',
  reason: 'reason',
  attempt: 'resilience.attempt',
  delay: 'resilience.delay',
  retryAfter: 'resilience.retry_after',
  failureCode: 'resilience.failure.code',
  cacheAge: 'resilience.cache.age',
  toolOutcome: 'tool.outcome',
  upstreamName: 'mcp.upstream.name',
  answeredBy: 'resilience.answered_by',
  faultKind: 'fault.kind',
  faultTarget: 'fault.target',
  faultInjected: 'fault.injected',
  faultId: 'fault.id',
  faultActor: 'fault.actor',
  faultReason: 'fault.reason',
  faultTtl: 'fault.ttl',
  faultSeed: 'fault.seed',
  faultCount: 'fault.count',
} as const;

/** Event names: log records with this `eventName`, and the same on the active span. */
export const EVENT = {
  retryScheduled: 'resilience.retry.scheduled',
  breakerStateChanged: 'resilience.circuit_breaker.state_changed',
  breakerRejected: 'resilience.circuit_breaker.rejected',
  rateLimiterRejected: 'resilience.rate_limiter.rejected',
  bulkheadRejected: 'resilience.bulkhead.rejected',
  timeoutExceeded: 'resilience.timeout.exceeded',
  cacheStaleServed: 'resilience.cache.stale_served',
  fallbackUsed: 'resilience.fallback.used',
  hedgeWon: 'resilience.hedge.won',
  upstreamStateChanged: 'mcp.upstream.state_changed',
  faultArmed: 'chaos.fault.armed',
  faultInjected: 'chaos.fault.injected',
  faultCleared: 'chaos.fault.cleared',
} as const;

/** Name of the child span of the second and later attempts of a call. */
export const attemptSpanName = (attempt: number): string => `attempt ${attempt}`;

/**
 * Buckets of `tool.duration`, in seconds: 1 ms to 300 s, fine enough below 10 ms that the
 * percentiles of a 5 ms tool are told apart.
 */
export const TOOL_DURATION_BUCKETS: readonly number[] = [
  0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15,
  0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120, 300,
];

/** How a metric is made: what the contract says of it. */
export interface MetricSpec {
  readonly name: string;
  readonly instrument: 'histogram' | 'counter' | 'observable up-down counter' | 'observable gauge';
  readonly unit: string;
  readonly description: string;
  readonly attributes: readonly string[];
  readonly buckets?: readonly number[];
}

const DEPENDENCY = [ATTR.dependency];
const DEPENDENCY_OUTCOME = [ATTR.dependency, ATTR.outcome];
const SESSION = [ATTR_MCP_PROTOCOL_VERSION, ATTR_NETWORK_PROTOCOL_NAME, ATTR_ERROR_TYPE];
const OPERATION = [
  ATTR_MCP_METHOD_NAME,
  ATTR_ERROR_TYPE,
  ATTR_GEN_AI_TOOL_NAME,
  ATTR_GEN_AI_PROMPT_NAME,
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_RPC_RESPONSE_STATUS_CODE,
  ATTR_MCP_PROTOCOL_VERSION,
  ATTR_NETWORK_TRANSPORT,
  ATTR_NETWORK_PROTOCOL_NAME,
];

/** Every metric of the contract. */
export const METRIC = {
  toolDuration: {
    name: 'tool.duration',
    instrument: 'histogram',
    unit: 's',
    description: 'Time a tool call took, from request to answer, by how it ended.',
    attributes: [ATTR_GEN_AI_TOOL_NAME, ATTR.toolOutcome, ATTR_ERROR_TYPE],
    buckets: TOOL_DURATION_BUCKETS,
  },
  serverOperationDuration: {
    name: METRIC_MCP_SERVER_OPERATION_DURATION,
    instrument: 'histogram',
    unit: 's',
    description: 'Duration of an MCP request as seen by the receiver.',
    attributes: OPERATION,
    buckets: OPERATION_DURATION_BUCKETS,
  },
  clientOperationDuration: {
    name: METRIC_MCP_CLIENT_OPERATION_DURATION,
    instrument: 'histogram',
    unit: 's',
    description: 'Duration of an MCP request as seen by the sender.',
    attributes: [...OPERATION, ATTR_SERVER_ADDRESS, ATTR_SERVER_PORT],
    buckets: OPERATION_DURATION_BUCKETS,
  },
  httpClientDuration: {
    name: METRIC_HTTP_CLIENT_REQUEST_DURATION,
    instrument: 'histogram',
    unit: 's',
    description: 'Duration of HTTP client requests.',
    attributes: [
      ATTR_HTTP_REQUEST_METHOD,
      ATTR_HTTP_RESPONSE_STATUS_CODE,
      ATTR_SERVER_ADDRESS,
      ATTR_SERVER_PORT,
      ATTR_URL_SCHEME,
      ATTR_ERROR_TYPE,
    ],
    buckets: HTTP_DURATION_BUCKETS,
  },
  serverSessionDuration: {
    name: METRIC_MCP_SERVER_SESSION_DURATION,
    instrument: 'histogram',
    unit: 's',
    description: 'Duration of an MCP session as seen by the server.',
    attributes: SESSION,
    buckets: OPERATION_DURATION_BUCKETS,
  },
  clientSessionDuration: {
    name: METRIC_MCP_CLIENT_SESSION_DURATION,
    instrument: 'histogram',
    unit: 's',
    description: 'Duration of an MCP session as seen by the client.',
    attributes: SESSION,
    buckets: OPERATION_DURATION_BUCKETS,
  },
  breakerState: {
    name: 'resilience.circuit_breaker.state',
    instrument: 'observable up-down counter',
    unit: '{breaker}',
    description:
      'One series per possible state of a circuit breaker: 1 for the current one, else 0.',
    attributes: [ATTR.dependency, ATTR.state],
  },
  breakerTransitions: {
    name: 'resilience.circuit_breaker.transitions',
    instrument: 'counter',
    unit: '{transition}',
    description: 'State changes of a circuit breaker.',
    attributes: [ATTR.dependency, ATTR.from, ATTR.to],
  },
  breakerCalls: {
    name: 'resilience.circuit_breaker.calls',
    instrument: 'counter',
    unit: '{call}',
    description:
      'Calls that met a circuit breaker, by outcome: success, failure, slow, ignored, rejected.',
    attributes: DEPENDENCY_OUTCOME,
  },
  breakerRecoveryDuration: {
    name: 'resilience.circuit_breaker.recovery.duration',
    instrument: 'histogram',
    unit: 's',
    description: 'Time from the opening of a circuit breaker until it was closed again.',
    attributes: DEPENDENCY,
    buckets: [1, 2, 5, 10, 15, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600],
  },
  retryAttempts: {
    name: 'resilience.retry.attempts',
    instrument: 'counter',
    unit: '{attempt}',
    description:
      'Attempts beyond the first, by outcome: success, failure, budget_exhausted (not made).',
    attributes: DEPENDENCY_OUTCOME,
  },
  rateLimiterDecisions: {
    name: 'resilience.rate_limiter.decisions',
    instrument: 'counter',
    unit: '{decision}',
    description: 'Decisions of a rate limiter, by outcome: accepted, rejected.',
    attributes: DEPENDENCY_OUTCOME,
  },
  bulkheadDecisions: {
    name: 'resilience.bulkhead.decisions',
    instrument: 'counter',
    unit: '{decision}',
    description: 'Decisions of a bulkhead, by outcome: accepted, rejected, cancelled.',
    attributes: DEPENDENCY_OUTCOME,
  },
  bulkheadActive: {
    name: 'resilience.bulkhead.active',
    instrument: 'observable gauge',
    unit: '{call}',
    description: 'Calls that hold a place of a bulkhead.',
    attributes: DEPENDENCY,
  },
  bulkheadQueued: {
    name: 'resilience.bulkhead.queued',
    instrument: 'observable gauge',
    unit: '{call}',
    description: 'Calls that wait for a place of a bulkhead.',
    attributes: DEPENDENCY,
  },
  bulkheadLimit: {
    name: 'resilience.bulkhead.limit',
    instrument: 'observable gauge',
    unit: '{call}',
    description: 'Places that a bulkhead has now.',
    attributes: DEPENDENCY,
  },
  bulkheadOldestWait: {
    name: 'resilience.bulkhead.oldest_wait',
    instrument: 'observable gauge',
    unit: 's',
    description: 'How long the first call in the queue of a bulkhead has been waiting.',
    attributes: DEPENDENCY,
  },
  timeouts: {
    name: 'resilience.timeouts',
    instrument: 'counter',
    unit: '{timeout}',
    description: 'Timeouts that fired, by reason: attempt, deadline.',
    attributes: [ATTR.dependency, ATTR.reason],
  },
  fallbacks: {
    name: 'resilience.fallbacks',
    instrument: 'counter',
    unit: '{fallback}',
    description: 'Answers replaced by a fallback, by the failure code that led to it.',
    attributes: [ATTR.dependency, ATTR.reason],
  },
  cacheRequests: {
    name: 'resilience.cache.requests',
    instrument: 'counter',
    unit: '{request}',
    description: 'Look-ups in a cache, by outcome: hit, miss, stale, shared, bypass.',
    attributes: DEPENDENCY_OUTCOME,
  },
  hedges: {
    name: 'resilience.hedges',
    instrument: 'counter',
    unit: '{hedge}',
    description: 'Hedged attempts, by outcome: won, lost, budget_exhausted (not made).',
    attributes: DEPENDENCY_OUTCOME,
  },
  upstreamState: {
    name: 'mcp.upstream.state',
    instrument: 'observable up-down counter',
    unit: '{upstream}',
    description:
      'One series per possible state of an upstream server: 1 for the current one, else 0.',
    attributes: [ATTR.upstreamName, ATTR.state],
  },
  upstreamRestarts: {
    name: 'mcp.upstream.restarts',
    instrument: 'counter',
    unit: '{restart}',
    description: 'Restarts and reconnects of an upstream server.',
    attributes: [ATTR.upstreamName],
  },
  faultsActive: {
    name: 'chaos.faults.active',
    instrument: 'observable gauge',
    unit: '{fault}',
    description: 'Faults armed at this moment.',
    attributes: [ATTR.faultKind, ATTR.faultTarget],
  },
  faultsInjected: {
    name: 'chaos.faults.injected',
    instrument: 'counter',
    unit: '{fault}',
    description: 'Faults injected into calls.',
    attributes: [ATTR.faultKind, ATTR.faultTarget],
  },
} as const satisfies Record<string, MetricSpec>;
