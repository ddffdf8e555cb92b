/**
 * @module
 * Failures out of JSON-RPC errors and tool results, recognised by shape: this folder knows
 * no MCP SDK, and gateways meet the errors of several.
 */

import { createFailure, type FailureDetails } from './failure-codes.ts';
import { saysSessionLost, sessionLost } from './failure-http.ts';
import type { Classifier, Failure, FailureCode } from './failure-model.ts';
import { namesOf, read, readNumber, readText, sentence } from './inspect.ts';
import { FAILURE_KEY, reviveFailure } from './revive.ts';

/** Codes of JSON-RPC 2.0, of MCP (2025-11-25 and 2026-07-28) and of LSP, which others reuse. */
const CODES: Readonly<Record<number, FailureCode>> = {
  [-32700]: 'REQUEST_REJECTED',
  [-32600]: 'REQUEST_REJECTED',
  [-32601]: 'METHOD_NOT_FOUND',
  [-32602]: 'INVALID_INPUT',
  [-32603]: 'UPSTREAM_ERROR',
  // MCP up to 2025-11-25: resource not found
  [-32002]: 'NOT_FOUND',
  // MCP 2026-07-28: header mismatch, missing client capability, unsupported version
  [-32020]: 'REQUEST_REJECTED',
  [-32021]: 'REQUEST_REJECTED',
  [-32022]: 'REQUEST_REJECTED',
  // MCP SEP-3304 (proposed): RateLimited
  [-32023]: 'RATE_LIMITED',
  // MCP 2025-11-25: the user must open a URL first
  [-32042]: 'REQUEST_REJECTED',
  [-32800]: 'CANCELLED',
};

/** Seconds that the error's data asks to wait. SEP-3304 has no final name for the field. */
const retryAfterOf = (data: unknown): number | undefined => {
  for (const [key, unit] of [
    ['retryAfter', 1],
    ['retryAfterSeconds', 1],
    ['retry_after', 1],
    ['retry_after_seconds', 1],
    ['retryAfterMs', 1_000],
    ['retry_after_ms', 1_000],
  ] as const) {
    const found = readNumber(data, key);
    if (found !== undefined && found >= 0) return found / unit;
  }
  return undefined;
};

/** What the SDK's own codes mean, which other servers use for other things. */
const ofSdk = (code: number, message: string, data: unknown): FailureCode | undefined => {
  const text = message.toLowerCase();
  if (code === -32001) {
    // AbortSignal.timeout: `String(reason)` is all that the SDK keeps of it.
    if (text.includes('timeouterror')) return 'TIMEOUT';
    if (readNumber(data, 'timeout') !== undefined || /time(?:d[ -]?|-)?out/.test(text))
      return 'UPSTREAM_TIMEOUT';
  }
  if (code === -32000 && text.includes('connection closed')) return 'CONNECTION_RESET';
  if ((code === -32000 || code === -32001) && /abort|cancell?ed/.test(text)) return 'CANCELLED';
  // SDK clients check structuredContent and blame the request for what the server sent.
  if ((code === -32600 || code === -32602) && text.includes('output schema'))
    return 'UPSTREAM_INVALID_RESPONSE';
  return undefined;
};

const RPC_NAMES = ['McpError', 'ProtocolError', 'UrlElicitationRequiredError'];

const isRpcCode = (code: number): boolean =>
  Number.isInteger(code) && code <= -32_000 && code >= -32_800;

/** A failure out of `{code, message, data}`, or undefined when the code is not JSON-RPC's. */
export const recogniseRpc = (error: object): Failure | undefined => {
  const code = readNumber(error, 'code');
  if (code === undefined) return undefined;
  const named = namesOf(error).some((name) => RPC_NAMES.includes(name));
  if (!isRpcCode(code) && !named) return undefined;
  const data = read(error, 'data');
  const revived = reviveFailure(read(data, FAILURE_KEY)) ?? reviveFailure(data);
  if (revived !== undefined) return { ...revived, cause: error };
  // "MCP error -32602: " is put in front by every proxy on the way.
  const message = (readText(error, 'message') ?? '').replace(/^(?:MCP error -?\d{1,6}: ){1,8}/, '');
  if ((code === -32000 || code === -32001) && saysSessionLost(message)) return sessionLost(error);
  const meaning = ofSdk(code, message, data) ?? CODES[code] ?? 'UPSTREAM_ERROR';
  const retryAfter = meaning === 'RATE_LIMITED' ? retryAfterOf(data) : undefined;
  const details: FailureDetails = { retryAfter, cause: error };
  const waited = readNumber(data, 'timeout');
  switch (meaning) {
    case 'UPSTREAM_TIMEOUT':
      return createFailure(meaning, {
        ...details,
        message: `The upstream did not answer in time${waited === undefined ? '' : ` (${waited} ms)`}.`,
      });
    case 'CONNECTION_RESET':
      return createFailure(meaning, {
        ...details,
        message: 'The upstream closed the connection before it answered.',
      });
    case 'CANCELLED':
    case 'TIMEOUT':
      return createFailure(meaning, details);
    case 'INVALID_INPUT':
      return createFailure(meaning, {
        ...details,
        delivery: 'answered',
        message: sentence('The upstream refused the arguments', message),
      });
    default:
      return createFailure(meaning, {
        ...details,
        message: sentence(`The upstream answered with error ${code}`, message),
      });
  }
};

const MAX_BLOCKS = 8;

/** The text blocks of a tool result. */
const textOf = (result: object): string => {
  const content = read(result, 'content');
  if (!Array.isArray(content)) return '';
  return content
    .slice(0, MAX_BLOCKS)
    .map((block) => readText(block, 'text') ?? '')
    .join(' ')
    .trim();
};

const isToolError = (value: object): boolean =>
  read(value, 'isError') === true &&
  (Array.isArray(read(value, 'content')) || read(value, 'structuredContent') !== undefined);

/**
 * A failure out of a tool result with `isError`, or undefined. The tool spoke, so that its
 * server is well: such a result is never of weight `infrastructure`. A failure of ours that
 * travels in its `_meta` keeps its code and text, and throttling stays throttling.
 */
export const recogniseToolResult = (value: object): Failure | undefined => {
  if (!isToolError(value)) return undefined;
  const revived = reviveFailure(read(read(value, '_meta'), FAILURE_KEY));
  if (revived === undefined) {
    return createFailure('TOOL_ERROR', {
      message: sentence('The tool reported an error', textOf(value)),
      cause: value,
    });
  }
  return revived.weight === 'infrastructure'
    ? { ...revived, weight: 'caller', retryable: false, cause: value }
    : { ...revived, cause: value };
};

const THROTTLED =
  /\b429\b|rate[ -]?limit|too many requests|throttl(?:ed|ing)|quota (?:was )?exceeded/i;
const WAIT =
  /(?:retry|try again)[ -]?(?:after|in)\D{0,3}(\d{1,7}(?:\.\d{1,6})?) ?(ms|s\b|sec|min)?/i;

/**
 * A ready-made classifier for upstreams that report throttling in a tool result or a payload
 * with `type: 'error'` instead of an HTTP 429. Off unless asked for: a business error may
 * speak of limits too.
 *
 * @example
 * ```ts
 * import { classify, throttledResult } from 'mcp-resilience';
 * const result = { isError: true, content: [{ type: 'text', text: 'rate limit reached' }] };
 * classify(result, { classifier: throttledResult }).code; // 'RATE_LIMITED'
 * ```
 */
export const throttledResult: Classifier = (value) => {
  if (typeof value !== 'object' || value === null) return undefined;
  const payload = [value, read(value, 'structuredContent')].find(
    (candidate) => read(candidate, 'type') === 'error',
  );
  if (!isToolError(value) && payload === undefined) return undefined;
  const text = [textOf(value), readText(payload, 'message'), readText(payload, 'error')].join(' ');
  if (!THROTTLED.test(text)) return undefined;
  const [, amount, unit] = WAIT.exec(text) ?? [];
  const factor = unit === 'ms' ? 0.001 : unit === 'min' ? 60 : 1;
  return createFailure('RATE_LIMITED', {
    message: sentence('The tool reported throttling', text),
    retryAfter: amount === undefined ? undefined : Number(amount) * factor,
    cause: value,
  });
};
