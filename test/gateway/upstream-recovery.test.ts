import { describe, expect, test } from 'vitest';
import type { UpstreamConfig } from '../../src/gateway/types.ts';
import { ToolBreakers } from '../../src/gateway/upstream-tools.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { upstreamConfig } from './support/link-config.ts';
import { call, client, failed, openManager, textOf } from './support/manager.ts';
import { type Fate, MemoryUpstream } from './support/memory-upstream.ts';

const stdio = { kind: 'stdio', command: 'none', args: [], env: {} } as const;
const http = { kind: 'http', url: 'http://none/', headers: {} } as const;
const KILLED = { kind: 'exited', reason: 'killed by SIGKILL' } as const;

/** An upstream in memory, and a session with it that has been good for something. */
const open = async (config: Partial<UpstreamConfig> = {}) => {
  const clock = new ManualClock();
  const upstream = new MemoryUpstream();
  const whole = upstreamConfig(config.address ?? http, {
    connectTimeout: 5_000,
    restart: { initialDelay: 1_000, maxDelay: 8_000 },
    ...config,
  });
  upstream.sessionful = whole.address.kind !== 'stdio';
  const { createLink } = upstream;
  const { manager } = openManager([whole], { clock, createLink, random: () => 1 });
  const join = () => manager.open('u', client);
  const session = join();
  await call(session, 'ok');
  const health = () => manager.health()[0] ?? expect.fail('there is one upstream');
  /** What befalls the next messages of a method. */
  const next = (method: string, ...fates: Fate[]) => {
    upstream.fate = (message) => (message.method === method && fates.shift()) || 'arrives';
  };
  return { clock, upstream, manager, session, join, health, next };
};

describe('a session that is gone', () => {
  test.each(['forgotten', 'terminated'] as const)(
    'is replaced at once, if it was good for something (%s)',
    async (fate) => {
      const { upstream, session, next, health } = await open();
      next('tools/call', fate);
      // Time stands still.
      expect(textOf(await call(session, 'write', { key: 'a' }))).toBe('written');
      expect(upstream.record).toMatchObject({ initializes: 2, writes: ['write a'] });
      expect(health().state).toBe('ready');
    },
  );

  test('that was good for nothing is replaced after a wait, and not in a loop', async () => {
    const { clock, upstream, session, next } = await open();
    next('tools/call', 'forgotten', 'forgotten', 'forgotten');
    // The first is replaced at once, and refuses the call as well: that is told.
    const error = await failed(call(session, 'write', { key: 'a' }));
    expect(error.failure).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', delivery: 'refused' });
    const again = call(session, 'write', { key: 'b' });
    await flush();
    expect(upstream.record.initializes).toBe(2);
    await clock.advance(1_000);
    expect(upstream.record.initializes).toBe(3);
    await clock.advance(2_000);
    expect(textOf(await again)).toBe('written');
    expect(upstream.record.writes).toEqual(['write b']);
  });

  test('may still answer what it was asked before', async () => {
    const { upstream, session, next } = await open();
    const [link] = upstream.links;
    const slow = call(session, 'hang');
    await flush();
    const { id } = link?.sent.at(-1) ?? {};
    next('tools/call', 'forgotten');
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(upstream.open).toHaveLength(2);
    link?.deliver({ jsonrpc: '2.0', id, result: { late: true } });
    expect(await slow).toEqual({ late: true });
    await flush();
    expect(upstream.open).toHaveLength(1);
  });

  test('is closed with its client though it still works on something', async () => {
    const { upstream, session, next } = await open();
    const slow = failed(call(session, 'hang'));
    await flush();
    next('tools/call', 'forgotten');
    await call(session, 'ok');
    expect(upstream.open).toHaveLength(2);
    await session.close();
    expect(upstream.open).toEqual([]);
    expect((await slow).code).toBe('OUTCOME_UNKNOWN');
  });
});

describe('a server that cannot be reached', () => {
  test('keeps the session if it remembers it', async () => {
    const { clock, upstream, session, next, health } = await open();
    next('tools/call', 'refused');
    const error = await failed(call(session, 'write', { key: 'a' }));
    expect(error.failure).toMatchObject({ code: 'CONNECTION_REFUSED', delivery: 'not_sent' });
    expect(health()).toMatchObject({ state: 'down', retryAfter: 1 });
    next('ping', 'refused', 'refused');
    await clock.advance(1_000);
    expect(health()).toMatchObject({ state: 'down', retryAfter: 2 });
    await clock.advance(2_000);
    await clock.advance(4_000);
    expect(textOf(await call(session, 'write', { key: 'b' }))).toBe('written');
    expect(upstream.record).toMatchObject({ initializes: 1, writes: ['write b'] });
    expect(health()).toMatchObject({ state: 'ready', restarts: 0 });
    expect(upstream.links).toHaveLength(1);
  });

  test.each(['forgotten', 'terminated', 'executed'] as const)(
    'gets a new session if not (%s)',
    async (fate) => {
      const { clock, upstream, session, next, health } = await open();
      next('tools/call', 'refused');
      await failed(call(session, 'ok'));
      next('ping', fate);
      await clock.advance(1_000);
      expect(textOf(await call(session, 'ok'))).toBe('ok');
      expect(upstream.record.initializes).toBe(2);
      expect(health()).toMatchObject({ state: 'ready', restarts: 1 });
      expect(upstream.open).toHaveLength(1);
    },
  );

  test('an answer to ping, whatever it is, is an answer', async () => {
    const { clock, upstream, session, next } = await open();
    next('tools/call', 'refused');
    await failed(call(session, 'ok'));
    // It hangs, and then knows no ping.
    next('ping', 'silent', 'silent');
    await clock.advance(1_000);
    await clock.advance(5_000);
    await clock.advance(2_000);
    const { id } = upstream.links[0]?.sent.at(-1) ?? {};
    const error = { code: -32601, message: 'Method not found' };
    upstream.links[0]?.answer({ jsonrpc: '2.0', id, error });
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(upstream.record.initializes).toBe(1);
  });

  test('its session is ended with the client', async () => {
    const { upstream, session, next } = await open();
    next('tools/call', 'refused');
    await failed(call(session, 'ok'));
    expect(upstream.open).toHaveLength(1);
    await session.close();
    expect(upstream.open).toEqual([]);
  });
});

describe('a connection', () => {
  test('waiting for it does not count as silence of the upstream', async () => {
    const { clock, upstream, session } = await open({
      address: stdio,
      policy: { timeout: 1_500 },
    });
    upstream.links[0]?.end(KILLED);
    await flush();
    const asked = call(session, 'hang');
    await clock.advance(1_000);
    await clock.advance(1_000);
    const { id } = upstream.links[1]?.sent.at(-1) ?? {};
    upstream.links[1]?.deliver({ jsonrpc: '2.0', id, result: { late: true } });
    expect(await asked).toEqual({ late: true });
  });

  test('that ends as soon as it is made is noticed', async () => {
    const { clock, upstream, session, next, health } = await open({ address: stdio });
    upstream.links[0]?.end(KILLED);
    next('notifications/initialized', 'executed');
    await clock.advance(1_000);
    expect(health()).toMatchObject({ state: 'down', restarts: 1 });
    await clock.advance(2_000);
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(health().restarts).toBe(2);
  });

  test('that a child does not read from is replaced, though it does not end', async () => {
    const { clock, upstream, session, next } = await open({ address: stdio });
    next('tools/call', 'refused');
    const asked = call(session, 'write', { key: 'a' });
    await clock.advance(1_000);
    await clock.advance(1_000);
    expect(textOf(await asked)).toBe('written');
    expect(upstream.record.writes).toEqual(['write a']);
    expect(upstream.links[0]?.state).toBe('ended');
  });

  test('that fails in the middle of initialize has executed nothing: a write is tried again', async () => {
    const retry = { maxRetries: 1, baseDelay: 10, jitter: 'none' as const };
    const { clock, upstream, session, next } = await open({ address: stdio, policy: { retry } });
    upstream.links[0]?.end(KILLED);
    next('initialize', 'executed');
    const asked = call(session, 'write', { key: 'a' });
    await clock.advance(1_000);
    await clock.advance(2_000);
    expect(textOf(await asked)).toBe('written');
    expect(upstream.record.writes).toEqual(['write a']);
  });

  test('of one client may be made while that of another fails', async () => {
    const { upstream, join } = await open({ address: stdio });
    const slow = Promise.withResolvers<boolean>();
    const answers = [slow.promise, false];
    upstream.accepts = () => answers.shift() ?? true;
    const [one, two] = [join(), join()] as const;
    const ready = one.ready();
    await failed(two.ready());
    slow.resolve(true);
    expect(await ready).toMatchObject({ protocolVersion: '2025-11-25' });
  });

  test('a new client does not wait for as long as those who have failed so often', async () => {
    const { clock, upstream, join, health } = await open({ address: stdio });
    upstream.accepts = () => false;
    upstream.links[0]?.end(KILLED);
    await clock.advance(15_000);
    expect(health().retryAfter).toBe(8);
    await clock.advance(1_000);
    upstream.accepts = () => true;
    expect(await join().ready()).toMatchObject({ protocolVersion: '2025-11-25' });
  });
});

describe('ToolBreakers', () => {
  const config = upstreamConfig(stdio, { toolBreaker: { threshold: 1, openDuration: 1_000 } });
  const fail = (breakers: ToolBreakers, tool: string, known = true) =>
    breakers.acquire(tool, known).settle({ isError: true });

  test('are bounded, and leave no timer behind', () => {
    const clock = new ManualClock();
    const breakers = new ToolBreakers(config, clock);
    for (let n = 0; n < 600; n += 1) fail(breakers, `tool-${n}`);
    expect(clock.pendingTimers).toBe(500);
    expect(() => breakers.acquire('tool-599', true)).toThrow('paused');
    breakers.destroy();
    expect(clock.pendingTimers).toBe(0);
  });

  test('are for tools that exist', () => {
    const breakers = new ToolBreakers(config, new ManualClock());
    for (let n = 0; n < 3; n += 1) fail(breakers, 'made-up', false);
    expect(() => fail(breakers, 'made-up', true)).not.toThrow();
    expect(() => fail(breakers, 'made-up', true)).toThrow('tool "made-up" are paused');
    breakers.destroy();
  });
});
