/**
 * @module
 * Failures out of the errors of the language itself, of `AbortSignal`, and of zod.
 */

import { createFailure } from './failure-codes.ts';
import type { Failure } from './failure-model.ts';
import { clean, isA, namesOf, read, readText, sentence } from './inspect.ts';

const MAX_ISSUES = 5;

/** `a.b[0]`, as a reader of the schema would write it. */
const pathOf = (issue: unknown): string => {
  const path = read(issue, 'path');
  if (!Array.isArray(path)) return '';
  return path.slice(0, 12).reduce<string>((text, key: unknown) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return typeof key === 'string' ? `${text}${text && '.'}${key}` : text;
  }, '');
};

/** Errors of zod 3 and 4, by shape: an `issues` array and the name. */
export const recogniseZod = (value: object): Failure | undefined => {
  const issues = read(value, 'issues');
  if (!Array.isArray(issues)) return undefined;
  if (!namesOf(value).some((name) => name === 'ZodError' || name === '$ZodError')) return undefined;
  const shown = issues.slice(0, MAX_ISSUES).map((issue) => {
    const path = pathOf(issue);
    const message = readText(issue, 'message') ?? 'is not valid';
    return path === '' ? message : `${path}: ${message}`;
  });
  const more = issues.length - shown.length;
  if (more > 0) shown.push(`and ${more} more`);
  return createFailure('INVALID_INPUT', {
    message: sentence('The arguments are not valid', shown.join('; ')),
    cause: value,
  });
};

/**
 * A text that is not JSON. V8 names JSON in all messages of `JSON.parse`, and in no other
 * syntax error. What is not text at all (`JSON.parse(undefined)`) is a defect, not an answer.
 */
export const recogniseJson = (value: object): Failure | undefined => {
  if (!isA(value, SyntaxError) && readText(value, 'name') !== 'SyntaxError') return undefined;
  const message = readText(value, 'message') ?? '';
  if (!message.includes('JSON')) return undefined;
  if (/^"(?:undefined|\[object \w{1,40}\])" is not valid JSON$/.test(message)) return undefined;
  // The message quotes the text, which may hold anything; only its kind is told.
  const kind = message.startsWith('Unexpected end')
    ? ': it ends too early'
    : message.startsWith("Unexpected token '<'")
      ? ': it looks like HTML'
      : '';
  return createFailure('UPSTREAM_INVALID_RESPONSE', {
    message: `The upstream's answer is not valid JSON${kind}.`,
    cause: value,
  });
};

/** The reason of `AbortSignal.timeout`, and the timeouts of many libraries. */
export const recogniseTimeout = (value: object): Failure | undefined =>
  readText(value, 'name') === 'TimeoutError'
    ? createFailure('TIMEOUT', { cause: value })
    : undefined;

const FETCH_DEFECTS = ['bad port', 'unknown scheme', 'URL scheme must be a HTTP(S) scheme'];

/** What undici makes of a failed fetch: a TypeError with two fixed texts. */
const ofFetch = (value: object, message: string): Failure | undefined => {
  // The body ended before its length: something was answered, but it is lost.
  if (message === 'terminated') return createFailure('CONNECTION_RESET', { cause: value });
  if (message !== 'fetch failed') return undefined;
  const reason = readText(read(value, 'cause'), 'message') ?? '';
  if (FETCH_DEFECTS.includes(reason)) {
    return createFailure('INTERNAL_ERROR', {
      message: sentence('The tool has a defect', reason),
      delivery: 'not_sent',
      cause: value,
    });
  }
  if (reason.includes('redirect')) {
    return createFailure('UPSTREAM_INVALID_RESPONSE', {
      message: sentence("The upstream's redirects lead nowhere", reason),
      severity: 'permanent',
      retryable: false,
      cause: value,
    });
  }
  return createFailure('NETWORK_ERROR', {
    message: sentence('The request failed', reason),
    cause: value,
  });
};

const CANCEL_CODES = ['ABORT_ERR', 'ERR_CANCELED', 'UND_ERR_ABORTED'];

/**
 * What the name of an error suggests, unless its cause knows better: Node's AbortError has
 * the signal's reason as its cause, and `TypeError: fetch failed` what really happened.
 */
export const recogniseName = (value: object): Failure | undefined => {
  const name = readText(value, 'name');
  const message = readText(value, 'message') ?? '';
  if (name === 'AbortError' || CANCEL_CODES.includes(readText(value, 'code') ?? ''))
    return createFailure('CANCELLED', { cause: value });
  if (name === 'TypeError') return ofFetch(value, message);
  // What the transports of the MCP SDK 1.x throw when there is nothing to write to.
  if (message === 'Not connected') {
    return createFailure('UPSTREAM_UNAVAILABLE', {
      message: 'The upstream is not connected.',
      delivery: 'not_sent',
      cause: value,
    });
  }
  return undefined;
};

const DEFECTS = [
  'TypeError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'EvalError',
  'URIError',
  'AssertionError',
  'DataCloneError',
];

const DEFECT_CODE =
  /^ERR_(?:INVALID_|ASSERTION$|OUT_OF_RANGE$|MISSING_ARGS$|UNKNOWN_|ILLEGAL_CONSTRUCTOR$|METHOD_NOT_IMPLEMENTED$|MODULE_NOT_FOUND$|HTTP_INVALID_|HTTP_HEADERS_SENT$)/;

/** A programming error: repeating it is useless, and the dependency has no part in it. */
export const recogniseDefect = (value: object): Failure | undefined => {
  const isDefect =
    [TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError].some((type) =>
      isA(value, type),
    ) ||
    namesOf(value).some((name) => DEFECTS.includes(name)) ||
    DEFECT_CODE.test(readText(value, 'code') ?? '');
  if (!isDefect) return undefined;
  const name = clean(readText(value, 'name') ?? 'Error', 60);
  return createFailure('INTERNAL_ERROR', {
    message: sentence(`The tool has a defect (${name})`, readText(value, 'message')),
    cause: value,
  });
};
