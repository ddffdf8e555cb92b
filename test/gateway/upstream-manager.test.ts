import { describe, expect, onTestFinished, test } from 'vitest';
import { createUpstreamManager } from '../../src/gateway/upstream-manager.ts';
import { SettingsError } from '../../src/resilience/settings.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { isAlive } from './support/link.ts';
import { child, upstreamConfig } from './support/link-config.ts';
import { call, client, failed, openManager, textOf } from './support/manager.ts';
import { MemoryLink, MemoryUpstream } from './support/memory-upstream.ts';
import { startHttpUpstream } from './support/upstream-http.ts';

const address = { kind: 'stdio', command: 'none', args: [], env: {} } as const;
const named = (name: string, more: object = {}) => upstreamConfig(address, { name, ...more });

describe('createUpstreamManager', () => {
  test('connects nothing before somebody opens a session', async () => {
    const upstream = new MemoryUpstream();
    const { manager } = openManager([named('a')], { createLink: upstream.createLink });
    await flush();
    expect(upstream.links).toEqual([]);
    expect(manager.getServerState('a')).toBe('connecting');
  });

  test('what nobody can mean is an error that says so', async () => {
    const upstream = new MemoryUpstream();
    const { createLink } = upstream;
    const { manager } = openManager([named('a'), named('b')], { createLink });
    expect(() => manager.open('c', client)).toThrow('no upstream "c"; configured are "a", "b"');
    expect(() => openManager([named('a', { policy: { timeout: -1 } })])).toThrow(SettingsError);
    await manager.close();
    expect(() => manager.open('a', client)).toThrow('ending');
    await manager.apply([named('a')]);
    expect(manager.health()).toEqual([]);
  });

  test('one upstream that is down is no business of the others', async () => {
    const [well, dead] = [new MemoryUpstream({ name: 'well' }), new MemoryUpstream()];
    dead.accepts = () => false;
    const { manager } = openManager([named('well'), named('dead')], {
      createLink: ({ name }) => (name === 'well' ? well : dead).createLink(),
    });
    const [one, two] = [manager.open('well', client), manager.open('dead', client)];
    await failed(two?.ready() ?? Promise.resolve());
    expect(await one?.ready()).toMatchObject({ serverInfo: { name: 'well' } });
    expect(manager.health()).toMatchObject([
      { name: 'well', state: 'ready' },
      { name: 'dead', state: 'down', reason: expect.stringContaining('refused') },
    ]);
  });

  test('a listener that throws keeps nobody from hearing', async () => {
    const upstream = new MemoryUpstream();
    const { manager } = openManager([named('a')], { createLink: upstream.createLink });
    const heard: string[] = [];
    manager.onState(() => {
      throw new Error('listener');
    });
    manager.onState((name, state) => void heard.push(`${name} ${state}`));
    const stop = manager.onState(() => void heard.push('stopped'));
    stop();
    await manager.open('a', client).ready();
    expect(heard).toEqual(['a ready']);
  });

  test('closing does not wait for ever for one that does not end', async () => {
    const clock = new ManualClock();
    class Stubborn extends MemoryLink {
      override close(): Promise<void> {
        return new Promise(() => {});
      }
    }
    const upstream = new MemoryUpstream();
    const manager = createUpstreamManager([named('a')], {
      clock,
      createLink: () => new Stubborn(upstream),
    });
    await manager.open('a', client).ready();
    let closed = false;
    const closing = manager.close().then(() => {
      closed = true;
    });
    await clock.advance(9_999);
    expect(closed).toBe(false);
    await clock.advance(1);
    await closing;
    expect(manager.close()).toBe(manager.close());
  });
});

describe('an edited configuration', () => {
  verifies('P10', async () => {
    const { manager } = openManager([
      upstreamConfig(child({ name: 'old', ignoreEof: true })),
      upstreamConfig(child(), { name: 'kept' }),
    ]);
    const [old, kept] = [manager.open('u', client), manager.open('kept', client)] as const;
    await Promise.all([old.ready(), kept.ready()]);
    const pidOf = (name: string) =>
      manager.health().find((health) => health.name === name)?.pids[0] ?? Number.NaN;
    const [oldPid, keptPid] = [pidOf('u'), pidOf('kept')];
    const hung = failed(call(old, 'hang'));
    const changes: unknown[] = [];
    manager.onChange((names) => void changes.push([names, isAlive(oldPid)]));
    const applied = manager.apply([
      upstreamConfig(child({ name: 'new' })),
      upstreamConfig(child(), { name: 'kept' }),
    ]);
    await flush();
    // Whoever comes now gets the new one, which waits until the old one has ended.
    const session = manager.open('u', client);
    const ready = session.ready().then((result) => ({ result, wasAlive: isAlive(oldPid) }));
    await until(() => changes.length > 0 || !isAlive(oldPid));
    await applied;
    expect(changes).toEqual([[['u'], false]]);
    expect(await ready).toMatchObject({
      result: { serverInfo: { name: 'new' } },
      wasAlive: false,
    });
    expect((await hung).code).toBe('OUTCOME_UNKNOWN');
    expect((await failed(call(old, 'ok'))).message).toContain('was closed');
    expect(pidOf('kept')).toBe(keptPid);
    expect(textOf(await call(kept, 'ok'))).toBe('ok');
  });

  verifies('manager.apply', async () => {
    const upstreams = new Map<string, MemoryUpstream>();
    const createLink = ({ name }: { name: string }) => {
      const upstream = upstreams.get(name) ?? new MemoryUpstream({ name });
      upstreams.set(name, upstream);
      return upstream.createLink();
    };
    const { manager } = openManager([named('a'), named('b'), named('c')], { createLink });
    const sessions = ['a', 'b', 'c'].map((name) => manager.open(name, client));
    await Promise.all(sessions.map((session) => session.ready()));
    const heard: unknown[] = [];
    const stop = manager.onChange((names) => void heard.push([...names].sort()));
    // Two edits at once are two edits, one after the other.
    const changed = named('b', { policy: { timeout: 5 } });
    await Promise.all([
      manager.apply([named('d'), structuredClone(named('a')), changed]),
      manager.apply([structuredClone(named('a')), structuredClone(changed)]),
    ]);
    expect(heard).toEqual([['b', 'c', 'd'], ['d']]);
    expect(manager.configs.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(manager.health().map(({ name }) => name)).toEqual(['a', 'b']);
    expect(textOf(await call(sessions[0] ?? expect.fail('a'), 'ok'))).toBe('ok');
    expect(upstreams.get('a')?.links).toHaveLength(1);
    expect(upstreams.get('b')?.open).toEqual([]);
    expect(upstreams.get('c')?.open).toEqual([]);
    expect(manager.getServerState('c')).toBeUndefined();
    stop();
    await manager.apply([named('a')]);
    expect(heard).toHaveLength(2);
    // Settings that are wrong change nothing.
    const wrong = named('a', { policy: { timeout: -1 } });
    await expect(manager.apply([wrong, named('y')])).rejects.toThrow(SettingsError);
    expect(manager.health().map(({ name }) => name)).toEqual(['a']);
    expect(textOf(await call(sessions[0] ?? expect.fail('a'), 'ok'))).toBe('ok');
    await manager.apply([named('z'), named('a')]);
    expect(manager.health().map(({ name }) => name)).toEqual(['z', 'a']);
  });
});

describe('faults for drills', () => {
  verifies('manager.faults', async () => {
    const server = await startHttpUpstream();
    onTestFinished(() => server.close());
    const http = { kind: 'http', url: server.url, headers: {} } as const;
    const { manager } = openManager([
      upstreamConfig(child(), { name: 'stdio' }),
      upstreamConfig(http, { name: 'http' }),
    ]);
    expect(manager.faultHooks('other')).toBeUndefined();
    const [stdio, web] = [manager.open('stdio', client), manager.open('http', client)] as const;
    await Promise.all([stdio, web].map((session) => call(session, 'ok')));
    const restarts = () => manager.health().map((health) => health.restarts);
    const lost = [stdio, web].map((session) => failed(call(session, 'hang')));
    await until(() =>
      server.record.received.some(({ message }) => `${JSON.stringify(message)}`.includes('hang')),
    );
    const [pid = expect.fail('it runs')] = manager.health()[0]?.pids ?? [];
    for (const name of ['stdio', 'http']) manager.faultHooks(name)?.exit();
    for (const error of await Promise.all(lost)) expect(error.code).toBe('OUTCOME_UNKNOWN');
    for (const session of [stdio, web]) expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(isAlive(pid)).toBe(false);
    expect(restarts()).toEqual([1, 1]);
    for (const name of ['stdio', 'http']) manager.faultHooks(name)?.loseSession();
    for (const session of [stdio, web]) expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(restarts()).toEqual([2, 2]);
    expect(server.record.initializes).toBe(3);
    await until(() => server.sessions.size === 1);
  });
});
