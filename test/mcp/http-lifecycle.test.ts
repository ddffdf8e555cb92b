import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import { connect, events, initialize, openDoor, openSession, post, rpc } from './support/door.ts';
import { text } from './support/tools.ts';
import { until } from './support/wait.ts';

const hold = (id: number, meta: object = {}) =>
  rpc(id, 'tools/call', { name: 'hold', arguments: {}, _meta: meta });
const MINUTE = 60_000;

describe('sessions', () => {
  verifies('S05', async () => {
    const { door, clock, calls } = await openDoor({ maxSessions: 3 });
    const used = await openSession(door);
    await clock.advance(20 * MINUTE);
    expect((await post(door, rpc(1, 'ping'), used)).status).toBe(200);
    await clock.advance(20 * MINUTE);
    expect(door.stats().sessions).toBe(1);
    await clock.advance(10 * MINUTE);
    expect(door.stats().sessions).toBe(0);
    expect((await post(door, rpc(2, 'ping'), used)).status).toBe(404);
    expect(clock.pendingTimers).toBe(0);

    // At the maximum the one that has been idle longest makes room, if it has nothing to do.
    const [busy, idle, idler] = [
      await openSession(door),
      await openSession(door),
      await openSession(door),
    ];
    const running = post(door, hold(1), busy);
    await until(() => calls.length === 1);
    await post(door, rpc(1, 'ping'), idle);
    const fourth = await openSession(door);
    expect(door.stats().sessions).toBe(3);
    expect((await post(door, rpc(2, 'ping'), idler)).status).toBe(404);
    expect((await post(door, rpc(2, 'ping'), idle)).status).toBe(200);

    const more = [post(door, hold(3), idle), post(door, hold(3), fourth)];
    await until(() => calls.length === 3);
    const full = await post(
      door,
      rpc(1, 'initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'x', version: '1' },
      }),
    );
    expect([full.status, full.headers.get('retry-after')]).toEqual([503, '5']);
    for (const call of calls) call.answer(text('done'));
    for (const response of [running, ...more]) expect((await response).status).toBe(200);
  });

  verifies('http.idle-stream', async () => {
    const { door, clock } = await openDoor();
    const session = await openSession(door);
    const stream = await fetch(door.url, { headers: { ...session, accept: 'text/event-stream' } });
    const read = stream.text();
    await clock.advance(30 * MINUTE);
    await read;
    expect(door.stats()).toMatchObject({ sessions: 0, streams: 0 });
    expect(clock.pendingTimers).toBe(0);
  });

  test('a running call keeps its session, and the time counts from its end', async () => {
    const { door, clock, calls } = await openDoor();
    const session = await openSession(door);
    const pending = post(door, hold(1), session);
    await until(() => calls.length === 1);
    await clock.advance(100 * MINUTE);
    calls[0]?.answer(text('at last'));
    expect(events(await (await pending).text())).toMatchObject([{ result: text('at last') }]);
    await clock.advance(29 * MINUTE);
    expect(door.stats().sessions).toBe(1);
    await clock.advance(2 * MINUTE);
    expect(door.stats().sessions).toBe(0);
  });

  test('a session belongs to whoever opened it', async () => {
    const { door } = await openDoor({
      authenticate: async (req) => {
        const who = String(req.headers.authorization ?? '');
        return who === ''
          ? {
              status: 401,
              message: 'Unauthorized: send a token',
              headers: { 'www-authenticate': 'Bearer' },
            }
          : { token: who, clientId: 'app', scopes: [], extra: { principal: who } };
      },
    });
    const refused = await post(door, rpc(1, 'ping'));
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    const opened = await post(
      door,
      rpc(1, 'initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'x', version: '1' },
      }),
      { authorization: 'anna' },
    );
    const id = String(opened.headers.get('mcp-session-id'));
    const ping = (authorization: string) =>
      post(door, rpc(2, 'ping'), { 'mcp-session-id': id, authorization });
    expect((await ping('anna')).status).toBe(200);
    expect((await ping('bert')).status).toBe(404);
    // Nor can anybody else learn that it exists.
    const initialized = (authorization: string) =>
      post(door, initialize(), { 'mcp-session-id': id, authorization });
    expect((await initialized('anna')).status).toBe(400);
    const other = await initialized('bert');
    expect([other.status, other.headers.get('mcp-session-id')]).not.toContain(id);
    expect(other.status).toBe(200);
  });

  test('a refused request is answered under its own id', async () => {
    const { door } = await openDoor();
    const session = await openSession(door);
    const refused = async (body: unknown, headers = {}) => {
      const response = await post(door, body, headers);
      const { id, error } = (await response.json()) as { id: unknown; error: object };
      expect(error).toHaveProperty('code');
      return [response.status, id];
    };
    const version = { 'mcp-protocol-version': '1999-01-01' };
    expect([
      await refused(rpc('a', 'ping')),
      await refused(rpc('a', 'ping'), { 'mcp-session-id': 'gone' }),
      await refused(rpc('a', 'ping'), { ...session, ...version }),
      await refused({ ...initialize(), id: 'a' }, session),
      await refused([rpc('a', 'ping'), rpc('b', 'ping')], session),
      await refused({ jsonrpc: '2.0', method: 'notifications/initialized' }),
    ]).toEqual([
      [400, 'a'],
      [404, 'a'],
      [400, 'a'],
      [400, 'a'],
      [400, null],
      [400, null],
    ]);
  });

  verifies('http.no-leaks', async () => {
    const { door, clock, calls } = await openDoor({ maxConnections: 1_000 });
    for (let round = 0; round < 200; round += 1) {
      const { client, transport } = await connect(door);
      await until(() => door.stats().streams === 1);
      if (round % 4 === 0) {
        const lost = client.callTool({ name: 'hold', arguments: {} }).catch(() => 'lost');
        await until(() => calls.length === round / 4 + 1);
        await client.close();
        expect(await lost).toBe('lost');
        await until(() => door.stats().running === 0 && door.stats().streams === 0);
        await fetch(door.url, {
          method: 'DELETE',
          headers: { 'mcp-session-id': String(transport.sessionId) },
        });
      } else {
        await client.callTool({ name: 'echo', arguments: { say: 'x' } });
        await transport.terminateSession();
        await client.close();
      }
      await until(() => door.stats().streams === 0);
    }
    expect(door.stats()).toMatchObject({ sessions: 0, streams: 0, running: 0 });
    expect(calls.every(({ context }) => context.signal.aborted)).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('closing', () => {
  verifies('http.drain', async () => {
    const { door, clock, calls } = await openDoor();
    const session = await openSession(door);
    const [quick, stuck] = [
      post(door, hold(1), session),
      post(door, hold(2, { progressToken: 1 }), session),
    ];
    await until(() => calls.length === 2);
    const get = await fetch(door.url, { headers: { ...session, accept: 'text/event-stream' } });

    const closed = door.close();
    expect(door.close()).toBe(closed);
    const ready = await fetch(new URL('/readyz', door.url));
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'draining' }]);
    expect((await fetch(new URL('/healthz', door.url))).status).toBe(200);
    const refused = await post(door, rpc(3, 'ping'), session);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);

    calls[0]?.answer(text('made it'));
    expect(await (await quick).json()).toMatchObject({ result: text('made it') });
    await clock.advance(4_999);
    expect(calls[1]?.context.signal.aborted).toBe(false);
    await clock.advance(1);
    expect((await stuck).status).toBe(503);
    expect(calls[1]?.context.signal.aborted).toBe(true);
    await get.text();
    await closed;
    expect(door.stats()).toEqual({ connections: 0, sessions: 0, streams: 0, running: 0 });
    expect(clock.pendingTimers).toBe(0);
    await expect(fetch(door.url)).rejects.toThrow();
  });

  test('with nothing running it closes without waiting, idle connections included', async () => {
    const { door, clock } = await openDoor();
    const socket = connectSocket(door.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await until(() => door.stats().connections === 1);
    const gone = once(socket, 'close');
    await door.close();
    await gone;
    expect(door.stats().connections).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  test('what was sent before the end still arrives', async () => {
    const { door, clock, calls } = await openDoor();
    const pending = post(door, hold(1, { progressToken: 1 }), await openSession(door));
    await until(() => calls.length === 1);
    calls[0]?.context.progress(1, undefined, 'x'.repeat(20_000_000));
    const response = await pending;
    const closed = door.close();
    await clock.advance(5_000);
    await until(() => calls[0]?.context.signal.aborted === true);
    expect(events(await response.text())).toMatchObject([
      { method: 'notifications/progress' },
      { id: 1, error: { code: 503 } },
    ]);
    await closed;
  });

  test('the last running call ends the wait', async () => {
    const { door, calls } = await openDoor();
    const pending = post(door, hold(1), await openSession(door));
    await until(() => calls.length === 1);
    const closed = door.close();
    // Too much to be written at once: the connection stays until it has been.
    calls[0]?.answer(text('x'.repeat(20_000_000)));
    await until(() => door.stats().running === 0);
    expect((await (await pending).text()).length).toBeGreaterThan(20_000_000);
    await closed;
  });
});

describe('health', () => {
  verifies('http.health', async () => {
    let ready = false;
    const { door } = await openDoor({ ready: () => ready, rateLimit: { limit: 1, burst: 1 } });
    const get = async (path: string) => {
      const response = await fetch(new URL(path, door.url), {
        headers: { origin: 'https://evil.example' },
      });
      return [response.status, response.headers.get('content-type'), await response.json()];
    };
    expect(await get('/readyz')).toEqual([503, 'application/json', { status: 'not ready' }]);
    ready = true;
    for (let round = 0; round < 5; round += 1) {
      expect(await get('/readyz')).toEqual([200, 'application/json', { status: 'ready' }]);
      expect(await get('/healthz?verbose')).toEqual([200, 'application/json', { status: 'ok' }]);
    }
  });

  test('a port that is taken rejects', async () => {
    const { door } = await openDoor();
    await expect(openDoor({ port: door.port })).rejects.toThrow(/EADDRINUSE/);
  });

  test('a setting that nobody knows, or out of range, rejects', async () => {
    await expect(openDoor({ maxBodyBites: 1 } as object)).rejects.toThrow(/maxBodyBites/);
    await expect(openDoor({ maxSessions: 0 })).rejects.toThrow(/maxSessions/);
  });
});
