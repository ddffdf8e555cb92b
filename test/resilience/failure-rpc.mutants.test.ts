import { describe, expect, test } from 'vitest';
import {
  classify,
  createFailure,
  FAILURE_KEY,
  failureToJSON,
  throttledResult,
} from '../../src/resilience/failure.ts';

const rpc = (code: number, message = 'it broke', data?: unknown, name = 'McpError') =>
  Object.assign(new Error(message), { name, code, data });
const of = (...parts: Parameters<typeof rpc>) => classify(rpc(...parts));

describe('an error of JSON-RPC', () => {
  test.each([
    [-32_700, 'REQUEST_REJECTED'],
    [-32_600, 'REQUEST_REJECTED'],
    [-32_601, 'METHOD_NOT_FOUND'],
    [-32_602, 'INVALID_INPUT'],
    [-32_603, 'UPSTREAM_ERROR'],
    [-32_002, 'NOT_FOUND'],
    [-32_020, 'REQUEST_REJECTED'],
    [-32_021, 'REQUEST_REJECTED'],
    [-32_022, 'REQUEST_REJECTED'],
    [-32_023, 'RATE_LIMITED'],
    [-32_042, 'REQUEST_REJECTED'],
    [-32_800, 'CANCELLED'],
    [-32_000, 'UPSTREAM_ERROR'],
    [-32_001, 'UPSTREAM_ERROR'],
    [-32_099, 'UPSTREAM_ERROR'],
    [7, 'UPSTREAM_ERROR'],
  ])('%i', (code, expected) => {
    expect(of(code).code).toBe(expected);
  });

  test('is known by its code or by the name of its class', () => {
    const plain = (code: unknown) => classify({ code, message: 'x' }).code;
    expect(plain(-32_800)).toBe('CANCELLED');
    expect(plain(-32_000)).toBe('UPSTREAM_ERROR');
    for (const code of [-32_801, -31_999, 7, -32_000.5, '-32000', undefined]) {
      expect(plain(code), String(code)).toBe('UNKNOWN_ERROR');
    }
    for (const name of ['McpError', 'ProtocolError', 'UrlElicitationRequiredError']) {
      expect(of(7, 'x', undefined, name).code, name).toBe('UPSTREAM_ERROR');
    }
    expect(of(7, 'x', undefined, 'OtherError').code).toBe('UNKNOWN_ERROR');
  });

  test('tells what the upstream wrote, without what proxies put in front', () => {
    expect(of(-32_603, 'MCP error -32603: MCP error -32603: no disk').message).toBe(
      'The upstream answered with error -32603: no disk.',
    );
    expect(of(7, 'MCP error 7: no disk').message).toBe(
      'The upstream answered with error 7: no disk.',
    );
    expect(of(-32_800, 'no more').message).toBe('The call was cancelled by its caller.');
    expect(of(-32_001, 'TimeoutError').message).toBe('The call took longer than it may.');
    expect(of(-32_603, 'no MCP error -32603: disk').message).toBe(
      'The upstream answered with error -32603: no MCP error -32603: disk.',
    );
    expect(of(-32_602, 'city must be a string')).toMatchObject({
      message: 'The upstream refused the arguments: city must be a string.',
      delivery: 'answered',
    });
    const error = rpc(-32_603);
    expect(classify(error).cause).toBe(error);
  });

  test.each([
    ['Request timed out', 'UPSTREAM_TIMEOUT'],
    ['Timeout', 'UPSTREAM_TIMEOUT'],
    ['timedout', 'UPSTREAM_TIMEOUT'],
    ['time-out', 'UPSTREAM_TIMEOUT'],
    ['timed-out', 'UPSTREAM_TIMEOUT'],
    ['TimeoutError: The operation was aborted due to timeout', 'TIMEOUT'],
    ['AbortError: This operation was aborted', 'CANCELLED'],
    ['Request canceled', 'CANCELLED'],
    ['Request cancelled', 'CANCELLED'],
    ['at the same time', 'UPSTREAM_ERROR'],
  ])('-32001 saying %s', (message, expected) => {
    expect(of(-32_001, message).code).toBe(expected);
  });

  test('-32000 may be a lost connection or a cancellation, no timeout', () => {
    expect(of(-32_000, 'Connection closed')).toMatchObject({
      code: 'CONNECTION_RESET',
      message: 'The upstream closed the connection before it answered.',
    });
    expect(of(-32_603, 'Connection closed').code).toBe('UPSTREAM_ERROR');
    expect(of(-32_000, 'Request cancelled').code).toBe('CANCELLED');
    expect(of(-32_603, 'Request cancelled').code).toBe('UPSTREAM_ERROR');
    expect(of(-32_000, 'Request timed out').code).toBe('UPSTREAM_ERROR');
  });

  test('a time limit in its data makes a timeout, and is told', () => {
    expect(of(-32_001, 'x', { timeout: 50 })).toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      message: 'The upstream did not answer in time (50 ms).',
    });
    expect(of(-32_001, 'Request timed out').message).toBe('The upstream did not answer in time.');
    expect(of(-32_603, 'x', { timeout: 50 }).code).toBe('UPSTREAM_ERROR');
  });

  test('an answer that does not fit the output schema is the fault of the server', () => {
    const text = 'Structured content does not match the Output Schema';
    for (const code of [-32_600, -32_602]) {
      expect(of(code, text).code).toBe('UPSTREAM_INVALID_RESPONSE');
    }
    expect(of(-32_603, text).code).toBe('UPSTREAM_ERROR');
  });

  test('a session that is not known any more', () => {
    for (const code of [-32_000, -32_001]) {
      expect(of(code, 'Session not found')).toMatchObject({
        code: 'UPSTREAM_UNAVAILABLE',
        delivery: 'refused',
      });
    }
    expect(of(-32_603, 'Session not found').code).toBe('UPSTREAM_ERROR');
  });

  test.each([
    [{ retryAfter: 3 }, 3],
    [{ retryAfterSeconds: 3 }, 3],
    [{ retry_after: 3 }, 3],
    [{ retry_after_seconds: 3 }, 3],
    [{ retryAfterMs: 1_500 }, 1.5],
    [{ retry_after_ms: 1_500 }, 1.5],
    [{ retryAfter: 0 }, 0],
    [{ retryAfter: -1, retryAfterSeconds: 4 }, 4],
  ])('that throttles with %j', (data, seconds) => {
    expect(of(-32_023, 'slow down', data).retryAfter).toBe(seconds);
    expect(of(-32_603, 'x', data)).not.toHaveProperty('retryAfter');
  });

  test('that carries a failure of ours keeps it, and itself as the cause', () => {
    const sent = failureToJSON(createFailure('CIRCUIT_OPEN', { retryAfter: 12 }));
    const error = rpc(-32_603, 'x', { [FAILURE_KEY]: sent });
    expect(classify(error)).toEqual({ ...sent, cause: error });
  });
});

describe('a tool result', () => {
  const text = (message: string) => ({ type: 'text', text: message });

  test('tells its text blocks, the first eight of them', () => {
    const blocks = Array.from({ length: 10 }, (_, i) => text(`line ${i}`));
    const result = { isError: true, content: [{ type: 'image', data: '' }, ...blocks] };
    expect(classify(result)).toMatchObject({
      code: 'TOOL_ERROR',
      message: 'The tool reported an error: line 0 line 1 line 2 line 3 line 4 line 5 line 6.',
      cause: result,
    });
    expect(classify({ isError: true, content: [] }).message).toBe('The tool reported an error.');
  });

  test('is an error with content or structured content and the flag', () => {
    expect(classify({ isError: true, structuredContent: {} }).code).toBe('TOOL_ERROR');
    expect(classify({ isError: true }).code).toBe('UNKNOWN_ERROR');
    expect(classify({ isError: 'yes', content: [] }).code).toBe('UNKNOWN_ERROR');
    expect(classify({ content: [text('x')] }).code).toBe('UNKNOWN_ERROR');
  });

  test('with a failure of ours keeps its code, and never weighs on its server', () => {
    const withFailure = (code: 'UPSTREAM_ERROR' | 'CIRCUIT_OPEN') => ({
      isError: true,
      content: [],
      _meta: { [FAILURE_KEY]: failureToJSON(createFailure(code)) },
    });
    const down = withFailure('UPSTREAM_ERROR');
    expect(classify(down)).toMatchObject({
      code: 'UPSTREAM_ERROR',
      weight: 'caller',
      retryable: false,
      cause: down,
    });
    const open = withFailure('CIRCUIT_OPEN');
    expect(classify(open)).toMatchObject({
      code: 'CIRCUIT_OPEN',
      weight: 'throttled',
      retryable: true,
      cause: open,
    });
  });
});

describe('throttledResult', () => {
  const of = (message: string) =>
    throttledResult({ isError: true, content: [{ type: 'text', text: message }] });

  test.each([
    'HTTP 429',
    'rate limit reached',
    'rate-limit reached',
    'Ratelimit reached',
    'Too Many Requests',
    'request was throttled',
    'throttling exception',
    'quota exceeded',
    'quota was exceeded',
  ])('knows "%s"', (message) => {
    expect(of(message)).toMatchObject({
      code: 'RATE_LIMITED',
      message: `The tool reported throttling: ${message}.`,
    });
  });

  test.each(['room 4290', 'throttle lever', 'quota', 'rates limited', 'many requests'])(
    'leaves "%s" alone',
    (message) => {
      expect(of(message)).toBeUndefined();
    },
  );

  test.each([
    ['429, retry after 7 seconds', 7],
    ['429, retry-after: 7', 7],
    ['429, try again in 1.5 s', 1.5],
    ['429, retry in 1500 ms', 1.5],
    ['429, retry in 1500ms', 1.5],
    ['429, Try again in 2 min', 120],
    ['429, retry after 2 minutes', 120],
    ['429, retry after 30 sec', 30],
    ['429, retry later', undefined],
    ['429, wait 7 seconds', undefined],
  ])('reads the wait of "%s"', (message, seconds) => {
    expect(of(message)?.retryAfter).toBe(seconds);
  });

  test('reads payloads of the type error, here or in the structured content', () => {
    const payload = { type: 'error', message: 'rate limit' };
    expect(throttledResult(payload)).toMatchObject({ code: 'RATE_LIMITED', cause: payload });
    expect(throttledResult({ type: 'error', error: 'rate limit' })?.code).toBe('RATE_LIMITED');
    expect(throttledResult({ structuredContent: payload })?.code).toBe('RATE_LIMITED');
    expect(throttledResult({ structuredContent: { ...payload, type: 'ok' } })).toBeUndefined();
    expect(throttledResult({ ...payload, type: 'ok' })).toBeUndefined();
    const parts = { ...payload, message: 'too many', error: 'requests' };
    expect(throttledResult(parts)?.code).toBe('RATE_LIMITED');
    expect(throttledResult({ type: 'error', message: 'no such city' })).toBeUndefined();
  });
});
