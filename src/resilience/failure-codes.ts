/**
 * @module
 * Every failure code as data: what `classify` and the policies conclude from it unless the
 * case at hand says otherwise.
 */

import type { Failure, FailureCode } from './failure-model.ts';
import { codes } from './texts-en-codes.ts';

/** What a code means for the policies. */
export type FailureProfile = Pick<
  Failure,
  'severity' | 'source' | 'weight' | 'delivery' | 'retryable'
>;

const profileOf = (
  severity: FailureProfile['severity'],
  source: FailureProfile['source'],
  weight: FailureProfile['weight'],
  delivery: FailureProfile['delivery'],
  retryable: boolean,
): FailureProfile => Object.freeze({ severity, source, weight, delivery, retryable });

/**
 * The profile of every code. Two rules hold for each of them: what is the caller's to mend
 * is not retryable, and what is permanent is not retryable.
 *
 * `TLS_FAILURE` feeds the breaker but is not repeated: a certificate does not mend itself
 * within a backoff. Refusals of our own (`CIRCUIT_OPEN`, `RATE_LIMIT_EXCEEDED`,
 * `BULKHEAD_FULL`) are `throttled`: waiting helps, and they say nothing of the dependency.
 * An error that nobody knows is `answered`: the work ended and said so, but what it did
 * before is unknown, so it is repeated only when the call is idempotent.
 */
export const failureProfiles: Readonly<Record<FailureCode, FailureProfile>> = Object.freeze({
  CONNECTION_REFUSED: profileOf('transient', 'network', 'infrastructure', 'not_sent', true),
  CONNECTION_RESET: profileOf('transient', 'network', 'infrastructure', 'lost', true),
  CONNECT_TIMEOUT: profileOf('transient', 'network', 'infrastructure', 'not_sent', true),
  DNS_FAILURE: profileOf('transient', 'network', 'infrastructure', 'not_sent', true),
  HOST_UNREACHABLE: profileOf('transient', 'network', 'infrastructure', 'not_sent', true),
  TLS_FAILURE: profileOf('permanent', 'network', 'infrastructure', 'not_sent', false),
  NETWORK_ERROR: profileOf('transient', 'network', 'infrastructure', 'lost', true),
  UPSTREAM_TIMEOUT: profileOf('transient', 'timeout', 'infrastructure', 'lost', true),
  UPSTREAM_UNAVAILABLE: profileOf('transient', 'upstream', 'infrastructure', 'answered', true),
  UPSTREAM_ERROR: profileOf('transient', 'upstream', 'infrastructure', 'answered', true),
  UPSTREAM_INVALID_RESPONSE: profileOf('transient', 'upstream', 'infrastructure', 'answered', true),
  RATE_LIMITED: profileOf('transient', 'rate_limit', 'throttled', 'refused', true),
  AUTH_FAILED: profileOf('permanent', 'upstream', 'caller', 'answered', false),
  NOT_FOUND: profileOf('permanent', 'upstream', 'caller', 'answered', false),
  REQUEST_REJECTED: profileOf('permanent', 'validation', 'caller', 'answered', false),
  METHOD_NOT_FOUND: profileOf('permanent', 'validation', 'caller', 'answered', false),
  TOOL_ERROR: profileOf('permanent', 'upstream', 'caller', 'answered', false),
  OUTCOME_UNKNOWN: profileOf('permanent', 'network', 'infrastructure', 'lost', false),
  CIRCUIT_OPEN: profileOf('transient', 'circuit', 'throttled', 'not_sent', true),
  RATE_LIMIT_EXCEEDED: profileOf('transient', 'rate_limit', 'throttled', 'not_sent', true),
  BULKHEAD_FULL: profileOf('transient', 'rate_limit', 'throttled', 'not_sent', true),
  TIMEOUT: profileOf('transient', 'timeout', 'infrastructure', 'lost', true),
  DEADLINE_EXCEEDED: profileOf('transient', 'timeout', 'infrastructure', 'lost', true),
  CANCELLED: profileOf('permanent', 'cancelled', 'caller', 'lost', false),
  INVALID_INPUT: profileOf('permanent', 'validation', 'caller', 'not_sent', false),
  INTERNAL_ERROR: profileOf('permanent', 'internal', 'caller', 'answered', false),
  UNKNOWN_ERROR: profileOf('transient', 'upstream', 'infrastructure', 'answered', true),
});

/** Every code that the product gives, in the order of the documentation. */
export const failureCodes: readonly FailureCode[] = Object.freeze(
  Object.keys(failureProfiles) as FailureCode[],
);

/** True for a code of the product's own, false for one that a user's classifier added. */
export const isFailureCode = (code: string): code is FailureCode =>
  Object.hasOwn(failureProfiles, code);

/**
 * What a failure may say beyond its code. Undefined means "as the code's profile says".
 *
 * `retryAfter` is in seconds.
 *
 * @example
 * ```ts
 * import { createFailure, type FailureDetails } from 'mcp-resilience';
 * const details: FailureDetails = { message: 'The quota is used up.', retryAfter: 1_800 };
 * createFailure('RATE_LIMITED', details).retryable; // true, as the code says
 * ```
 */
export type FailureDetails = {
  readonly [K in keyof Omit<Failure, 'code'>]?: Failure[K] | undefined;
};

/**
 * A complete failure of `code`: its profile, the English message, suggestion and fallback
 * hint of the tables, and over them whatever `details` says.
 *
 * @example
 * ```ts
 * import { createFailure, ResilienceError } from 'mcp-resilience';
 * throw new ResilienceError(createFailure('RATE_LIMIT_EXCEEDED', { retryAfter: 1.5 }));
 * ```
 */
export const createFailure = (code: FailureCode, details: FailureDetails = {}): Failure => {
  const text = codes[code];
  const profile = failureProfiles[code];
  // Field by field: this is a good part of what a failing call costs.
  const failure: { -readonly [K in keyof Failure]: Failure[K] } = {
    code,
    message: details.message ?? text.what,
    severity: details.severity ?? profile.severity,
    source: details.source ?? profile.source,
    weight: details.weight ?? profile.weight,
    delivery: details.delivery ?? profile.delivery,
    retryable: details.retryable ?? profile.retryable,
    suggestion: details.suggestion ?? text.suggestion,
  };
  const { retryAfter, fallbackHint = text.fallback, cause } = details;
  if (retryAfter !== undefined) failure.retryAfter = retryAfter;
  if (fallbackHint !== undefined) failure.fallbackHint = fallbackHint;
  if (cause !== undefined) failure.cause = cause;
  return failure;
};

/**
 * The failure as plain data for `_meta`, `error.data` or a log: without `cause`, which may
 * hold anything at all, and without fields that are undefined.
 *
 * @example
 * ```ts
 * import { classify, failureToJSON } from 'mcp-resilience';
 * console.error(JSON.stringify(failureToJSON(classify(new Error('no idea')))));
 * ```
 */
export const failureToJSON = (failure: Failure): Omit<Failure, 'cause'> => {
  const { cause: _, ...rest } = failure;
  return Object.fromEntries(
    Object.entries(rest).filter(([, value]) => value !== undefined),
  ) as Omit<Failure, 'cause'>;
};
