import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { classify } from '../../src/resilience/failure.ts';
import { baseUrl, fetchJson } from '../../src/tools/upstream.ts';
import { VERSION } from '../../src/version.ts';
import { rejection } from '../fixtures/loopback.ts';
import {
  answer,
  type Behaviour,
  drip,
  halfClose,
  hang,
  json,
  oversized,
  redirect,
  reset,
  stall,
  truncatedJson,
} from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { upstreamForTest } from './support.ts';

const failureOf = async (behaviour: Behaviour, options: Parameters<typeof fetchJson>[1] = {}) => {
  const upstream = await upstreamForTest();
  upstream.on('*', behaviour);
  const error = await rejection(() => fetchJson(`${upstream.url}/x?secret=1`, options));
  return { failure: classify(error), error, upstream };
};

describe('fetchJson', () => {
  test('gives the parsed answer and names us', async () => {
    const upstream = await upstreamForTest();
    upstream.on(
      '/a',
      json({ n: 1 }),
      json('\ufeff{"n":2}'),
      answer(200, '{"n":3}', { 'content-type': 'text/json;charset=utf-8' }),
    );
    const schema = z.object({ n: z.number() });
    for (const n of [1, 2, 3])
      expect(await fetchJson(`${upstream.url}/a`, { schema })).toEqual({ n });
    expect(upstream.requests[0]?.headers).toMatchObject({
      'user-agent': `mcp-resilience/${VERSION}`,
      accept: 'application/json',
    });
  });

  verifies('upstream.statuses', async () => {
    const cases: [number, Record<string, string>, object][] = [
      [429, { 'retry-after': '7' }, { code: 'RATE_LIMITED', retryAfter: 7, weight: 'throttled' }],
      [503, { 'retry-after': '3' }, { code: 'UPSTREAM_UNAVAILABLE', retryAfter: 3 }],
      [500, {}, { code: 'UPSTREAM_ERROR', weight: 'infrastructure' }],
      [404, {}, { code: 'NOT_FOUND', weight: 'caller' }],
      [401, {}, { code: 'AUTH_FAILED' }],
      [400, {}, { code: 'REQUEST_REJECTED', weight: 'caller' }],
    ];
    for (const [status, headers, expected] of cases) {
      const { failure, error, upstream } = await failureOf(answer(status, '<p>no</p>', headers));
      expect(failure).toMatchObject(expected);
      expect(failure.message).toContain(new URL(upstream.url).host);
      expect(JSON.stringify([failure.message, error])).not.toContain('secret');
    }
  });

  verifies('upstream.invalid-answers', async () => {
    const schema = z.object({ n: z.array(z.number()) });
    const cases: [Behaviour, RegExp, Parameters<typeof fetchJson>[1]?][] = [
      [truncatedJson({ a: [1, 2, 3] }), /not valid JSON/],
      [json('{"a":'), /not valid JSON/],
      [json('<html>'), /not valid JSON/],
      [json(''), /empty/],
      [json(Buffer.from([0x22, 0xff, 0xfe, 0x22])), /not valid JSON/],
      [answer(200, '<html></html>', { 'content-type': 'text/html' }), /text\/html, not JSON/],
      [oversized(1_001), /longer than 1000 bytes/, { maxBytes: 1_000 }],
      [
        oversized(1_001, { 'transfer-encoding': 'chunked' }),
        /longer than 1000 bytes/,
        { maxBytes: 1_000 },
      ],
      [json({ n: [1, 'two'] }), /n\.1: /, { schema }],
    ];
    for (const [behaviour, problem, options] of cases) {
      const { failure } = await failureOf(behaviour, options);
      expect(failure.code).toBe('UPSTREAM_INVALID_RESPONSE');
      expect(failure.weight).toBe('infrastructure');
      expect(failure.message).toMatch(problem);
    }
  });

  test('an answer of exactly the limit is read', async () => {
    const upstream = await upstreamForTest();
    upstream.on('*', oversized(1_000));
    expect(await fetchJson(upstream.url, { maxBytes: 1_000 })).toHaveLength(998);
  });

  test('a connection that breaks is a failure of the network', async () => {
    expect((await failureOf(reset())).failure.code).toBe('CONNECTION_RESET');
    const half = await failureOf(halfClose('{"a":"0123456789"}'));
    expect(half.failure).toMatchObject({ code: 'CONNECTION_RESET', weight: 'infrastructure' });
  });

  verifies('upstream.no-socket-leak', async () => {
    const upstream = await upstreamForTest();
    const failing = [
      answer(503, 'x'.repeat(10_000)),
      answer(404, { a: 1 }),
      answer(200, 'no', { 'content-type': 'text/html' }),
      json({ wrong: true }),
    ];
    upstream.on('*', ...failing, ...failing, ...failing, ...failing, json({ n: 1 }));
    const schema = z.object({ n: z.number() });
    for (let n = 0; n < 4 * failing.length; n += 1) {
      await rejection(() => fetchJson(upstream.url, { schema }));
    }
    await fetchJson(upstream.url, { schema });
    // A request that comes before undici has the last connection back opens a second one.
    expect(upstream.connections).toBeLessThanOrEqual(2);

    // One that never ends is closed, and its status is told all the same.
    const stuck = await failureOf(stall(503, 'wait', { 'retry-after': '9' }));
    expect(stuck.failure).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', retryAfter: 9 });
    await until(() => stuck.upstream.open === 0);
    const page = await failureOf(stall(200, '<html>', { 'content-type': 'text/html' }));
    expect(page.failure.code).toBe('UPSTREAM_INVALID_RESPONSE');
    await until(() => page.upstream.open === 0);
    const flood = await failureOf(answer(500, 'x'.repeat(5_000_000)));
    expect(flood.failure.code).toBe('UPSTREAM_ERROR');
    await until(() => flood.upstream.open === 0);
    const long = await failureOf(oversized(5_000_000), { maxBytes: 1_000 });
    await until(() => long.upstream.open === 0);
  });

  verifies('upstream.same-origin', async () => {
    const other = await upstreamForTest();
    other.on('*', json({ stolen: true }));
    const upstream = await upstreamForTest();
    upstream.on('/old', redirect('/new?a=1'));
    upstream.on('/new', json({ fine: true }));
    expect(await fetchJson(`${upstream.url}/old`)).toEqual({ fine: true });

    upstream.on('/out', redirect(`${other.url}/x`));
    upstream.on('/scheme', redirect('file:///etc/passwd'));
    upstream.on('/loop', redirect('/loop'));
    upstream.on('/none', redirect('http://'));
    for (const path of ['/out', '/scheme', '/loop', '/none']) {
      const error = await rejection(() => fetchJson(upstream.url + path));
      expect(classify(error).code).toBe('UPSTREAM_INVALID_RESPONSE');
    }
    expect(other.count()).toBe(0);
    expect(upstream.count('/loop')).toBe(4);
  });

  verifies('upstream.aborts', async () => {
    const behaviours = [hang(), drip('[1,2,3]', 5), stall(503, 'x'), stall(200, '[')];
    for (const behaviour of behaviours) {
      const upstream = await upstreamForTest();
      upstream.on('*', behaviour);
      const controller = new AbortController();
      const { signal } = controller;
      const reason = new Error('enough');
      const failed = rejection(() => fetchJson(upstream.url, { signal }));
      await until(() => upstream.count() === 1);
      controller.abort(reason);
      expect(await failed).toBe(reason);
      await until(() => upstream.requests[0]?.aborted === true);
    }
  });
});

verifies('tools.base-url', () => {
  const of = (value: string | undefined) =>
    baseUrl({ API: value }, 'API', 'https://default.example');
  expect(of(undefined)).toBe('https://default.example');
  expect(of(' ')).toBe('https://default.example');
  expect(of('http://h:1')).toBe('http://h:1');
  expect(of('https://h/a/b//')).toBe('https://h/a/b');
  for (const wrong of [
    'wttr.in',
    'ftp://h',
    'file:///x',
    'http://',
    'http://h/?q=1',
    'http://h/#x',
  ]) {
    expect(() => of(wrong)).toThrow(
      /^API .*http or https URL, such as https:\/\/default\.example$/,
    );
  }
  expect(() => of('https://me:hunter2@h')).toThrow(/user name or password/);
  expect(() => of('https://me:hunter2@h')).not.toThrow(/hunter2/);
});
