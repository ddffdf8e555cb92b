import { describe, expect, test } from 'vitest';
import { readGatewayConfig } from '../../src/gateway/config.ts';
import { createNameRegister } from '../../src/gateway/gateway-known.ts';
import { limitsOf } from '../../src/gateway/gateway-limits.ts';
import { createHealthTool } from '../../src/gateway/health-tool.ts';
import { nameTable } from '../../src/gateway/naming.ts';
import { ClientRequests } from '../../src/gateway/relay-client.ts';
import { RelayNotifier } from '../../src/gateway/relay-notifier.ts';
import { RunningRequests } from '../../src/gateway/relay-running.ts';
import type { Json, UpstreamHealth } from '../../src/gateway/types.ts';
import { rejection } from '../fixtures/loopback.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

describe('notifications to a client', () => {
  const open = (send: () => Promise<void> = async () => {}) => {
    const clock = new ManualClock();
    const sent: string[] = [];
    const notifier = new RelayNotifier(clock, (method) => {
      sent.push(method);
      return send();
    });
    return { clock, sent, notifier };
  };

  verifies('relay.changes-once', async () => {
    const { clock, sent, notifier } = open();
    // Nobody has seen a list yet: there is nothing to tell.
    notifier.changed('tools');
    await clock.advance(1_000);
    notifier.begin();
    for (let n = 0; n < 100; n += 1) notifier.changed(n % 2 ? 'tools' : 'prompts');
    await clock.advance(1_000);
    expect(sent).toEqual(['prompts', 'tools']);
    notifier.changed('tools');
    await clock.advance(1_000);
    expect(sent).toEqual(['prompts', 'tools', 'tools']);
    notifier.changed('tools');
    notifier.end();
    expect(clock.pendingTimers).toBe(0);
  });

  test('wait until it has been initialised, in their order, and not without end', async () => {
    const { sent, notifier } = open();
    const begun: string[] = [];
    void notifier.begun(new AbortController().signal).then(() => begun.push('begun'));
    const left = new AbortController();
    const gone = rejection(() => notifier.begun(left.signal));
    left.abort('left');
    expect(await gone).toBe('left');
    for (let n = 0; n < 2_000; n += 1) notifier.send(`n${n}`, undefined, undefined);
    await flush();
    expect([sent, begun]).toEqual([[], []]);
    notifier.begin();
    notifier.begin();
    await flush();
    expect([sent.length, sent[0], sent[999], begun]).toEqual([1_000, 'n0', 'n999', ['begun']]);
  });

  test('that are worth nothing later are left out when it does not read', async () => {
    let unblock = (): void => {};
    const blocked = new Promise<void>((resolve) => {
      unblock = resolve;
    });
    const { sent, notifier } = open(() => blocked);
    notifier.begin();
    for (let n = 0; n < 5_000; n += 1) notifier.send('notifications/progress', undefined, 1);
    notifier.send('notifications/resources/updated', undefined, undefined);
    expect(sent).toHaveLength(1_001);
    unblock();
    await flush();
    notifier.send('notifications/message', undefined, undefined);
    expect(sent).toHaveLength(1_002);
  });
});

describe('questions to a client', () => {
  const open = (send: (tries: number) => Promise<void> = async () => {}) => {
    const clock = new ManualClock();
    const sent: Json[] = [];
    const relateds: unknown[] = [];
    const client = new ClientRequests((message, related) => {
      sent.push(message as unknown as Json);
      relateds.push(related);
      return send(sent.length);
    }, clock);
    const abort = new AbortController();
    const ask = (how: object = {}) =>
      client.ask('roots/list', undefined, {
        signal: abort.signal,
        related: undefined,
        otherwise: () => undefined,
        onProgress: () => {},
        ...how,
      });
    return { clock, sent, relateds, client, abort, ask };
  };

  test('wait for the stream that it opens after it was initialised', async () => {
    const { clock, client, sent, ask } = open((tries) =>
      tries < 4 ? Promise.reject(new Error('no stream')) : Promise.resolve(),
    );
    const answer = ask();
    await clock.advance(1_000);
    expect(sent).toHaveLength(4);
    client.answered({ jsonrpc: '2.0', id: 1, result: { roots: [] } });
    expect(await answer).toEqual({ roots: [] });
  });

  test('go to the stream of another request where none is open', async () => {
    const { clock, relateds, client, ask } = open((tries) =>
      tries < 2 ? Promise.reject(new Error('no stream')) : Promise.resolve(),
    );
    const answer = ask({ otherwise: () => 7 });
    await clock.advance(0);
    expect(relateds).toEqual([undefined, 7]);
    client.answered({ jsonrpc: '2.0', id: 1, error: { code: -1, message: 'no', data: 1 } });
    expect(await rejection(() => answer)).toMatchObject({ code: -1, message: 'no', data: 1 });
  });

  test('fail when there is no way to it, or its request has gone', async () => {
    const deaf = open(() => Promise.reject(new Error('no stream')));
    const failed = rejection(() => deaf.ask());
    await deaf.clock.advance(10_000);
    expect(await failed).toMatchObject({ code: -32603, message: 'no stream' });
    expect([deaf.client.size, deaf.clock.pendingTimers]).toEqual([0, 0]);
    expect(await rejection(() => deaf.ask({ related: 1 }))).toMatchObject({ message: 'no stream' });
  });

  test('are withdrawn when the upstream no longer wants to know', async () => {
    const { sent, client, abort, ask } = open();
    const withdrawn = rejection(() => ask());
    await flush();
    abort.abort(new Error('never mind'));
    expect(await withdrawn).toMatchObject({ message: 'never mind' });
    expect(sent[1]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 1, reason: 'never mind' },
    });
    // Its answer comes too late, for nobody.
    client.answered({ jsonrpc: '2.0', id: 1, result: {} });
    expect(client.size).toBe(0);
  });

  test('end with the client', async () => {
    const { client, ask } = open();
    const waiting = rejection(() => ask());
    await flush();
    client.end();
    expect(await waiting).toMatchObject({ message: 'the client has gone' });
    expect(await rejection(() => ask())).toMatchObject({ message: 'the client has gone' });
  });
});

describe('running requests', () => {
  test('what an upstream says belongs to the one it names, or to the only one', () => {
    const running = new RunningRequests();
    const [first, second] = [{ method: 'a' }, { method: 'b' }];
    const endFirst = running.asking(first, 1, 'alpha');
    expect(running.relatedTo('alpha', undefined)).toBe(1);
    expect(running.relatedTo('beta', undefined)).toBeUndefined();
    const endSecond = running.asking(second, 2, 'alpha');
    expect(running.relatedTo('alpha', undefined)).toBeUndefined();
    expect(running.relatedTo('alpha', first)).toBe(1);
    expect(running.latestAt('alpha')).toBe(2);
    endSecond();
    expect(running.relatedTo('alpha', undefined)).toBe(1);
    endFirst();
    expect(running.latestAt('alpha')).toBeUndefined();
  });
});

describe('the names that telemetry may record', () => {
  test('are those that upstreams gave, and each odd one is told once', () => {
    const said: string[] = [];
    const register = createNameRegister((line) => void said.push(line));
    const table = nameTable([
      { upstream: 'a', names: ['same', 'with space', 'x'.repeat(70)] },
      { upstream: 'b', names: ['same', 'own'] },
    ]);
    register.note('tools', table);
    register.note('tools', table);
    expect(said).toHaveLength(4);
    expect(said[0]).toMatch(
      /the tool "same" of a is shown as a__same: another server has that name/,
    );
    expect(register.known.tools?.has('own')).toBe(true);
    expect(register.known.tools?.has('same')).toBe(false);
    expect(register.known.prompts?.has('own')).toBe(false);
  });

  test('are bounded, whatever upstreams invent', () => {
    const said: string[] = [];
    const register = createNameRegister((line) => void said.push(line));
    for (let n = 0; n < 3; n += 1) {
      const names = Array.from({ length: 10_000 }, (_, index) => `tool ${n}/${index}`);
      register.note('tools', nameTable([{ upstream: 'a', names }]));
    }
    expect((register.known.tools as Set<string>).size).toBe(20_000);
    expect(said).toHaveLength(20_000);
  });
});

describe('what is said at the start', () => {
  test('names every limit, and those of single tools', () => {
    const { upstreams } = readGatewayConfig(
      {
        mcpServers: {
          plain: { command: 'x' },
          other: {
            url: 'http://x',
            resilience: {
              timeout: 1_500,
              deadline: 2_000,
              rateLimit: { limit: 5, interval: 60_000 },
              breaker: { window: 'count', failureRate: 0.3, openDuration: 250 },
              bulkhead: { limit: { max: 9 } },
              cache: { ttl: 5_000 },
              retry: false,
              shared: true,
              tools: { slow: { timeout: 1_900 } },
            },
          },
          bare: { command: 'x', resilience: { breaker: false, bulkhead: false } },
        },
      },
      { name: 'test' },
    );
    const lines = upstreams.flatMap(limitsOf);
    expect(lines).toEqual([
      'plain (stdio): idle timeout 60 s (progress renews it); deadline 300 s; retries 2, only of what may be repeated; breaker opens at 5 failures in a row for 10 s; calls at one time 64, 1000 may wait; rate limit none; cache none; connect timeout 60 s; discovery timeout 20 s; a session for each client',
      'other (http): idle timeout 1500 ms (progress renews it); deadline 2 s; retries 0, only of what may be repeated; breaker opens at 30 % failures for 250 ms; calls at one time up to 9, 1000 may wait; rate limit 5 in 60 s; cache 5 s; connect timeout 60 s; discovery timeout 20 s; one session for all clients',
      'other, tool slow: idle timeout 1900 ms, deadline 2 s',
      expect.stringMatching(/^bare .*breaker none; calls at one time no limit/),
    ]);
  });
});

describe('health_check', () => {
  const health = (name: string, state: UpstreamHealth['state'], more = {}): UpstreamHealth => ({
    name,
    state,
    kind: 'stdio',
    restarts: 0,
    sessions: 1,
    pids: [1],
    ...more,
  });
  const statusOf = async (...upstreams: UpstreamHealth[]) => {
    const tool = createHealthTool({ health: () => upstreams }, '1');
    return tool.handler({}, { signal: new AbortController().signal, progress() {} });
  };

  verifies('gateway.health', async () => {
    const of = async (...states: UpstreamHealth['state'][]) => {
      const result = await statusOf(...states.map((state, n) => health(`u${n}`, state)));
      return (result.structuredContent as Json).status;
    };
    expect(await of('ready', 'ready')).toBe('ok');
    expect(await of('ready', 'connecting')).toBe('ok');
    expect(await of('ready', 'degraded')).toBe('degraded');
    expect(await of('ready', 'down')).toBe('degraded');
    expect(await of('down', 'connecting')).toBe('down');
    expect(await of('down')).toBe('down');
    const told = await statusOf(
      health('a', 'down', { reason: 'it died', retryAfter: 1.234, restarts: 2 }),
    );
    expect((told.content as readonly Json[])[0]?.text).toBe(
      'Status: down. Version 1.\n- a: down (it died; tried again in 1.3 s; restarted 2 times)',
    );
    // Process ids are nobody's business.
    expect(JSON.stringify(told)).not.toContain('pids');
  });
});
