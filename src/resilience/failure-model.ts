/**
 * @module
 * The types of the failure taxonomy and the error that carries a failure. Import them from
 * `failure.ts`; they stand apart so that the recognisers need not import `classify`.
 */

/**
 * Whether the condition passes by itself, never does, or has a lesser answer to offer.
 *
 * @example
 * ```ts
 * import { classify, type FailureSeverity } from 'mcp-resilience';
 * const levels = { transient: 'warn', degradable: 'warn', permanent: 'error' } as const;
 * const levelOf = (severity: FailureSeverity) => levels[severity];
 * levelOf(classify(new Response(null, { status: 401 })).severity); // 'error'
 * ```
 */
export type FailureSeverity = 'transient' | 'permanent' | 'degradable';

/**
 * Where it came from.
 *
 * @example
 * ```ts
 * import { classify, type FailureSource } from 'mcp-resilience';
 * const outside: readonly FailureSource[] = ['network', 'upstream', 'timeout'];
 * const isOutside = (error: unknown) => outside.includes(classify(error).source);
 * isOutside(new Response(null, { status: 503 })); // true
 * ```
 */
export type FailureSource =
  | 'network'
  | 'upstream'
  | 'validation'
  | 'internal'
  | 'rate_limit'
  | 'timeout'
  | 'circuit'
  | 'cancelled';

/**
 * What the policies conclude: `infrastructure` feeds the breaker and may be retried,
 * `throttled` waits and does not feed the breaker, `caller` does neither.
 *
 * @example
 * ```ts
 * import { classify, type FailureWeight } from 'mcp-resilience';
 * const weightOf = (status: number): FailureWeight =>
 *   classify(new Response(null, { status })).weight;
 * [503, 429, 404].map(weightOf); // ['infrastructure', 'throttled', 'caller']
 * ```
 */
export type FailureWeight = 'infrastructure' | 'throttled' | 'caller';

/**
 * How far the request got, which decides whether it may be repeated when the work is not
 * idempotent: `not_sent` (it never left) and `refused` (the peer said that it did not process
 * it) may, `answered` and `lost` (no answer to what may have been executed) may not.
 *
 * @example
 * ```ts
 * import { classify, type Delivery } from 'mcp-resilience';
 * const notExecuted: readonly Delivery[] = ['not_sent', 'refused'];
 * const mayRepeat = (error: unknown) => notExecuted.includes(classify(error).delivery);
 * ```
 */
export type Delivery = 'not_sent' | 'refused' | 'answered' | 'lost';

/**
 * Every code that `classify` and the policies give.
 *
 * @example
 * ```ts
 * import { classify, type FailureCode } from 'mcp-resilience';
 * const forPeople: ReadonlySet<string> = new Set<FailureCode>(['AUTH_FAILED', 'TLS_FAILURE']);
 * const needsPeople = (error: unknown) => forPeople.has(classify(error).code);
 * ```
 */
export type FailureCode =
  // the network
  | 'CONNECTION_REFUSED'
  | 'CONNECTION_RESET'
  | 'CONNECT_TIMEOUT'
  | 'DNS_FAILURE'
  | 'HOST_UNREACHABLE'
  | 'TLS_FAILURE'
  | 'NETWORK_ERROR'
  // the upstream
  | 'UPSTREAM_TIMEOUT'
  | 'UPSTREAM_UNAVAILABLE'
  | 'UPSTREAM_ERROR'
  | 'UPSTREAM_INVALID_RESPONSE'
  | 'RATE_LIMITED'
  | 'AUTH_FAILED'
  | 'NOT_FOUND'
  | 'REQUEST_REJECTED'
  | 'METHOD_NOT_FOUND'
  | 'TOOL_ERROR'
  | 'OUTCOME_UNKNOWN'
  // ourselves
  | 'CIRCUIT_OPEN'
  | 'RATE_LIMIT_EXCEEDED'
  | 'BULKHEAD_FULL'
  | 'TIMEOUT'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED'
  | 'INVALID_INPUT'
  | 'INTERNAL_ERROR'
  | 'UNKNOWN_ERROR';

/**
 * What went wrong, for a program, an operator and a model to act on.
 *
 * @example
 * ```ts
 * import { classify, type Failure } from 'mcp-resilience';
 * const waitOf = ({ retryable, retryAfter = 1 }: Failure) =>
 *   retryable ? retryAfter * 1_000 : undefined; // seconds to milliseconds
 * waitOf(classify(new Response(null, { status: 429, headers: { 'retry-after': '7' } }))); // 7000
 * ```
 */
export interface Failure {
  /** Stable, machine-readable. A classifier of the user's may add codes of its own. */
  readonly code: FailureCode | (string & {});
  /** What happened, in English, without secrets: no URL query, no header, no credentials. */
  readonly message: string;
  readonly severity: FailureSeverity;
  readonly source: FailureSource;
  readonly weight: FailureWeight;
  readonly delivery: Delivery;
  /** True when the same request may succeed later. */
  readonly retryable: boolean;
  /** Seconds to wait before a repetition makes sense, when somebody told us. */
  readonly retryAfter?: number;
  /** What to do next, in English. `describe` gives it in other languages. */
  readonly suggestion?: string;
  /** What could serve instead. */
  readonly fallbackHint?: string;
  /** What was thrown or answered. Never serialised. */
  readonly cause?: unknown;
}

/**
 * Error of a policy's own making: a refusal, a timeout, an outcome that nobody knows. Has a
 * stable `code` and the whole `failure`; errors of the protected work are thrown as they are.
 *
 * @example
 * ```ts
 * import { ResilienceError } from 'mcp-resilience';
 * const wait = (error: unknown) =>
 *   error instanceof ResilienceError && error.code === 'CIRCUIT_OPEN' ? error.failure.retryAfter : undefined;
 * ```
 */
export class ResilienceError extends Error {
  override readonly name: string = 'ResilienceError';
  readonly code: Failure['code'];
  readonly #failure: Failure;

  constructor(failure: Failure) {
    super(failure.message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.code = failure.code;
    this.#failure = failure;
  }

  get failure(): Failure {
    return this.#failure;
  }
}

/**
 * Puts the user's knowledge in front of `classify`: returns a failure, or undefined for "the
 * built-in one shall decide".
 *
 * @example
 * ```ts
 * import { type Classifier, createFailure, createPipeline } from 'mcp-resilience';
 * const classifier: Classifier = (error) =>
 *   error instanceof Error && error.message === 'quota used up'
 *     ? createFailure('RATE_LIMITED', { retryAfter: 60 })
 *     : undefined;
 * const billing = createPipeline('billing', { retry: {} }, { classifier });
 * ```
 */
export type Classifier = (error: unknown) => Failure | undefined;
