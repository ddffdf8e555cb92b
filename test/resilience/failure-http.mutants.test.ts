import { describe, expect, test } from 'vitest';
import { classify, type Failure } from '../../src/resilience/failure.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const of = (value: unknown): Failure => classify(value, { wallTime: () => NOW });

describe('a status', () => {
  test.each([
    [100, 'UPSTREAM_INVALID_RESPONSE', 'answered', false],
    [301, 'UPSTREAM_INVALID_RESPONSE', 'answered', false],
    [399, 'UPSTREAM_INVALID_RESPONSE', 'answered', false],
    [400, 'REQUEST_REJECTED', 'answered', false],
    [401, 'AUTH_FAILED', 'answered', false],
    [403, 'AUTH_FAILED', 'answered', false],
    [404, 'NOT_FOUND', 'answered', false],
    [407, 'AUTH_FAILED', 'answered', false],
    [408, 'UPSTREAM_TIMEOUT', 'answered', true],
    [410, 'NOT_FOUND', 'answered', false],
    [425, 'UPSTREAM_UNAVAILABLE', 'refused', true],
    [429, 'RATE_LIMITED', 'refused', true],
    [499, 'REQUEST_REJECTED', 'answered', false],
    [500, 'UPSTREAM_ERROR', 'answered', true],
    [501, 'UPSTREAM_ERROR', 'answered', false],
    [502, 'UPSTREAM_UNAVAILABLE', 'answered', true],
    [503, 'UPSTREAM_UNAVAILABLE', 'answered', true],
    [504, 'UPSTREAM_UNAVAILABLE', 'answered', true],
    [505, 'UPSTREAM_ERROR', 'answered', false],
    [599, 'UPSTREAM_ERROR', 'answered', true],
  ])('%i', (status, code, delivery, retryable) => {
    expect(of({ status, url: 'https://api.example/v1?key=hush' })).toMatchObject({
      code,
      delivery,
      retryable,
      severity: retryable ? 'transient' : 'permanent',
      message: `The upstream (api.example) answered HTTP ${status}.`,
    });
  });

  test('is a whole number of HTTP’s range', () => {
    for (const status of [99, 600, 404.5, '404', Number.NaN]) {
      expect(of({ status }).code, String(status)).toBe('UNKNOWN_ERROR');
    }
  });

  test('in `code` is one from 400 on', () => {
    expect(of({ code: 400 }).code).toBe('REQUEST_REJECTED');
    expect(of({ code: 399 }).code).toBe('UNKNOWN_ERROR');
    expect(of({ code: 600 }).code).toBe('UNKNOWN_ERROR');
  });

  test('of a child process is its exit code', () => {
    expect(of({ status: 404, pid: 1 }).code).toBe('UNKNOWN_ERROR');
    expect(of({ status: 404, spawnargs: [] }).code).toBe('UNKNOWN_ERROR');
  });

  test('0 with the type error is a network error, nothing else is', () => {
    const blocked = { type: 'error', status: 0 };
    expect(of(blocked)).toMatchObject({ code: 'NETWORK_ERROR', cause: blocked });
    expect(of({ type: 'basic', status: 0 }).code).toBe('UNKNOWN_ERROR');
    expect(of({ type: 'error', status: 404 }).code).toBe('NOT_FOUND');
  });

  test('is told without a host where there is none to tell', () => {
    for (const url of [undefined, '', 'no url']) {
      expect(of({ status: 500, url }).message).toBe('The upstream answered HTTP 500.');
    }
  });

  test('401 says nothing of what the upstream wrote, 404 does', () => {
    const text = (status: number) =>
      of(Object.assign(new Error('no such city'), { status })).message;
    expect(text(401)).toBe('The upstream answered HTTP 401.');
    expect(text(404)).toBe('The upstream answered HTTP 404: no such city.');
  });

  test('missing in the SDK’s UnauthorizedError, which is one all the same', () => {
    const error = Object.assign(new Error('x'), { name: 'UnauthorizedError' });
    expect(of(error)).toMatchObject({ code: 'AUTH_FAILED', cause: error });
  });
});

describe('a session that the server has forgotten', () => {
  test.each([
    'Session not found',
    'session expired',
    'Session terminated',
    'Bad Request: Server not initialized',
  ])('%s', (message) => {
    for (const status of [400, 404]) {
      const error = Object.assign(new Error(message), { status });
      expect(of(error)).toMatchObject({
        code: 'UPSTREAM_UNAVAILABLE',
        delivery: 'refused',
        retryable: true,
        message: 'The upstream no longer knows the session, which must be opened again.',
        cause: error,
      });
    }
    expect(of(Object.assign(new Error(message), { status: 500 })).code).toBe('UPSTREAM_ERROR');
  });
});

describe('Retry-After', () => {
  const waitOf = (value: object) => of({ status: 429, ...value }).retryAfter;

  test('is found in the answer, its response and its data', () => {
    const headers = { 'retry-after': '7' };
    expect(waitOf({ headers })).toBe(7);
    expect(waitOf({ response: { headers } })).toBe(7);
    expect(waitOf({ data: { headers } })).toBe(7);
    expect(waitOf({ headers: { 'content-type': 'x' }, response: { headers } })).toBe(7);
  });

  test('is no text of another header, and none that is no text', () => {
    expect(waitOf({ headers: { 'x-retry-after': '7' } })).toBeUndefined();
    expect(waitOf({ headers: { 'retry-after': { seconds: 7 } } })).toBeUndefined();
    expect(waitOf({ headers: { 'retry-after': [] } })).toBeUndefined();
    expect(waitOf({ headers: ['7', 'retry-after'] })).toBeUndefined();
    expect(waitOf({ headers: ['x', 'retry-after', '7', 'y'] })).toBeUndefined();
    expect(waitOf({ headers: 'retry-after: 7' })).toBeUndefined();
    expect(waitOf({ headers: [] })).toBeUndefined();
  });

  test('is read from the list when `get` finds nothing', () => {
    const headers = { get: () => null, 'retry-after': '7' };
    expect(waitOf({ headers })).toBe(7);
  });

  test('in headers that cannot be read is not there', () => {
    const headers = {
      get: () => {
        throw new Error('no');
      },
    };
    expect(of({ status: 429, headers })).toMatchObject({ code: 'RATE_LIMITED' });
    expect(waitOf({ headers, response: { headers: { 'retry-after': '7' } } })).toBe(7);
  });

  test('stands only on what may be repeated, and makes throttling of 403 alone', () => {
    const headers = { 'retry-after': '7' };
    expect(of({ status: 404, headers })).not.toHaveProperty('retryAfter');
    expect(of({ status: 404, headers }).code).toBe('NOT_FOUND');
    expect(of({ status: 401, headers }).code).toBe('AUTH_FAILED');
    expect(of({ status: 403, headers })).toMatchObject({ code: 'RATE_LIMITED', retryAfter: 7 });
    expect(of({ status: 503 })).not.toHaveProperty('retryAfter');
  });
});
