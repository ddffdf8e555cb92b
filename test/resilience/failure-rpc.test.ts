import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  type CallToolResult,
  CallToolResultSchema,
  ErrorCode,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { expect, onTestFinished, test } from 'vitest';
import {
  type Classifier,
  classify,
  createFailure,
  FAILURE_KEY,
  type Failure,
  failureToJSON,
  throttledResult,
} from '../../src/resilience/failure.ts';
import { http, rejection } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';

const failureOf = async (work: () => unknown): Promise<Failure> => classify(await rejection(work));

/** A client of a server whose tool `hang` never answers and whose tool `fail` throws. */
const connected = async () => {
  const server = new McpServer({ name: 'test', version: '0' });
  server.registerTool('hang', {}, () => new Promise<CallToolResult>(() => {}));
  server.registerTool('fail', {}, () => {
    throw new Error('no such city');
  });
  const client = new Client({ name: 'test', version: '0' });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(far), client.connect(near)]);
  onTestFinished(() => client.close());
  const call = (name: string, options = {}) =>
    client.request({ method: 'tools/call', params: { name } }, CallToolResultSchema, options);
  return { client, server, call };
};

const overHttp = async (status: number, body: string) => {
  const port = await http((_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  const url = new URL(`http://127.0.0.1:${port}/mcp?key=hush`);
  return failureOf(() =>
    new Client({ name: 'test', version: '0' }).connect(new StreamableHTTPClientTransport(url)),
  );
};

const NOT_FOUND = {
  jsonrpc: '2.0',
  error: { code: -32001, message: 'Session not found' },
  id: null,
};

verifies('failure.json-rpc', async () => {
  const { client, server, call } = await connected();
  expect(await failureOf(() => call('hang', { timeout: 20 }))).toMatchObject({
    code: 'UPSTREAM_TIMEOUT',
    message: 'The upstream did not answer in time (20 ms).',
    delivery: 'lost',
    weight: 'infrastructure',
  });
  expect(await failureOf(() => call('hang', { signal: AbortSignal.timeout(20) }))).toMatchObject({
    code: 'TIMEOUT',
    delivery: 'lost',
  });
  expect(await failureOf(() => call('hang', { signal: AbortSignal.abort() }))).toMatchObject({
    code: 'CANCELLED',
    weight: 'caller',
  });
  const prompts = () => client.request({ method: 'prompts/list' }, CallToolResultSchema);
  expect(await failureOf(prompts)).toMatchObject({ code: 'METHOD_NOT_FOUND', weight: 'caller' });
  const pending = failureOf(() => call('hang'));
  await server.close();
  expect(await pending).toMatchObject({ code: 'CONNECTION_RESET', delivery: 'lost' });
  expect(await failureOf(() => call('hang'))).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    delivery: 'not_sent',
  });

  expect((await overHttp(429, '{}')).code).toBe('RATE_LIMITED');
  expect((await overHttp(503, '{}')).code).toBe('UPSTREAM_UNAVAILABLE');
  expect((await overHttp(401, '{}')).code).toBe('AUTH_FAILED');
  expect(await overHttp(404, JSON.stringify(NOT_FOUND))).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    delivery: 'refused',
    message: 'The upstream no longer knows the session, which must be opened again.',
  });
});

verifies('failure.invalid-request', () => {
  const invalid = new McpError(ErrorCode.InvalidParams, 'city must be a string');
  expect(classify(invalid)).toMatchObject({
    code: 'INVALID_INPUT',
    message: 'The upstream refused the arguments: city must be a string.',
    weight: 'caller',
    retryable: false,
  });
  for (const error of [new Response(null, { status: 400 }), { code: -32_600, message: 'x' }])
    expect(classify(error)).toMatchObject({ code: 'REQUEST_REJECTED', retryable: false });
});

test.each([
  [-32_700, 'REQUEST_REJECTED'],
  [-32_603, 'UPSTREAM_ERROR'],
  [-32_002, 'NOT_FOUND'],
  [-32_023, 'RATE_LIMITED'],
  [-32_042, 'REQUEST_REJECTED'],
  [-32_800, 'CANCELLED'],
  [-32_050, 'UPSTREAM_ERROR'],
  [-32_001, 'UPSTREAM_ERROR'],
  [429, 'RATE_LIMITED'],
  [1001, 'UPSTREAM_ERROR'],
])('a JSON-RPC error %i is %s', (code, expected) => {
  const error = new McpError(code, 'something');
  expect(classify(error).code).toBe(expected);
  expect(classify(new Error('wrapped', { cause: error })).code).toBe(expected);
  const response = { jsonrpc: '2.0', id: 1, error: { code, message: 'something' } };
  if (code < 0) expect(classify(response).code).toBe(expected);
});

test('the prefixes that proxies put in front of a message are dropped', () => {
  const inner = new McpError(-32_602, 'city is missing');
  expect(classify(new McpError(-32_602, inner.message)).message).toBe(
    'The upstream refused the arguments: city is missing.',
  );
});

test('-32000 and -32001 are told apart by what they say', () => {
  const code = (number: number, message: string, data?: unknown) =>
    classify(new McpError(number, message, data)).code;
  expect(code(-32_001, 'Session not found')).toBe('UPSTREAM_UNAVAILABLE');
  expect(code(-32_001, 'x', { timeout: 5 })).toBe('UPSTREAM_TIMEOUT');
  expect(code(-32_001, 'Request timed out')).toBe('UPSTREAM_TIMEOUT');
  expect(code(-32_000, 'Connection closed')).toBe('CONNECTION_RESET');
  expect(code(-32_000, 'Request was cancelled')).toBe('CANCELLED');
  expect(code(-32_000, 'Bad Request: Server not initialized')).toBe('UPSTREAM_UNAVAILABLE');
  expect(code(-32_602, 'does not match the output schema')).toBe('UPSTREAM_INVALID_RESPONSE');
});

test('a rate limit of JSON-RPC says in its data how long to wait', () => {
  const wait = (data: unknown) => classify(new McpError(-32_023, 'slow down', data)).retryAfter;
  expect(wait({ retryAfter: 3 })).toBe(3);
  expect(wait({ retryAfterMs: 1500 })).toBe(1.5);
  expect(wait({ retryAfter: -3 })).toBeUndefined();
  expect(wait(undefined)).toBeUndefined();
});

verifies('failure.tool-results', async () => {
  const { call } = await connected();
  const result = await call('fail');
  expect(classify(result)).toMatchObject({
    code: 'TOOL_ERROR',
    message: 'The tool reported an error: no such city.',
    weight: 'caller',
    delivery: 'answered',
    retryable: false,
  });
  // Even when the tool behind it says that something of its own is down.
  const down = failureToJSON(createFailure('UPSTREAM_UNAVAILABLE'));
  expect(classify({ ...result, _meta: { [FAILURE_KEY]: down } })).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    weight: 'caller',
    retryable: false,
  });
  const slow = failureToJSON(createFailure('RATE_LIMITED', { retryAfter: 9 }));
  expect(classify({ ...result, _meta: { [FAILURE_KEY]: slow } })).toMatchObject({
    weight: 'throttled',
    retryAfter: 9,
  });
});

verifies('failure.revived', () => {
  const sent = failureToJSON(createFailure('CIRCUIT_OPEN', { retryAfter: 12 }));
  for (const data of [sent, { [FAILURE_KEY]: sent }]) {
    const failure = classify(new McpError(-32_603, 'x', JSON.parse(JSON.stringify(data))));
    expect(failureToJSON(failure)).toEqual(sent);
  }
  const lies = { ...sent, weight: 'caller', retryAfter: -1, message: 'a\n token=hush1234' };
  expect(classify(new McpError(-32_603, 'x', lies))).toMatchObject({
    retryable: false,
    message: 'a token=***',
  });
  const part = { code: 'CIRCUIT_OPEN', message: 'not a failure of ours' };
  expect(classify(new McpError(-32_603, 'x', part)).code).toBe('UPSTREAM_ERROR');
});

verifies('L33', () => {
  const payload = { type: 'error', error: 'rate limit reached' };
  const mine: Classifier = (value) =>
    Object(value).error === 'rate limit reached' ? createFailure('RATE_LIMITED') : undefined;
  expect(classify(payload).weight).not.toBe('throttled');
  for (const classifier of [mine, throttledResult])
    expect(classify(payload, { classifier })).toMatchObject({
      code: 'RATE_LIMITED',
      weight: 'throttled',
      retryable: true,
    });
  const result = (text: string) => ({ isError: true, content: [{ type: 'text', text }] });
  const of = (value: unknown) => classify(value, { classifier: throttledResult });
  expect(of(result('HTTP 429, retry after 7 seconds')).retryAfter).toBe(7);
  expect(of(result('Too many requests, try again in 2 min')).retryAfter).toBe(120);
  expect(of({ ...result('x'), structuredContent: payload }).code).toBe('RATE_LIMITED');
  expect(of(result('no such city')).code).toBe('TOOL_ERROR');
  const fine = { content: [{ type: 'text', text: 'How to handle rate limits' }] };
  expect(throttledResult(fine)).toBeUndefined();
  for (const value of [undefined, null, 'rate limit', 429])
    expect(throttledResult(value)).toBeUndefined();
});
