/**
 * @module
 * Every failure code as data: what `classify` and the policies conclude from it unless the
 * case at hand says otherwise.
 */

import type { Failure, FailureCode } from './failure-model.ts';
import { english } from './texts-en.ts';

/** What a code means for the policies. */
export type FailureProfile = Pick<
  Failure,
  'severity' | 'source' | 'weight' | 'delivery' | 'retryable'
>;

const profile = (
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
  CONNECTION_REFUSED: profile('transient', 'network', 'infrastructure', 'not_sent', true),
  CONNECTION_RESET: profile('transient', 'network', 'infrastructure', 'lost', true),
  CONNECT_TIMEOUT: profile('transient', 'network', 'infrastructure', 'not_sent', true),
  DNS_FAILURE: profile('transient', 'network', 'infrastructure', 'not_sent', true),
  HOST_UNREACHABLE: profile('transient', 'network', 'infrastructure', 'not_sent', true),
  TLS_FAILURE: profile('permanent', 'network', 'infrastructure', 'not_sent', false),
  NETWORK_ERROR: profile('transient', 'network', 'infrastructure', 'lost', true),
  UPSTREAM_TIMEOUT: profile('transient', 'timeout', 'infrastructure', 'lost', true),
  UPSTREAM_UNAVAILABLE: profile('transient', 'upstream', 'infrastructure', 'answered', true),
  UPSTREAM_ERROR: profile('transient', 'upstream', 'infrastructure', 'answered', true),
  UPSTREAM_INVALID_RESPONSE: profile('transient', 'upstream', 'infrastructure', 'answered', true),
  RATE_LIMITED: profile('transient', 'rate_limit', 'throttled', 'refused', true),
  AUTH_FAILED: profile('permanent', 'upstream', 'caller', 'answered', false),
  NOT_FOUND: profile('permanent', 'upstream', 'caller', 'answered', false),
  REQUEST_REJECTED: profile('permanent', 'validation', 'caller', 'answered', false),
  METHOD_NOT_FOUND: profile('permanent', 'validation', 'caller', 'answered', false),
  TOOL_ERROR: profile('permanent', 'upstream', 'caller', 'answered', false),
  OUTCOME_UNKNOWN: profile('permanent', 'network', 'infrastructure', 'lost', false),
  CIRCUIT_OPEN: profile('transient', 'circuit', 'throttled', 'not_sent', true),
  RATE_LIMIT_EXCEEDED: profile('transient', 'rate_limit', 'throttled', 'not_sent', true),
  BULKHEAD_FULL: profile('transient', 'rate_limit', 'throttled', 'not_sent', true),
  TIMEOUT: profile('transient', 'timeout', 'infrastructure', 'lost', true),
  DEADLINE_EXCEEDED: profile('transient', 'timeout', 'infrastructure', 'lost', true),
  CANCELLED: profile('permanent', 'cancelled', 'caller', 'lost', false),
  INVALID_INPUT: profile('permanent', 'validation', 'caller', 'not_sent', false),
  INTERNAL_ERROR: profile('permanent', 'internal', 'caller', 'answered', false),
  UNKNOWN_ERROR: profile('transient', 'upstream', 'infrastructure', 'answered', true),
});

/** Every code that the product gives, in the order of the documentation. */
export const failureCodes: readonly FailureCode[] = Object.freeze(
  Object.keys(failureProfiles) as FailureCode[],
);

/** True for a code of the product's own, false for one that a user's classifier added. */
export const isFailureCode = (code: string): code is FailureCode =>
  Object.hasOwn(failureProfiles, code);

/** What a failure may say beyond its code. Undefined means "as the code's profile says". */
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
  const text = english.codes[code];
  const failure: { -readonly [K in keyof Failure]: Failure[K] } = {
    code,
    message: text.what,
    ...failureProfiles[code],
    suggestion: text.suggestion,
  };
  if (text.fallback !== undefined) failure.fallbackHint = text.fallback;
  for (const [key, value] of Object.entries(details))
    if (value !== undefined) Object.assign(failure, { [key]: value });
  return failure;
};

/**
 * The failure as plain data for `_meta`, `error.data` or a log: without `cause`, which may
 * hold anything at all, and without fields that are undefined.
 */
export const failureToJSON = (failure: Failure): Omit<Failure, 'cause'> => {
  const { cause: _, ...rest } = failure;
  return Object.fromEntries(
    Object.entries(rest).filter(([, value]) => value !== undefined),
  ) as Omit<Failure, 'cause'>;
};
