import { expect, test } from 'vitest';
import { classify, type Failure } from '../../src/resilience/failure.ts';
import { parseRetryAfter } from '../../src/resilience/retry-after.ts';
import { http } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

const expected = (status: number): Partial<Failure> => {
  if (status < 400) return { code: 'UPSTREAM_INVALID_RESPONSE', retryable: false };
  if (status === 401 || status === 403 || status === 407)
    return { code: 'AUTH_FAILED', weight: 'caller', retryable: false };
  if (status === 404 || status === 410) return { code: 'NOT_FOUND', weight: 'caller' };
  if (status === 408) return { code: 'UPSTREAM_TIMEOUT', retryable: true, delivery: 'answered' };
  if (status === 425) return { code: 'UPSTREAM_UNAVAILABLE', retryable: true, delivery: 'refused' };
  if (status === 429)
    return { code: 'RATE_LIMITED', weight: 'throttled', retryable: true, delivery: 'refused' };
  if (status < 500)
    return {
      code: 'REQUEST_REJECTED',
      weight: 'caller',
      source: 'validation',
      severity: 'permanent',
      retryable: false,
    };
  if (status === 501 || status === 505) return { code: 'UPSTREAM_ERROR', severity: 'permanent' };
  const code = [502, 503, 504].includes(status) ? 'UPSTREAM_UNAVAILABLE' : 'UPSTREAM_ERROR';
  return { code, weight: 'infrastructure', retryable: true, delivery: 'answered' };
};

verifies('failure.http-statuses', async () => {
  const port = await http((request, response) => {
    const status = Number(new URL(request.url ?? '/', 'http://x').pathname.slice(1));
    response.writeHead(status, { 'retry-after': '7' }).end();
  });
  for (let status = 200; status <= 599; status += 1) {
    expect(classify({ status })).toMatchObject(expected(status));
    // undici makes a network error of it, as the Fetch standard says for requests without a window.
    if (status === 407) continue;
    const response = await fetch(`http://127.0.0.1:${port}/${status}?key=hush`);
    await response.body?.cancel();
    const failure = classify(response);
    const want = status === 403 ? { code: 'RATE_LIMITED' } : expected(status);
    expect(failure, `HTTP ${status}`).toMatchObject(want);
    expect(failure.message).toBe(`The upstream (127.0.0.1:${port}) answered HTTP ${status}.`);
    expect(failure.retryAfter, `HTTP ${status}`).toBe(failure.retryable ? 7 : undefined);
  }
  expect(classify(Response.error()).code).toBe('NETWORK_ERROR');
});

test('405 is a capability that is missing, and not a failure of the server', () => {
  expect(classify({ status: 405 })).toMatchObject({ weight: 'caller', retryable: false });
});

const withHeaders = (headers: unknown, extra: object = {}) =>
  classify(Object.assign(new Error('too many'), { status: 429, headers }, extra), {
    wallTime: () => NOW,
  }).retryAfter;

verifies('failure.retry-after', async () => {
  const parse = (text: string) => parseRetryAfter(text, NOW);
  expect(parse('120')).toBe(120);
  expect(parse(' 0 ')).toBe(0);
  expect(parse('1.5')).toBe(1.5);
  expect(parse('2592000')).toBe(2_592_000);
  expect(parse('9'.repeat(400))).toBe(Number.MAX_SAFE_INTEGER);
  expect(parse('Thu, 01 Jan 2026 00:00:30 GMT')).toBe(30);
  expect(parse('Thursday, 01-Jan-26 00:01:00 GMT')).toBe(60);
  expect(parse('Thu Jan  1 00:02:00 2026')).toBe(120);
  expect(parse('Sun, 06 Nov 1994 08:49:37 GMT')).toBe(0);
  expect(parse('Sunday, 06-Nov-94 08:49:37 GMT')).toBe(0);
  const garbage = ['-5', '', 'soon', '1e3', '0x10', 'NaN', 'Infinity', '2026-01-02', '5 seconds'];
  for (const text of garbage) expect(parse(text), text).toBeUndefined();
  expect(parse('Thu, 01 Foo 2026 00:00:30 GMT')).toBeUndefined();

  expect(withHeaders(new Headers({ 'Retry-After': '7' }))).toBe(7);
  expect(withHeaders(new Map([['retry-after', '7']]))).toBe(7);
  expect(withHeaders({ 'RETRY-after': '7' })).toBe(7);
  expect(withHeaders({ 'retry-after': ['7', '9'] })).toBe(7);
  expect(withHeaders({ 'retry-after': 7 })).toBe(7);
  expect(withHeaders([['Retry-After', '7']])).toBe(7);
  expect(withHeaders(['content-type', 'x', 'Retry-After', '7'])).toBe(7);
  expect(withHeaders({ 'retry-after': '-1' })).toBeUndefined();
  expect(withHeaders({ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' })).toBe(30);
  expect(withHeaders(undefined, { response: { headers: { 'retry-after': '7' } } })).toBe(7);
});

test('a 503 keeps the Retry-After of the server and still weighs on the breaker', () => {
  const response = new Response(null, { status: 503, headers: { 'retry-after': '600' } });
  expect(classify(response)).toMatchObject({ weight: 'infrastructure', retryAfter: 600 });
});

test('a 403 with Retry-After is throttling', () => {
  const response = new Response(null, { status: 403, headers: { 'retry-after': '60' } });
  expect(classify(response)).toMatchObject({ code: 'RATE_LIMITED', retryAfter: 60 });
});

test.each([
  ['axios', Object.assign(new Error('x'), { code: 'ERR_BAD_REQUEST', response: { status: 404 } })],
  ['got', Object.assign(new Error('x'), { response: { statusCode: 404 } })],
  ['undici', Object.assign(new Error('x'), { code: 'UND_ERR_RESPONSE', statusCode: 404 })],
  ['a number in code', Object.assign(new Error('x'), { code: 404 })],
  ['a cause', new Error('weather failed', { cause: { status: 404 } })],
])('the status is found where %s puts it', (_, error) => {
  expect(classify(error).code).toBe('NOT_FOUND');
});

test('the exit code of a process is no HTTP status', () => {
  const error = Object.assign(new Error('exit'), { status: 255, pid: 1 });
  expect(classify(error).code).toBe('UNKNOWN_ERROR');
});

test('the text of a client error is told, that of a server error and its body is not', () => {
  const of = (status: number) => classify(Object.assign(new Error('city is missing'), { status }));
  expect(of(422).message).toBe('The upstream answered HTTP 422: city is missing.');
  expect(of(500).message).toBe('The upstream answered HTTP 500.');
});
