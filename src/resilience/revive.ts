/**
 * @module
 * Failures that arrive as data: in `error.data` or `_meta` of a peer that runs this product,
 * or out of a user's classifier.
 */

import { createFailure, failureProfiles, isFailureCode } from './failure-codes.ts';
import type { Failure } from './failure-model.ts';
import { clean, read, readNumber, readText } from './inspect.ts';

/**
 * Key of the failure in `_meta` of tool results and in `data` of JSON-RPC errors: what a program
 * reads where a model reads the text.
 *
 * @example
 * ```ts
 * import { META_FAILURE, type ToolResult } from 'mcp-resilience';
 * const failureOf = (result: ToolResult) => result._meta?.[META_FAILURE];
 * ```
 */
export const FAILURE_KEY = 'mcp-resilience/failure';

const SEVERITIES: readonly unknown[] = ['transient', 'permanent', 'degradable'];
const WEIGHTS: readonly unknown[] = ['infrastructure', 'throttled', 'caller'];
const DELIVERIES: readonly unknown[] = ['not_sent', 'refused', 'answered', 'lost'];
const SOURCES: readonly unknown[] = [
  'network',
  'upstream',
  'validation',
  'internal',
  'rate_limit',
  'timeout',
  'circuit',
  'cancelled',
];

const isCode = (value: unknown): value is string =>
  typeof value === 'string' && /^[\w.:/-]{1,100}$/.test(value);

const isWait = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;

const optionalText = (value: object, key: 'suggestion' | 'fallbackHint'): string | undefined => {
  const text = clean(readText(value, key) ?? '');
  return text === '' ? undefined : text;
};

/** A complete failure in which the two rules of the taxonomy hold (`failureProfiles`). */
const isWhole = (value: object): boolean =>
  isCode(read(value, 'code')) &&
  typeof read(value, 'message') === 'string' &&
  SEVERITIES.includes(read(value, 'severity')) &&
  SOURCES.includes(read(value, 'source')) &&
  WEIGHTS.includes(read(value, 'weight')) &&
  DELIVERIES.includes(read(value, 'delivery')) &&
  typeof read(value, 'retryable') === 'boolean';

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const pick = <T>(value: object, key: keyof Failure, allowed: readonly unknown[], usual: T): T => {
  const found = read(value, key);
  return allowed.includes(found) ? (found as T) : usual;
};

/**
 * The failure that `value` describes, or undefined when it has no code. What is missing or
 * not allowed is taken from the code's profile, or from that of `UNKNOWN_ERROR` for a code
 * that is not ours; what contradicts itself is made not retryable.
 */
export const completeFailure = (value: unknown): Failure | undefined => {
  if (!isObject(value)) return undefined;
  const code = read(value, 'code');
  if (!isCode(code)) return undefined;
  const known = isFailureCode(code) ? code : 'UNKNOWN_ERROR';
  const usual = failureProfiles[known];
  const severity = pick(value, 'severity', SEVERITIES, usual.severity);
  const weight = pick(value, 'weight', WEIGHTS, usual.weight);
  const message = clean(readText(value, 'message') ?? '');
  const retryAfter = readNumber(value, 'retryAfter');
  const cause = read(value, 'cause');
  // The texts of UNKNOWN_ERROR say nothing about a code that a user has thought of.
  const { suggestion, fallbackHint, ...base } = createFailure(known);
  const own = code === known ? { suggestion, fallbackHint } : {};
  const failure: { -readonly [K in keyof Failure]: Failure[K] } = {
    ...base,
    code,
    severity,
    weight,
    source: pick(value, 'source', SOURCES, usual.source),
    delivery: pick(value, 'delivery', DELIVERIES, usual.delivery),
    retryable:
      pick(value, 'retryable', [true, false], usual.retryable) &&
      weight !== 'caller' &&
      severity !== 'permanent',
  };
  if (message !== '') failure.message = message;
  const advice = optionalText(value, 'suggestion') ?? own.suggestion;
  if (advice !== undefined) failure.suggestion = advice;
  const hint = optionalText(value, 'fallbackHint') ?? own.fallbackHint;
  if (hint !== undefined) failure.fallbackHint = hint;
  if (isWait(retryAfter)) failure.retryAfter = retryAfter;
  if (cause !== undefined) failure.cause = cause;
  return failure;
};

/** The failure that a peer sent, or undefined when `value` is not one, whole. */
export const reviveFailure = (value: unknown): Failure | undefined =>
  isObject(value) && isWhole(value) ? completeFailure(value) : undefined;
