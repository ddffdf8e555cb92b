/**
 * @module
 * Failures out of HTTP statuses (RFC 9110 section 15), wherever they stand: in a `Response`,
 * in the errors of fetch wrappers, axios, got, undici and the MCP SDK.
 */

import { createFailure, type FailureDetails } from './failure-codes.ts';
import type { Failure, FailureCode } from './failure-model.ts';
import { isObject, namesOf, read, readNumber, readText, sentence } from './inspect.ts';
import { parseRetryAfter } from './retry-after.ts';

const PERMANENT: FailureDetails = { severity: 'permanent', retryable: false };

/** What differs from the class of the status: 4xx, 5xx, the rest. */
const STATUSES: Readonly<Record<number, readonly [FailureCode, FailureDetails?]>> = {
  401: ['AUTH_FAILED'],
  403: ['AUTH_FAILED'],
  404: ['NOT_FOUND'],
  407: ['AUTH_FAILED'],
  408: ['UPSTREAM_TIMEOUT', { delivery: 'answered' }],
  410: ['NOT_FOUND'],
  // RFC 8470 section 5.2: the server did not process the request, and says so.
  425: ['UPSTREAM_UNAVAILABLE', { delivery: 'refused' }],
  429: ['RATE_LIMITED'],
  501: ['UPSTREAM_ERROR', PERMANENT],
  502: ['UPSTREAM_UNAVAILABLE'],
  503: ['UPSTREAM_UNAVAILABLE'],
  504: ['UPSTREAM_UNAVAILABLE'],
  505: ['UPSTREAM_ERROR', PERMANENT],
};

const ofClass = (status: number): readonly [FailureCode, FailureDetails?] => {
  if (status >= 500) return ['UPSTREAM_ERROR'];
  if (status >= 400) return ['REQUEST_REJECTED'];
  return ['UPSTREAM_INVALID_RESPONSE', PERMANENT];
};

const isStatus = (value: number | undefined): value is number =>
  value !== undefined && Number.isInteger(value) && value >= 100 && value <= 599;

/** The status that a value carries, if it is one of HTTP's. */
const statusOf = (value: object): number | undefined => {
  // `status` of a failed child process is its exit code.
  if (read(value, 'pid') !== undefined || read(value, 'spawnargs') !== undefined) return undefined;
  for (const source of [value, read(value, 'response')]) {
    for (const key of ['status', 'statusCode'] as const) {
      const status = readNumber(source, key);
      if (isStatus(status)) return status;
    }
  }
  // StreamableHTTPError, SseError and Google's clients put it into `code`.
  const code = readNumber(value, 'code');
  return isStatus(code) && code >= 400 ? code : undefined;
};

/** One header of a `Headers`, a `Map`, a plain object, or undici's flat or paired list. */
const header = (headers: unknown, name: string): string | undefined => {
  if (!isObject(headers)) return undefined;
  const text = (found: unknown): string | undefined => {
    const value: unknown = Array.isArray(found) ? found[0] : found;
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
  };
  const get = read(headers, 'get');
  if (typeof get === 'function') {
    const found = text(get.call(headers, name));
    if (found !== undefined) return found;
  }
  const pairs: Iterable<readonly unknown[]> = Array.isArray(headers)
    ? headers.every(Array.isArray)
      ? headers
      : headers.flatMap((key, index) => (index % 2 === 0 ? [[key, headers[index + 1]]] : []))
    : Object.entries(headers);
  for (const [key, value] of pairs) if (String(key).toLowerCase() === name) return text(value);
  return undefined;
};

const retryAfterOf = (value: object, wallTime: () => number): number | undefined => {
  for (const source of [value, read(value, 'response'), read(value, 'data')]) {
    try {
      const found = header(read(source, 'headers'), 'retry-after');
      if (found !== undefined) return parseRetryAfter(found, wallTime());
    } catch {
      // Headers that cannot be read are headers that are not there.
    }
  }
  return undefined;
};

const hostOf = (value: object): string => {
  const url = readText(value, 'url');
  try {
    return url === undefined || url === '' ? '' : ` (${new URL(url).host})`;
  } catch {
    return '';
  }
};

/**
 * A session that the server has forgotten, after a restart as a rule. The MCP specification
 * answers 404 for it; the request was not processed and may go into a new session.
 */
export const sessionLost = (cause: unknown): Failure =>
  createFailure('UPSTREAM_UNAVAILABLE', {
    message: 'The upstream no longer knows the session, which must be opened again.',
    delivery: 'refused',
    cause,
  });

const SESSION_LOST = /session (?:not found|expired|terminated)|server not initialized/i;

/** True for the texts with which MCP servers refuse a session that they do not know. */
export const saysSessionLost = (message: string): boolean => SESSION_LOST.test(message);

/**
 * A failure out of a `Response` or anything with an HTTP status, or undefined.
 *
 * Retry-After (RFC 9110 section 10.2.3) is kept for whatever may be repeated. A 403 that
 * carries one is throttling, not a lack of rights: GitHub's secondary rate limit answers so.
 */
export const recogniseHttp = (value: object, wallTime: () => number): Failure | undefined => {
  // What `Response.error()` makes, and what a blocked fetch resolves to.
  if (read(value, 'type') === 'error' && read(value, 'status') === 0)
    return createFailure('NETWORK_ERROR', { cause: value });
  const status = statusOf(value);
  if (status === undefined) {
    // The MCP SDK throws it in place of a 401 that its auth provider could not mend.
    return namesOf(value).includes('UnauthorizedError')
      ? createFailure('AUTH_FAILED', { cause: value })
      : undefined;
  }
  const retryAfter = retryAfterOf(value, wallTime);
  const foreign = readText(value, 'message');
  if ((status === 404 || status === 400) && foreign !== undefined && saysSessionLost(foreign))
    return sessionLost(value);
  const [code, details]: readonly [FailureCode, FailureDetails?] =
    status === 403 && retryAfter !== undefined
      ? ['RATE_LIMITED']
      : (STATUSES[status] ?? ofClass(status));
  const failure = createFailure(code, { ...details, cause: value });
  // The text of a 4xx tells the caller what to mend; that of a 5xx is a stack trace or HTML.
  const tells = failure.weight === 'caller' && code !== 'AUTH_FAILED';
  return {
    ...failure,
    message: sentence(
      `The upstream${hostOf(value)} answered HTTP ${status}`,
      tells ? foreign : undefined,
    ),
    ...(failure.retryable && retryAfter !== undefined ? { retryAfter } : {}),
  };
};
