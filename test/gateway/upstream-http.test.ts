import { describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamConfig } from '../../src/gateway/types.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { upstreamConfig } from './support/link-config.ts';
import { call, client, failed, openManager, reading, textOf } from './support/manager.ts';
import {
  type HttpUpstream,
  type HttpUpstreamSettings,
  startHttpUpstream,
} from './support/upstream-http.ts';

/** A real server, and a session with it. */
const open = async (
  settings: HttpUpstreamSettings = {},
  config: Partial<UpstreamConfig> = {},
  kind: 'http' | 'sse' = 'http',
) => {
  const server = await startHttpUpstream(settings);
  onTestFinished(() => server.close());
  const url = kind === 'http' ? server.url : server.sseUrl;
  const { manager } = openManager([upstreamConfig({ kind, url, headers: {} }, config)]);
  const session = manager.open('u', client);
  await session.ready();
  const health = () => manager.health()[0] ?? expect.fail('there is one upstream');
  const posts = (method: string) =>
    server.requests.filter(({ body }) => body?.method === method).length;
  return { server, manager, session, health, posts };
};

/** Until we have heard of every connection that the server has broken. */
const heardOf = async (server: HttpUpstream): Promise<void> => {
  await until(() => server.open === 0);
  for (let turn = 0; turn < 5; turn += 1) await flush();
};

const retry = { maxRetries: 2, baseDelay: 1, jitter: 'none' as const };

describe('a session that the server has forgotten', () => {
  verifies('S01', async () => {
    const { server, session, health } = await open();
    const heard: string[] = [];
    session.onreconnected = () => void heard.push('again');
    await call(session, 'write', { key: 'before' });
    server.restart();
    await heardOf(server);
    // Refused before it was looked at: it goes into the new session, and is executed once.
    expect(textOf(await call(session, 'write', { key: 'a' }))).toBe('written');
    expect(server.record.initializes).toBe(2);
    expect(server.record.writes).toEqual(['write before', 'write a']);
    expect(heard).toEqual(['again']);
    expect(health()).toMatchObject({ state: 'ready', restarts: 1 });
    // And for everybody who finds out at the same time there is one new session.
    server.forget();
    const keys = Array.from({ length: 20 }, (_, n) => `c${n}`);
    await Promise.all(keys.map((key) => call(session, 'write', { key })));
    expect(server.record.initializes).toBe(3);
    expect(server.record.writes.slice(2).sort()).toEqual(keys.map((key) => `write ${key}`).sort());
  });

  test('what was running when the server went is lost, and told as such', async () => {
    const { server, session } = await open({}, { policy: { retry } });
    const write = failed(call(session, 'write', { key: 'a', ms: 60_000 }));
    const read = call(session, 'read', { key: 'b' }, reading('read'));
    await until(() => server.record.writes.length === 2);
    expect(textOf(await read)).toBe('written');
    server.restart();
    await heardOf(server);
    expect((await write).code).toBe('OUTCOME_UNKNOWN');
    expect(textOf(await call(session, 'write', { key: 'c' }))).toBe('written');
    expect(server.record.writes).toEqual(['write a', 'read b', 'write c']);
  });

  verifies('S03', async () => {
    const { server, session } = await open();
    await call(session, 'ok');
    server.fail('tools/call', { kind: 'terminated' });
    expect(textOf(await call(session, 'write', { key: 'a' }))).toBe('written');
    expect(server.record.initializes).toBe(2);
    expect(server.record.writes).toEqual(['write a']);
    // It says so again and again: the second time it is the answer, and no loop.
    server.fail('tools/call', { kind: 'terminated' }, 2);
    await expect(call(session, 'ok')).rejects.toMatchObject({ code: -32600 });
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(server.record.writes).toEqual(['write a']);
  });

  test('servers that answer HTTP 400 in place of 404 are understood', async () => {
    const { server, session } = await open();
    await call(session, 'ok');
    const error = { code: -32000, message: 'Bad Request: No valid session ID provided' };
    server.fail('tools/call', {
      kind: 'status',
      status: 400,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', error, id: null }),
    });
    expect(textOf(await call(session, 'write', { key: 'a' }))).toBe('written');
    expect(server.record.initializes).toBe(2);
  });

  test('an error of a tool that speaks of sessions is its answer, and nothing is repeated', async () => {
    const { server, session } = await open();
    await call(session, 'ok');
    const args = { code: -32000, message: 'your login session expired' };
    await expect(call(session, 'rpcerr', args)).rejects.toMatchObject(args);
    await expect(call(session, 'rpcerr', { ...args, code: 7 })).rejects.toMatchObject({ code: 7 });
    const calls = server.record.received.filter(({ message }) => message.method === 'tools/call');
    expect(calls).toHaveLength(3);
  });
});

describe('answers of HTTP', () => {
  verifies('B10', async () => {
    const { server, session, posts, health } = await open();
    await call(session, 'ok');
    const before = server.requests.length;
    const answer = async (status: number, headers: Record<string, string> = {}) => {
      server.fail('tools/call', { kind: 'status', status, headers });
      return (await failed(call(session, 'write'))).failure;
    };
    expect(await answer(429, { 'retry-after': '7' })).toMatchObject({
      code: 'RATE_LIMITED',
      delivery: 'refused',
      retryAfter: 7,
      message: expect.stringContaining('upstream "u"'),
    });
    expect(await answer(500)).toMatchObject({ code: 'UPSTREAM_ERROR', delivery: 'answered' });
    expect(await answer(403)).toMatchObject({ code: 'AUTH_FAILED', retryable: false });
    expect(await answer(503, { 'retry-after': '3' })).toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      retryAfter: 3,
    });
    // A gateway in between does not know what became of the request.
    expect(await answer(504)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(server.requests.length - before).toBe(5);
    expect(posts('initialize')).toBe(1);
    expect(health()).toMatchObject({ state: 'ready', restarts: 0 });
  });

  test('Retry-After is waited for before the next attempt, and not longer than the policy allows', async () => {
    const server = await startHttpUpstream();
    onTestFinished(() => server.close());
    const clock = new ManualClock();
    const address = { kind: 'http', url: server.url, headers: {} } as const;
    const policy = { retry: { ...retry, maxDelay: 10_000 } };
    const { manager } = openManager([upstreamConfig(address, { policy })], {
      clock,
      random: () => 0,
    });
    const session = manager.open('u', client);
    await session.ready();
    server.fail('tools/call', { kind: 'status', status: 429, headers: { 'retry-after': '5' } });
    const asked = call(session, 'write', { key: 'a' });
    await until(() => clock.nextTimer === 5_000);
    expect(server.record.writes).toEqual([]);
    await clock.advance(5_000);
    expect(textOf(await asked)).toBe('written');
    server.fail('tools/call', { kind: 'status', status: 429, headers: { 'retry-after': '60' } });
    expect((await failed(call(session, 'write'))).failure.retryAfter).toBe(60);
    expect(server.record.writes).toEqual(['write a']);
  });

  verifies('B09', async () => {
    const { server, session, health } = await open(
      {},
      { policy: { breaker: { threshold: 3, openDuration: 60_000 } } },
    );
    server.fail('tools/call', { kind: 'status', status: 500 }, 3);
    for (let n = 0; n < 3; n += 1) await failed(call(session, 'ok'));
    const before = server.requests.length;
    const { failure, message } = await failed(call(session, 'ok'));
    expect(failure).toMatchObject({ code: 'CIRCUIT_OPEN', retryable: true, delivery: 'not_sent' });
    expect(failure.retryAfter).toBeGreaterThan(50);
    expect(message).toContain('"u"');
    expect(server.requests.length).toBe(before);
    expect(health()).toMatchObject({ state: 'degraded', breaker: { state: 'open' } });
  });

  test('the answer to what only reads is asked for again, that of a write is not', async () => {
    const { server, session, health } = await open({}, { policy: { retry } });
    server.fail('tools/call write', { kind: 'lost' });
    const error = await failed(call(session, 'write', { key: 'a' }));
    expect(error.code).toBe('OUTCOME_UNKNOWN');
    server.fail('tools/call read', { kind: 'lost' });
    expect(textOf(await call(session, 'read', { key: 'b' }, reading('read')))).toBe('written');
    server.fail('resources/read', { kind: 'end' });
    await session.request({ method: 'resources/read', params: { uri: 'test://one' } });
    server.fail('logging/setLevel', { kind: 'end' });
    const level = session.request({ method: 'logging/setLevel', params: { level: 'info' } });
    expect((await failed(level)).code).toBe('OUTCOME_UNKNOWN');
    expect(server.record.writes).toEqual(['write a', 'read b', 'read b']);
    // One stream is not the session.
    expect(server.record.initializes).toBe(1);
    expect(health()).toMatchObject({ state: 'ready', restarts: 0 });
  });

  verifies('R05', async () => {
    const gets = ({ requests }: Awaited<ReturnType<typeof startHttpUpstream>>) =>
      requests.filter(({ method }) => method === 'GET').length;
    const none = await open({ get: 'none' });
    for (let n = 0; n < 5; n += 1) await call(none.session, 'ok');
    expect(gets(none.server)).toBe(1);
    // One that ends its streams at once is asked less and less often.
    const server = await startHttpUpstream({ get: 'end' });
    onTestFinished(() => server.close());
    const clock = new ManualClock();
    const address = { kind: 'http', url: server.url, headers: {} } as const;
    const { manager } = openManager([upstreamConfig(address)], { clock });
    const session = manager.open('u', client);
    await session.ready();
    await until(() => gets(server) === 1);
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(1_000);
      await call(session, 'ok');
    }
    expect(gets(server)).toBeGreaterThan(2);
    expect(gets(server)).toBeLessThan(10);
    expect(server.record.initializes).toBe(1);
    expect(manager.health()[0]).toMatchObject({ state: 'ready', restarts: 0 });
  });
});

describe('a server that cannot be reached', () => {
  verifies('upstream.unreachable', async () => {
    const restart = { initialDelay: 10, maxDelay: 20 };
    const { server, session, health } = await open({ sessions: false, get: 'none' }, { restart });
    await call(session, 'counter');
    await server.stop();
    await heardOf(server);
    const error = await failed(call(session, 'write', { key: 'a' }));
    expect(error.failure).toMatchObject({ code: 'CONNECTION_REFUSED', delivery: 'not_sent' });
    expect(health().state).not.toBe('ready');
    expect(health().reason).toContain('refused');
    await server.start();
    // It has no sessions to forget: the one that we have goes on, without initialize.
    await until(() => health().state === 'degraded' || health().state === 'ready');
    expect(textOf(await call(session, 'write', { key: 'b' }))).toBe('written');
    expect(health()).toMatchObject({ state: 'ready', restarts: 0 });
    expect(server.record.initializes).toBe(1);
    expect(server.record.writes).toEqual(['write b']);
  });

  test('one that was started anew is initialised again', async () => {
    const restart = { initialDelay: 10, maxDelay: 20 };
    const { server, session, health } = await open({}, { restart });
    await call(session, 'ok');
    await server.stop();
    await heardOf(server);
    await failed(call(session, 'ok'));
    await server.start();
    await until(() => health().restarts > 0);
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(server.record.initializes).toBe(2);
  });

  test('closing does not wait for it', async () => {
    const restart = { initialDelay: 60_000, maxDelay: 60_000 };
    const { server, session, health, manager } = await open({}, { restart });
    await server.stop();
    await heardOf(server);
    await failed(call(session, 'ok'));
    expect(health()).toMatchObject({ state: 'down' });
    expect(health().retryAfter).toBeGreaterThan(25);
    await session.close();
    await manager.close();
  });
});

describe('the end of a session', () => {
  verifies('upstream.deletes-sessions', async () => {
    const { server, session, manager } = await open();
    const other = manager.open('u', client);
    await other.ready();
    expect(server.sessions.size).toBe(2);
    await session.close();
    expect(server.sessions.size).toBe(1);
    expect(textOf(await call(other, 'ok'))).toBe('ok');
    await manager.close();
    expect(server.sessions.size).toBe(0);
    await until(() => server.open === 0);
  });

  test('HTTP+SSE of 2024-11-05 is survived in the same way', async () => {
    const { server, session, health } = await open({}, {}, 'sse');
    expect(textOf(await call(session, 'write', { key: 'a' }))).toBe('written');
    const lost = failed(call(session, 'write', { key: 'b', ms: 60_000 }));
    await until(() => server.record.writes.length === 2);
    server.restart();
    await heardOf(server);
    expect((await lost).code).toBe('OUTCOME_UNKNOWN');
    expect(textOf(await call(session, 'write', { key: 'c' }))).toBe('written');
    expect(server.record.writes).toEqual(['write a', 'write b', 'write c']);
    expect(health()).toMatchObject({ kind: 'sse', restarts: 1 });
  });
});
