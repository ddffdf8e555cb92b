import { describe, expect, test } from 'vitest';
import type { Json, UpstreamConfig, UpstreamState } from '../../src/gateway/types.ts';
import type { Session } from '../../src/gateway/upstream.ts';
import { currentDeadline, Deadline, runWithDeadline } from '../../src/resilience/deadline.ts';
import { ResilienceError } from '../../src/resilience/failure.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';
import { upstreamConfig } from './support/link-config.ts';
import { call, client, failed, openManager, reading, textOf } from './support/manager.ts';
import { type Fate, MemoryUpstream } from './support/memory-upstream.ts';
import type { UpstreamSettings } from './support/upstream-session.ts';

const address = { kind: 'stdio', command: 'none', args: [], env: {} } as const;

/** An upstream in memory, and time that stands still. */
const open = (settings: UpstreamSettings = {}, config: Partial<UpstreamConfig> = {}) => {
  const clock = new ManualClock();
  const upstream = new MemoryUpstream(settings);
  const { createLink } = upstream;
  const whole = upstreamConfig(address, {
    connectTimeout: 5_000,
    restart: { initialDelay: 1_000, maxDelay: 8_000 },
    ...config,
  });
  const { manager, lines } = openManager([whole], { clock, createLink, random: () => 1 });
  const states: UpstreamState[] = [];
  manager.onState((_, state) => void states.push(state));
  const health = () => manager.health()[0] ?? expect.fail('there is one upstream');
  const join = () => manager.open('u', client) as Session;
  return { clock, upstream, manager, lines, states, health, join };
};

const KILLED = { kind: 'exited', reason: 'killed by SIGKILL' } as const;

describe('a session', () => {
  verifies('upstream.initialize', async () => {
    const { manager, upstream } = open();
    const facts = {
      protocolVersion: '2025-06-18',
      capabilities: { sampling: {}, 'x-vendor': { a: 1 } },
      clientInfo: { name: 'c', version: '2', title: 'C' },
    };
    const session = manager.open('u', facts);
    expect(session.initializeResult).toBeUndefined();
    const result = await session.ready();
    expect(result).toMatchObject({ protocolVersion: '2025-06-18' });
    expect((result.serverInfo as Json)['x-vendor']).toBe(true);
    expect(session.initializeResult).toBe(result);
    await flush();
    const [initialize, initialized] = upstream.links[0]?.sent ?? [];
    expect(initialize?.params).toEqual(facts);
    expect(initialized?.method).toBe('notifications/initialized');
  });

  test('an older version of the protocol is taken, an unknown one is a failure that says so', async () => {
    const older = open({ protocol: '2024-11-05' });
    expect(await older.join().ready()).toMatchObject({ protocolVersion: '2024-11-05' });
    const unknown = open({ protocol: '1999-01-01' });
    const session = unknown.join();
    const error = await failed(session.ready());
    expect(error.code).toBe('UPSTREAM_INVALID_RESPONSE');
    expect(error.message).toContain('upstream "u"');
    expect(error.message).toContain('1999-01-01');
    expect(error.message).toContain('2025-11-25');
    expect(unknown.upstream.links[0]?.state).toBe('ended');
  });

  verifies('upstream.connect-timeout', async () => {
    const { clock, upstream, join, states, health } = open({ silent: ['initialize'] });
    const session = join();
    const reconnected: string[] = [];
    session.onreconnected = () => void reconnected.push('again');
    const ready = failed(session.ready());
    await clock.advance(4_999);
    expect(states).toEqual([]);
    await clock.advance(1);
    const error = await ready;
    expect(error.failure).toMatchObject({ code: 'CONNECT_TIMEOUT', delivery: 'not_sent' });
    expect(error.message).toContain('"u" was not ready within its connect timeout of 5000 ms');
    // Neither the link nor a cancellation of initialize is left behind.
    expect(upstream.links[0]?.state).toBe('ended');
    expect(upstream.links[0]?.sent.map(({ method }) => method)).toEqual(['initialize']);
    expect(health()).toMatchObject({ state: 'down', retryAfter: 1 });
    // Trying goes on by itself.
    Object.assign(upstream, { settings: {} });
    await clock.advance(1_000);
    expect(health()).toMatchObject({ state: 'degraded', restarts: 1 });
    expect(reconnected).toEqual(['again']);
    expect(await session.ready()).toMatchObject({ protocolVersion: '2025-11-25' });
    expect(states).toEqual(['down', 'connecting', 'degraded']);
  });

  test('a process that dies before it is initialised is told with its last words', async () => {
    const { upstream, join } = open({ silent: ['initialize'] }, { secrets: ['hunter22'] });
    const session = join();
    const ready = failed(session.ready());
    await flush();
    upstream.links[0]?.end({
      kind: 'exited',
      reason: 'exited with code 3',
      lastWords: 'cannot log in as admin:hunter22',
    });
    const error = await ready;
    expect(error.code).toBe('UPSTREAM_UNAVAILABLE');
    expect(error.message).toContain('upstream "u" exited (code 3)');
    expect(error.message).toContain('cannot log in');
    expect(error.message).not.toContain('hunter22');
  });

  verifies('upstream.fails-fast', async () => {
    const { clock, upstream, join } = open({}, { policy: { timeout: 60_000 } });
    upstream.accepts = () => false;
    const session = join();
    await failed(session.ready());
    // The third wait is longer than a request is worth waiting for.
    await clock.advance(1_000);
    await clock.advance(2_000);
    const error = await failed(call(session, 'ok'));
    expect(error.failure).toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      delivery: 'not_sent',
      retryAfter: 4,
      retryable: true,
    });
    expect(error.message).toContain('upstream "u" is down, and tried again in 4 s');
    expect(error.message).toContain('refused');
  });

  test('a restart that is near is waited for, and a call that was never sent is no unknown outcome', async () => {
    const { clock, upstream, join } = open({}, { policy: { timeout: 1_500 } });
    const session = join();
    await session.ready();
    upstream.links[0]?.end(KILLED);
    await flush();
    const answer = call(session, 'write', { key: 'a' });
    await clock.advance(1_000);
    expect(textOf(await answer)).toBe('written');
    // Now the server takes its time, and the call has none left.
    upstream.accepts = () => new Promise(() => {});
    upstream.links[1]?.end(KILLED);
    await flush();
    const late = failed(call(session, 'write', { key: 'b' }));
    await clock.advance(1_500);
    expect((await late).failure).toMatchObject({ code: 'TIMEOUT', delivery: 'not_sent' });
    expect(upstream.record.writes).toEqual(['write a']);
  });

  test('what could not be initialised has executed nothing', async () => {
    const { clock, upstream, join } = open();
    const session = join();
    await call(session, 'ok');
    const fates: Fate[] = ['silent', 'end'];
    upstream.fate = () => fates.pop() ?? 'arrives';
    const asked = failed(call(session, 'write', { key: 'a' }));
    await clock.advance(1_000);
    await clock.advance(5_000);
    expect((await asked).failure).toMatchObject({ code: 'CONNECT_TIMEOUT', delivery: 'not_sent' });
    expect(upstream.record.writes).toEqual([]);
  });

  test('listeners that throw break nothing', async () => {
    const { clock, upstream, join, manager } = open();
    const session = join();
    const throws = () => {
      throw new Error('listener');
    };
    Object.assign(session, { onnotification: throws, onrequest: throws, onreconnected: throws });
    manager.onState(throws);
    await session.ready();
    await call(session, 'log');
    const asked = await call(session, 'roots');
    expect(asked.structuredContent).toMatchObject({ error: { code: -32603 } });
    await call(session, 'progress', { n: 1, ms: 0 }, { onProgress: throws });
    upstream.links[0]?.end(KILLED);
    await clock.advance(1_000);
    expect(textOf(await call(session, 'ok'))).toBe('ok');
  });

  test('waiting for a restart is given up when the caller leaves', async () => {
    const { upstream, join, clock } = open();
    const session = join();
    await session.ready();
    upstream.links[0]?.end(KILLED);
    const controller = new AbortController();
    const asked = call(session, 'ok', {}, { signal: controller.signal });
    const ready = session.ready(controller.signal);
    await flush();
    controller.abort('left');
    await expect(asked).rejects.toBe('left');
    await expect(ready).rejects.toBe('left');
    await clock.advance(1_000);
    expect(textOf(await call(session, 'ok'))).toBe('ok');
  });

  verifies('upstream.closed', async () => {
    const { clock, upstream, manager, join, health } = open();
    const session = join();
    await session.ready();
    const asked = failed(call(session, 'hang', {}, reading('hang')));
    await flush();
    const closing = session.close();
    expect(session.close()).toBe(closing);
    await closing;
    expect((await asked).code).toBe('UPSTREAM_UNAVAILABLE');
    expect(upstream.open).toEqual([]);
    expect(health()).toMatchObject({ state: 'ready', sessions: 0, pids: [] });
    expect((await failed(call(session, 'ok'))).message).toContain('was closed');
    session.notify('notifications/roots/list_changed');
    // Closed while it waits for its turn, and while it tries.
    upstream.accepts = () => false;
    const waiting = join();
    await failed(waiting.ready());
    await waiting.close();
    upstream.accepts = () => new Promise(() => {});
    const trying = join();
    await clock.advance(1_000);
    expect(health().state).toBe('connecting');
    const ready = failed(trying.ready());
    await trying.close();
    expect((await ready).message).toContain('was closed');
    await manager.close();
    expect(clock.pendingTimers).toBe(0);
    expect(upstream.open).toEqual([]);
  });

  test('a connection made in the course of a call is not bound by its deadline', async () => {
    const { upstream, join, clock } = open();
    const within: unknown[] = [];
    upstream.accepts = () => {
      within.push(currentDeadline());
      return true;
    };
    const session = runWithDeadline(Deadline.after(10, clock), join);
    await session.ready();
    upstream.links[0]?.end(KILLED);
    await clock.advance(1_000);
    expect(within).toEqual([undefined, undefined]);
    expect(textOf(await call(session, 'ok'))).toBe('ok');
  });
});

describe('time limits', () => {
  verifies('upstream.idle-timeout', async () => {
    const policy = { timeout: 1_000, deadline: 10_000 };
    const { clock, upstream, join } = open({}, { policy });
    const session = join();
    await session.ready();
    const [link] = upstream.links;
    const ask = async () => {
      const asked = failed(call(session, 'hang'));
      await flush();
      return { asked, id: link?.sent.at(-1)?.id };
    };
    // Nothing is heard.
    const silent = await ask();
    await clock.advance(1_000);
    expect((await silent.asked).code).toBe('OUTCOME_UNKNOWN');
    expect((await silent.asked).message).toContain('"u" did not answer within 1000 ms');
    expect(link?.sent.at(-1)).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: silent.id },
    });
    // Progress is heard, but the whole call has its end all the same.
    const busy = await ask();
    const params = { progressToken: busy.id, progress: 1 };
    for (let ms = 0; ms < 10_000; ms += 900) {
      link?.deliver({ jsonrpc: '2.0', method: 'notifications/progress', params });
      await clock.advance(900);
    }
    expect((await busy.asked).message).toContain('deadline passed');
  });

  verifies('upstream.waits-for-people', async () => {
    const tools = { sample: { policy: { timeout: 400 } } };
    const policy = { timeout: 1_000, deadline: 60_000 };
    const { clock, join, upstream } = open({}, { policy, tools });
    upstream.tellsRelated = false;
    const session = join();
    await session.ready();
    let answer = (_: Json): void => {};
    session.onrequest = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    // One that is known, and two of which nobody can tell which of them asks.
    const alone = call(session, 'elicit');
    await clock.advance(30_000);
    answer({ action: 'accept' });
    await clock.advance(0);
    expect((await alone).structuredContent).toEqual({ result: { action: 'accept' } });
    const other = failed(call(session, 'hang'));
    await flush();
    const asks = call(session, 'sample', {}, { tool: { name: 'sample' } });
    await clock.advance(30_150);
    answer({ role: 'assistant' });
    await clock.advance(0);
    expect((await asks).structuredContent).toEqual({ result: { role: 'assistant' } });
    // From then on the silence of the other one counts.
    await clock.advance(999);
    expect(session.running.size).toBe(1);
    await clock.advance(1);
    expect((await other).code).toBe('OUTCOME_UNKNOWN');
    // And nobody waits for a person for longer than the whole call may take.
    const tooLong = failed(call(session, 'elicit'));
    await clock.advance(60_000);
    expect((await tooLong).message).toContain('deadline passed');
  });

  verifies('upstream.tool-policy', async () => {
    const tools = {
      slow: { policy: { timeout: 5_000, deadline: 8_000 } },
      hasty: { policy: { timeout: 100 } },
    };
    const policy = { timeout: 1_000, deadline: 3_000, breaker: { threshold: 3 } };
    const { clock, join, manager } = open({}, { policy, tools });
    const session = join();
    await session.ready();
    const endOf = async (name: string) => {
      const before = clock.now();
      let after = Number.NaN;
      const asked = call(session, 'hang', {}, { tool: { name } }).catch(() => {
        after = clock.now();
      });
      for (let ms = 0; Number.isNaN(after) && ms < 20_000; ms += 50) await clock.advance(50);
      await asked;
      return after - before;
    };
    expect(await endOf('slow')).toBe(5_000);
    expect(await endOf('other')).toBe(1_000);
    const told = failed(call(session, 'hang', {}, { tool: { name: 'other' } }));
    await clock.advance(1_000);
    expect((await told).message).toBe(
      'the answer of upstream "u" to "other" was lost, and it may have been executed: "u" did not answer within 1000 ms',
    );
    // What one of them lost counts for the upstream: its breaker is open now.
    expect(manager.health()[0]?.breaker).toMatchObject({ name: 'u', state: 'open' });
    expect((await failed(call(session, 'ok', {}, { tool: { name: 'hasty' } }))).code).toBe(
      'CIRCUIT_OPEN',
    );
    await clock.advance(30_000);
    expect(await endOf('hasty')).toBe(100);
  });

  test('a tool has limits of its own inside those of its upstream', async () => {
    const tools = {
      slow: {
        policy: { bulkhead: { limit: 1 }, retry: { maxRetries: 1, jitter: 'none' as const } },
      },
      fast: { policy: { breaker: { scope: 'attempt' as const, threshold: 2 } } },
    };
    const policy = {
      bulkhead: { limit: 2 },
      timeout: 1_000,
      breaker: { scope: 'attempt' as const, threshold: 3 },
    };
    const { clock, join, upstream, manager } = open({}, { policy, tools });
    const session = join();
    await session.ready();
    const one = failed(call(session, 'hang', {}, reading('slow')));
    await flush();
    const two = await failed(call(session, 'hang', {}, reading('slow')));
    expect(two.message).toContain('"u/slow"');
    expect(two.code).toBe('BULKHEAD_FULL');
    await clock.advance(1_000);
    await clock.advance(500);
    await clock.advance(1_000);
    expect((await one).code).toBe('TIMEOUT');
    const sent = upstream.links[0]?.sent.filter(({ method }) => method === 'tools/call');
    expect(sent).toHaveLength(2);
    // A breaker that counts attempts is the upstream's for all tools but these.
    expect(manager.health()[0]?.breaker).toMatchObject({ name: 'u', state: 'closed' });
    for (let n = 0; n < 2; n += 1) {
      const asked = failed(call(session, 'hang', {}, { tool: { name: 'fast' } }));
      await clock.advance(1_000);
      await asked;
    }
    const refused = await failed(call(session, 'ok', {}, { tool: { name: 'fast' } }));
    expect(refused.message).toContain('"u/fast"');
    expect(textOf(await call(session, 'ok'))).toBe('ok');
  });
});

describe('how it is', () => {
  verifies('upstream.states', async () => {
    const { clock, upstream, join, states, health, manager } = open(
      {},
      { policy: { breaker: { threshold: 1, openDuration: 1_000 }, timeout: 100 } },
    );
    expect(manager.getServerState('u')).toBe('connecting');
    expect(manager.getServerState('other')).toBeUndefined();
    const session = join();
    await session.ready();
    expect(states.splice(0)).toEqual(['ready']);
    expect(health()).toMatchObject({ name: 'u', kind: 'stdio', state: 'ready', restarts: 0 });
    expect(health().reason).toBeUndefined();
    expect(health().serverInfo).toMatchObject({ name: 'U' });
    // Its breaker opens, is tried, and closes.
    const hung = failed(call(session, 'hang'));
    await clock.advance(100);
    await hung;
    expect(health()).toMatchObject({ state: 'degraded', reason: 'its circuit breaker is open' });
    await clock.advance(1_000);
    expect(health()).toMatchObject({ reason: 'its circuit breaker is half-open' });
    await call(session, 'ok');
    expect(states.splice(0)).toEqual(['degraded', 'ready']);
    // Its lists do not come.
    Object.assign(upstream.settings, { silent: ['tools/list'] });
    const listed = failed(session.request({ method: 'tools/list' }));
    await clock.advance(100);
    await listed;
    await clock.advance(1_000);
    await call(session, 'ok');
    expect(health()).toMatchObject({ state: 'degraded', reason: 'tools/list failed' });
    Object.assign(upstream.settings, { silent: [] });
    await session.request({ method: 'tools/list' });
    expect(states.splice(0)).toEqual(['degraded', 'ready']);
    // It dies, and comes back, and has been good for something.
    upstream.links[0]?.end(KILLED);
    await flush();
    expect(health()).toMatchObject({ state: 'down', retryAfter: 1, restarts: 0, sessions: 1 });
    expect(health().reason).toContain('killed by SIGKILL');
    await clock.advance(1_000);
    expect(health()).toMatchObject({ state: 'degraded', restarts: 1 });
    await call(session, 'ok');
    expect(states.splice(0)).toEqual(['down', 'connecting', 'degraded', 'ready']);
    // One client of two has none.
    const other = join();
    await other.ready();
    upstream.accepts = () => false;
    upstream.links.at(-1)?.end(KILLED);
    await flush();
    expect(health()).toMatchObject({ state: 'degraded', sessions: 2 });
    await clock.advance(60_000);
    expect(health().state).toBe('degraded');
    upstream.accepts = () => true;
    await clock.advance(8_000);
    await call(other, 'ok');
    expect(health().state).toBe('ready');
    await session.close();
    await other.close();
    expect(health()).toMatchObject({ state: 'ready', sessions: 0 });
  });

  verifies('upstream.watched', async () => {
    const { clock, upstream, join, health, manager } = open();
    upstream.accepts = () => false;
    const session = join();
    await failed(session.ready());
    await session.close();
    expect(health()).toMatchObject({ state: 'down', sessions: 0 });
    // Nobody is there who would notice that it is back: it is tried all the same, as ourselves,
    // and let go again.
    await clock.advance(20_000);
    expect(health().state).toBe('down');
    expect(upstream.links.length).toBeGreaterThan(3);
    upstream.accepts = () => true;
    await clock.advance(8_000);
    expect(health()).toMatchObject({ state: 'ready', sessions: 0 });
    expect(upstream.open).toEqual([]);
    const [initialize] = upstream.links.at(-1)?.sent ?? [];
    expect(initialize?.params).toMatchObject({ clientInfo: { name: 'mcp-resilience' } });
    const tries = upstream.links.length;
    await clock.advance(60_000);
    expect(upstream.links.length).toBe(tries);
    // The gateway ends while it is tried.
    upstream.accepts = () => false;
    const other = join();
    await failed(other.ready());
    await other.close();
    await manager.close();
    expect(clock.pendingTimers).toBe(0);
  });

  verifies('upstream.single-flight', async () => {
    const { clock, upstream, join, lines } = open();
    const sessions = Array.from({ length: 20 }, join);
    await Promise.all(sessions.map((session) => session.ready()));
    expect(upstream.record.initializes).toBe(20);
    // It flaps: takes a connection, and drops all of them a moment later.
    let tries = 0;
    upstream.accepts = () => {
      tries += 1;
      return tries % 2 === 0;
    };
    for (let minute = 0; minute < 60; minute += 1) {
      for (const link of upstream.open) link.end({ kind: 'lost', reason: 'reset' });
      await clock.advance(1_000);
    }
    // Without a common gate it would be 20 tries a second: 1 200. It is the one that tries, and
    // those that follow it when it came through.
    expect(tries).toBeLessThan(400);
    expect(lines.length).toBeLessThan(30);
    expect(lines.join('\n')).toContain('were left out');
    // While it is down nothing but one try is under way.
    upstream.accepts = () => new Promise(() => {});
    for (const link of upstream.open) link.end({ kind: 'lost', reason: 'reset' });
    const before = upstream.links.length;
    await clock.advance(4_000);
    expect(upstream.links.length - before).toBeLessThanOrEqual(1);
  });
});

describe('a shared upstream', () => {
  verifies('upstream.shared', async () => {
    const { upstream, join, health, manager } = open({}, { shared: true });
    const [one, two] = [join(), join()] as const;
    await Promise.all([one.ready(), two.ready()]);
    expect(upstream.record.initializes).toBe(1);
    expect(health()).toMatchObject({ sessions: 1 });
    const seen: string[] = [];
    for (const [name, session] of [
      ['one', one],
      ['two', two],
    ] as const) {
      session.onnotification = (method, _, related) =>
        void seen.push(`${name} ${method} ${related?.params?.name ?? '-'}`);
      session.onrequest = async (method, _, { related }) => ({
        from: name,
        method,
        during: related?.params?.name,
      });
    }
    // What belongs to a request goes to its client, what belongs to none to all of them.
    const asked = await call(two, 'elicit');
    expect(asked.structuredContent).toEqual({
      result: { from: 'two', method: 'elicitation/create', during: 'elicit' },
    });
    await call(one, 'log');
    await call(one, 'changed');
    await call(one, 'touch');
    expect(seen.sort()).toEqual([
      'one notifications/message log',
      'one notifications/resources/updated touch',
      'one notifications/tools/list_changed changed',
      'two notifications/resources/updated -',
      'two notifications/tools/list_changed -',
    ]);
    // A question that belongs to nobody's request, while several run, is refused at once.
    const [link] = upstream.links;
    const hung = [one, two].map((session) => failed(call(session, 'hang')));
    await flush();
    link?.deliver({ jsonrpc: '2.0', id: 'q', method: 'roots/list' });
    await flush();
    expect(link?.sent.at(-1)).toMatchObject({ id: 'q', error: { code: -32601 } });
    // One leaves, and the other goes on; the connection outlives both of them.
    await one.close();
    expect(textOf(await call(two, 'ok'))).toBe('ok');
    expect((await failed(call(one, 'ok'))).message).toContain('was closed');
    link?.deliver({ jsonrpc: '2.0', id: 'r', method: 'roots/list' });
    await flush();
    expect(link?.sent.at(-1)).toMatchObject({ id: 'r', result: { from: 'two' } });
    await two.close();
    const three = join();
    await three.ready();
    expect(upstream.record.initializes).toBe(1);
    await manager.close();
    expect(upstream.open).toEqual([]);
    for (const error of await Promise.all(hung)) expect(error).toBeInstanceOf(ResilienceError);
  });

  test('all its sessions hear that it was connected anew', async () => {
    const { clock, upstream, join } = open({}, { shared: true });
    const heard: number[] = [];
    const sessions = [1, 2, 3].map((n) => {
      const session = join();
      session.onreconnected = () => void heard.push(n);
      return session;
    });
    await Promise.all(sessions.map((session) => session.ready()));
    expect(heard).toEqual([]);
    upstream.links[0]?.end(KILLED);
    await clock.advance(1_000);
    expect(heard).toEqual([1, 2, 3]);
    expect(upstream.record.initializes).toBe(2);
  });
});

describe('tools that fail', () => {
  verifies('B01', async () => {
    const { join, health } = open(
      {},
      { policy: { breaker: { threshold: 3 } }, toolBreaker: { threshold: 3, openDuration: 9_000 } },
    );
    const session = join();
    await session.ready();
    await session.request({ method: 'tools/list' });
    for (let n = 0; n < 3; n += 1) {
      expect((await call(session, 'err', { n })).isError).toBe(true);
    }
    // The tool is paused, and is said to be: the server is not.
    const error = await failed(call(session, 'err', { n: 4 }));
    expect(error.failure).toMatchObject({ code: 'CIRCUIT_OPEN', retryAfter: 9 });
    expect(error.message).toContain('tool "err"');
    expect(error.message).toContain('upstream "u" works');
    expect(error.message).not.toMatch(/unreachable|unavailable|down/);
    expect(health()).toMatchObject({
      state: 'ready',
      breaker: { state: 'closed', failureCount: 0 },
    });
    expect(textOf(await call(session, 'ok'))).toBe('ok');
  });

  test('without a breaker for tools they may fail as often as they like', async () => {
    const { join, health } = open({}, { policy: { breaker: { threshold: 1 } } });
    const session = join();
    await session.request({ method: 'tools/list' });
    for (let n = 0; n < 20; n += 1) {
      expect((await call(session, 'err')).isError).toBe(true);
      await expect(call(session, 'throw')).rejects.toMatchObject({ code: -32603 });
    }
    expect(health()).toMatchObject({ breaker: { state: 'closed', failureCount: 0 } });
  });

  test('the breaker of a tool hears of its errors alone', async () => {
    const { clock, join, upstream } = open(
      {},
      { policy: { timeout: 100 }, toolBreaker: { threshold: 1, openDuration: 1_000 } },
    );
    const session = join();
    await session.request({ method: 'tools/list' });
    // The connection, the caller's mistakes, and names that nobody has listed.
    const hung = failed(call(session, 'hang'));
    await clock.advance(100);
    await hung;
    await failed(call(session, 'rpcerr', { code: -32602 }));
    for (let n = 0; n < 3; n += 1) await failed(call(session, `made-up-${n}`));
    expect(await failed(call(session, 'hang', {}, { signal: AbortSignal.abort('x') }))).toBe('x');
    await failed(call(session, 'throw'));
    expect((await failed(call(session, 'throw'))).code).toBe('CIRCUIT_OPEN');
    await clock.advance(1_000);
    await expect(call(session, 'throw')).rejects.toMatchObject({ code: -32603 });
    expect(upstream.links).toHaveLength(1);
  });

  verifies('B02', async () => {
    const { join, upstream } = open({}, { toolGuard: 3 });
    const session = join();
    const sent = () =>
      upstream.links.flatMap((link) => link.sent.filter(({ method }) => method === 'tools/call'));
    const errors: ResilienceError[] = [];
    for (let n = 0; n < 20; n += 1) {
      const result = await call(session, 'err', { path: 'a' }).catch((error: ResilienceError) => {
        errors.push(error);
        return { isError: true };
      });
      expect(result.isError).toBe(true);
    }
    expect(sent()).toHaveLength(3);
    expect(errors).toHaveLength(17);
    expect(errors[0]?.failure).toMatchObject({ code: 'TOOL_ERROR', retryable: false });
    expect(errors[0]?.message).toContain('3 identical calls in a row have failed');
    // Another client has done nothing wrong.
    expect((await call(join(), 'err', { path: 'a' })).isError).toBe(true);
    expect((await call(session, 'err', { path: 'b' })).isError).toBe(true);
  });

  verifies('R01', async () => {
    const policy = { retry: { maxRetries: 3, baseDelay: 0 }, breaker: { threshold: 1 } };
    const { join, upstream, health } = open({}, { policy });
    const session = join();
    const data = { 'x-vendor': [1] };
    for (const code of [-32602, -32603, -32600, -32000, -1]) {
      const args = { code, message: 'no', data };
      const error = await call(session, 'rpcerr', args, reading('rpcerr')).catch(
        (thrown) => thrown,
      );
      expect(error).toMatchObject({ name: 'JsonRpcError', code, message: 'no', data });
    }
    const [link, ...more] = upstream.links;
    expect(link?.sent.filter(({ method }) => method === 'tools/call')).toHaveLength(5);
    expect(more).toEqual([]);
    expect(health()).toMatchObject({ state: 'ready', breaker: { failureCount: 0 } });
  });

  test('what a classifier finds in a result is retried, and the result is the answer in the end', async () => {
    const clock = new ManualClock();
    const upstream = new MemoryUpstream();
    const policy = { retry: { maxRetries: 2, baseDelay: 0, jitter: 'none' as const } };
    const { createLink } = upstream;
    const { manager } = openManager([upstreamConfig(address, { policy })], {
      clock,
      createLink,
      pipelineOptions: {
        classifyResult: (result) =>
          (result as Json).isError === true
            ? new ResilienceError({
                code: 'RATE_LIMITED',
                message: 'slow down',
                severity: 'transient',
                source: 'rate_limit',
                weight: 'throttled',
                delivery: 'refused',
                retryable: true,
              }).failure
            : undefined,
      },
    });
    const session = manager.open('u', client);
    const asked = call(session, 'err', { text: '429' });
    for (let n = 0; n < 5; n += 1) await clock.advance(1);
    expect(await asked).toMatchObject({ isError: true });
    const sent = upstream.links[0]?.sent.filter(({ method }) => method === 'tools/call');
    expect(sent).toHaveLength(3);
    await expect(call(session, 'rpcerr')).rejects.toMatchObject({ code: -32602 });
  });
});

describe('kept answers', () => {
  verifies('K02', async () => {
    const clock = new ManualClock();
    const policy = { cache: { ttl: 60_000, staleIfError: 600_000 } };
    const made = ['x', 'y'].map((name) => ({ name, upstream: new MemoryUpstream({ name }) }));
    const { manager } = openManager(
      made.map(({ name }) => upstreamConfig(address, { name, policy })),
      {
        clock,
        createLink: ({ name }) =>
          (made.find((one) => one.name === name) ?? expect.fail(name)).upstream.createLink(),
      },
    );
    const [x, y] = made.map(({ name }) => manager.open(name, client));
    if (!x || !y) return expect.fail('two sessions');
    const ask = (session: typeof x, key: string, principal?: string) =>
      call(session, 'read', { key }, { ...reading('read'), principal });
    const writes = () => made.map(({ upstream }) => upstream.record.writes.length);
    const first = await ask(x, 'a');
    expect(first._meta).toMatchObject({ from_cache: false });
    expect(await ask(x, 'a')).toMatchObject({ _meta: { from_cache: true, age_seconds: 0 } });
    // Neither another upstream, nor another argument, nor another principal gets it.
    await ask(y, 'a');
    await ask(x, 'b');
    await ask(x, 'a', 'alice');
    await ask(x, 'a', 'bob');
    expect(writes()).toEqual([4, 1]);
    await ask(x, 'a', 'alice');
    expect(writes()).toEqual([4, 1]);
    // Another client of the same principal does.
    await ask(manager.open('x', client), 'a', 'alice');
    expect(writes()).toEqual([4, 1]);
    // A tool that does not say that it only reads is asked every time, and errors are not kept.
    await call(x, 'write', { key: 'a' });
    await call(x, 'write', { key: 'a' });
    expect(writes()).toEqual([6, 1]);
    expect(await call(x, 'write', { key: 'a' })).not.toHaveProperty('_meta');
    const sent = () => made[0]?.upstream.links[0]?.sent.length ?? 0;
    for (const name of ['err', 'throw']) {
      const before = sent();
      await call(x, name, {}, reading(name)).catch(() => {});
      await call(x, name, {}, reading(name)).catch(() => {});
      expect(sent() - before).toBe(2);
    }
  });

  test('an old answer serves while the upstream is down, and says so', async () => {
    const policy = { cache: { ttl: 1_000, staleIfError: 60_000 } };
    const { clock, upstream, join } = open({}, { policy });
    const session = join();
    await call(session, 'read', {}, reading('read'));
    upstream.accepts = () => false;
    upstream.links[0]?.end(KILLED);
    await clock.advance(20_000);
    const stale = await call(session, 'read', {}, reading('read'));
    expect(stale._meta).toMatchObject({ from_cache: true, degraded: true, age_seconds: 20 });
    expect(textOf(stale)).toBe('written');
  });

  test('a tool has a cache of its own, or none where its upstream has one', async () => {
    const tools = {
      read: { policy: { cache: { ttl: 5_000 } }, readOnly: true },
      slow: { policy: { cache: false as const } },
    };
    const policy = { cache: { ttl: 60_000 } };
    const { clock, upstream, join } = open({}, { policy, tools });
    const session = join();
    await session.ready();
    const sent = () =>
      upstream.links[0]?.sent.filter(({ method }) => method === 'tools/call').length;
    await call(session, 'read');
    await call(session, 'read');
    expect(sent()).toBe(1);
    await clock.advance(6_000);
    await call(session, 'read');
    expect(sent()).toBe(2);
    await call(session, 'ok', {}, reading('slow'));
    await call(session, 'ok', {}, reading('slow'));
    expect(sent()).toBe(4);
    await call(session, 'ok', {}, reading('ok'));
    await call(session, 'ok', {}, reading('ok'));
    expect(sent()).toBe(5);
  });
});
