import { describe, expect, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import { connect, events, initialize, openDoor, openSession, post, rpc } from './support/door.ts';
import { text } from './support/tools.ts';
import { until } from './support/wait.ts';

const hold = (id: string | number, label = '', meta: object = {}) =>
  rpc(id, 'tools/call', { name: 'hold', arguments: { label }, _meta: meta });

describe('Streamable HTTP', () => {
  verifies('http.sdk-client', async () => {
    const { door, calls } = await openDoor();
    const { client, transport } = await connect(door);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['hold', 'echo']);
    expect(await client.callTool({ name: 'echo', arguments: { say: 'hello' } })).toEqual(
      text('hello'),
    );

    const progress: unknown[] = [];
    const pending = client.callTool({ name: 'hold', arguments: {} }, undefined, {
      onprogress: (step) => progress.push(step),
    });
    await until(() => calls.length === 1);
    calls[0]?.context.progress(1, 2);
    calls[0]?.context.progress(2, 2);
    calls[0]?.answer(text('done'));
    expect(await pending).toEqual(text('done'));
    expect(progress).toEqual([
      { progress: 1, total: 2 },
      { progress: 2, total: 2 },
    ]);
    expect(calls[0]?.context.sessionId).toBe(transport.sessionId);
    await until(() => door.stats().streams === 1);
    await transport.terminateSession();
    expect(door.stats()).toMatchObject({ sessions: 0, streams: 0, running: 0 });
  });

  verifies('http.json-or-stream', async () => {
    const { door, calls, clock } = await openDoor();
    const session = await openSession(door);

    const plain = await post(
      door,
      rpc(1, 'tools/call', { name: 'echo', arguments: { say: 'x' } }),
      session,
    );
    expect(plain.headers.get('content-type')).toBe('application/json');
    expect(plain.headers.get('cache-control')).toBe('no-store');
    expect(await plain.json()).toEqual({ jsonrpc: '2.0', id: 1, result: text('x') });

    const withProgress = post(door, hold(2, '', { progressToken: 'p' }), session);
    await until(() => calls.length === 1);
    calls[0]?.context.progress(1);
    const stream = await withProgress;
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    calls[0]?.answer(text('y'));
    expect(events(await stream.text())).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'p', progress: 1 },
      },
      { jsonrpc: '2.0', id: 2, result: text('y') },
    ]);

    // In silence it becomes a stream as well, so that nobody waits for headers for ever.
    const silent = post(door, hold(3), session);
    await until(() => calls.length === 2);
    await clock.advance(15_000);
    const kept = await silent;
    expect(kept.headers.get('content-type')).toBe('text/event-stream');
    await clock.advance(15_000);
    calls[1]?.answer(text('z'));
    const body = await kept.text();
    expect(body).toContain(': keep-alive\n\n');
    expect(events(body)).toEqual([{ jsonrpc: '2.0', id: 3, result: text('z') }]);

    const accepted = await post(
      door,
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      session,
    );
    expect([accepted.status, await accepted.text()]).toEqual([202, '']);
  });

  verifies('C01', async () => {
    const { door, calls } = await openDoor();
    const session = await openSession(door);
    const abort = new AbortController();
    const lost = post(door, hold(1), session, { signal: abort.signal });
    const kept = post(door, hold(2), session);
    await until(() => calls.length === 2);
    abort.abort();
    await expect(lost).rejects.toThrow();
    await until(() => calls[0]?.context.signal.aborted === true);
    await until(() => door.stats().running === 1);
    expect(calls[1]?.context.signal.aborted).toBe(false);
    calls[1]?.answer(text('unharmed'));
    expect(await (await kept).json()).toMatchObject({ id: 2, result: text('unharmed') });
    // The id is free again, and the session is alive.
    expect((await post(door, rpc(1, 'ping'), session)).status).toBe(200);
  });

  verifies('C02', async () => {
    const { door, calls } = await openDoor({ sessions: false });
    const abort = new AbortController();
    const lost = post(door, hold(1), {}, { signal: abort.signal });
    await until(() => calls.length === 1);
    abort.abort();
    await expect(lost).rejects.toThrow();
    await until(() => calls[0]?.context.signal.aborted === true);
    await until(() => door.stats().running === 0);
  });

  verifies('C04', async () => {
    const { door, calls } = await openDoor();
    const session = await openSession(door);
    const cancel = (requestId: unknown) =>
      post(
        door,
        { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } },
        session,
      );

    // Before anything was sent, in the middle of a stream, and with an id that is falsy.
    const undecided = post(door, hold(1), session);
    await until(() => calls.length === 1);
    expect((await cancel(1)).status).toBe(202);
    const empty = await undecided;
    expect([empty.status, await empty.text()]).toEqual([200, '']);

    const streaming = post(door, hold(2, '', { progressToken: 1 }), session);
    await until(() => calls.length === 2);
    calls[1]?.context.progress(1);
    const stream = await streaming;
    await cancel(2);
    expect(events(await stream.text())).toHaveLength(1);

    const falsy = post(door, hold(0), session);
    await until(() => calls.length === 3);
    await cancel(0);
    expect(await (await falsy).text()).toBe('');

    expect(calls.map(({ context }) => context.signal.aborted)).toEqual([true, true, true]);
    expect(door.stats().running).toBe(0);
    await cancel('never heard of');
  });

  verifies('S11', async () => {
    const { door, calls } = await openDoor({ sessions: false });
    const one = post(door, hold(1, 'one', { progressToken: 't' }));
    const two = post(door, hold(1, 'two', { progressToken: 't' }));
    await until(() => calls.length === 2);
    for (const { context, label, answer } of calls) {
      context.progress(label === 'one' ? 1 : 2);
      answer(text(label));
    }
    const told = async (response: Promise<Response>) => events(await (await response).text());
    expect(await told(one)).toMatchObject([
      { params: { progress: 1 } },
      { id: 1, result: text('one') },
    ]);
    expect(await told(two)).toMatchObject([
      { params: { progress: 2 } },
      { id: 1, result: text('two') },
    ]);
    // An answered call is over: its signal does not fire afterwards.
    await until(() => door.stats().running === 0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls.map(({ context }) => context.signal.aborted)).toEqual([false, false]);

    // Nor when it was written out long after the server had given it.
    const slow = post(door, hold(2, 'slow', { progressToken: 't' }));
    await until(() => calls.length === 3);
    calls[2]?.context.progress(1);
    calls[2]?.answer(text('x'.repeat(20_000_000)));
    const [, large] = events(await (await slow).text());
    expect(JSON.stringify(large)).toHaveLength(20_000_000 + 73);
    await until(() => door.stats().connections === 0 || door.stats().running === 0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls[2]?.context.signal.aborted).toBe(false);

    const opened = await post(door, initialize());
    expect(opened.headers.get('mcp-session-id')).toBeNull();
    expect((await opened.json()) as unknown).toMatchObject({
      result: { protocolVersion: '2025-11-25' },
    });
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(door.url, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    }
    expect((await post(door, { jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(
      202,
    );
  });

  verifies('http.batch', async () => {
    const { door, calls } = await openDoor();
    const old = await openSession(door, '2025-03-26');
    const batch = [
      rpc(1, 'ping'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      rpc('2', 'ping'),
    ];
    const answer = await post(door, batch, old);
    expect(await answer.json()).toEqual([
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: '2', result: {} },
    ]);

    const mixed = post(door, [rpc(3, 'ping'), hold(4, '', { progressToken: 1 })], old);
    await until(() => calls.length === 1);
    calls[0]?.context.progress(1);
    calls[0]?.answer(text('x'));
    expect(events(await (await mixed).text())).toMatchObject([
      { id: 3 },
      { method: 'notifications/progress' },
      { id: 4, result: text('x') },
    ]);

    const fresh = await openSession(door);
    for (const [body, headers, reason] of [
      [batch, fresh, /2025-11-25 has no batches/],
      [[], old, /at least one message/],
      [Array(101).fill(rpc(1, 'ping')), old, /100 messages/],
      [[rpc(1, 'ping'), rpc(1, 'ping')], old, /id 1 is still running/],
      [[initialize(), rpc(1, 'ping')], {}, /only message/],
    ] as const) {
      const response = await post(door, body, headers);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({
        error: { code: -32600, message: expect.stringMatching(reason) },
      });
    }
  });

  verifies('http.duplicate-id', async () => {
    const { door, calls } = await openDoor();
    const [mine, other] = [await openSession(door), await openSession(door)];
    const first = post(door, hold(1), mine);
    await until(() => calls.length === 1);
    const second = await post(door, hold(1), mine);
    expect(second.status).toBe(400);
    expect(await second.json()).toMatchObject({ id: 1, error: { code: -32600 } });
    const elsewhere = post(door, hold(1), other);
    await until(() => calls.length === 2);
    for (const call of calls) call.answer(text('fine'));
    expect((await first).status).toBe(200);
    expect((await elsewhere).status).toBe(200);
  });

  verifies('http.get-stream', async () => {
    const { door, clock } = await openDoor();
    const session = await openSession(door);
    const get = (headers: Record<string, string>) => fetch(door.url, { headers });
    const accept = { accept: 'text/event-stream' };

    const stream = await get({ ...session, ...accept });
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const reader = stream.body?.getReader();
    await clock.advance(15_000);
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(': keep-alive\n\n');

    expect((await get({ ...session, ...accept })).status).toBe(409);
    expect((await get({ ...session, accept: 'application/json' })).status).toBe(406);
    const none = await get(accept);
    expect([none.status, none.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await get({ ...accept, 'mcp-session-id': 'nobody' })).status).toBe(404);

    await reader?.cancel();
    await until(() => door.stats().streams === 0);
    const again = await get({ ...session, ...accept });
    expect(again.status).toBe(200);
    await again.body?.cancel();
  });

  test('DELETE ends the session and aborts what runs in it, and in no other (P07)', async () => {
    const { door, calls } = await openDoor();
    const [mine, other] = [await openSession(door), await openSession(door)];
    const running = post(door, hold(1), mine);
    const theirs = post(door, hold(1), other);
    await until(() => calls.length === 2);
    const remove = (headers: Record<string, string>) =>
      fetch(door.url, { method: 'DELETE', headers });
    expect((await remove(mine)).status).toBe(204);
    const ended = await running;
    expect(ended.status).toBe(404);
    expect(await ended.json()).toMatchObject({
      id: 1,
      error: { code: -32001, message: 'Session not found' },
    });
    expect(calls.map(({ context }) => context.signal.aborted)).toEqual([true, false]);
    calls[1]?.answer(text('fine'));
    expect((await theirs).status).toBe(200);
    expect((await remove(mine)).status).toBe(404);
    expect((await remove({})).status).toBe(400);
    expect((await post(door, rpc(2, 'ping'), mine)).status).toBe(404);
    expect(door.stats()).toMatchObject({ sessions: 1, running: 0 });
  });

  test('an initialize that fails leaves no session', async () => {
    const { door } = await openDoor();
    const response = await post(door, rpc(1, 'initialize', { protocolVersion: 7 }));
    expect(response.headers.get('mcp-session-id')).toBeNull();
    expect(await response.json()).toMatchObject({ id: 1, error: { code: expect.any(Number) } });
    expect(door.stats().sessions).toBe(0);
    const session = await openSession(door);
    expect((await post(door, initialize(), session)).status).toBe(400);
    expect((await post(door, initialize(), { 'mcp-session-id': 'stale' })).status).toBe(200);
  });

  test('other methods and paths are refused in JSON', async () => {
    const { door } = await openDoor();
    const put = await fetch(door.url, { method: 'PUT', body: 'x' });
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'POST, GET, DELETE']);
    expect(await put.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32600 } });
    const lost = await fetch(new URL('/', door.url));
    expect(lost.status).toBe(404);
    expect(await lost.json()).toMatchObject({
      error: { message: 'Not Found: the MCP endpoint is /mcp' },
    });
  });

  test('a server that cannot be made is an internal error without its reason', async () => {
    const { door } = await openDoor({
      createServer: () => {
        throw new Error('password=hunter2');
      },
    });
    const response = await post(door, initialize());
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({
      error: { code: -32603, message: expect.not.stringContaining('hunter2') },
    });
    expect(door.stats()).toMatchObject({ sessions: 0, running: 0 });
  });
});
