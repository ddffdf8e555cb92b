import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/gateway/types.ts';
import { classify } from '../../src/resilience/failure.ts';
import { closedPort, http, rejection, tcp } from '../fixtures/loopback.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { openLink, type TestLink, textOf } from './support/link.ts';
import { type HttpUpstreamSettings, startHttpUpstream } from './support/upstream-http.ts';

const MEBIBYTE = 1024 * 1024;

const start = async (settings: HttpUpstreamSettings = {}) => {
  const upstream = await startHttpUpstream(settings);
  onTestFinished(() => upstream.close());
  return upstream;
};

/** A link to an upstream, initialised. */
const connect = async (
  settings: HttpUpstreamSettings = {},
  ...[environment]: Parameters<typeof openLink> extends [unknown, ...infer Rest] ? Rest : never
) => {
  const upstream = await start(settings);
  const address = { kind: 'http', url: upstream.url, headers: { 'X-Own': 'yes' } } as const;
  const link = await openLink(address, environment);
  await link.initialize();
  return { upstream, ...link };
};

const write = (link: Pick<TestLink, 'call'>, key = 'k') => link.call('write', { key });

describe('HTTP link', () => {
  verifies('link.http.answers', async () => {
    for (const answer of ['json', 'sse'] as const) {
      const { upstream, call, link, messages } = await connect({ answer });
      expect(textOf(await call('ok', { text: 'grüezi 🔧' }))).toBe('grüezi 🔧');
      await until(() => upstream.streams === 1);
      await call('log');
      await until(() => messages.some(({ message }) => message.method === 'notifications/message'));
      const [session = ''] = upstream.sessions;
      expect(link.facts).toEqual({ address: '127.0.0.1', port: upstream.port, sessionId: session });
      const [first, ...rest] = upstream.requests;
      expect(first?.headers).not.toHaveProperty('mcp-session-id');
      expect(first?.headers).not.toHaveProperty('mcp-protocol-version');
      expect(rest.length).toBeGreaterThan(2);
      for (const { headers } of rest) {
        expect(headers).toMatchObject({
          'mcp-session-id': session,
          'mcp-protocol-version': '2025-11-25',
        });
      }
      for (const { headers, method } of upstream.requests) {
        const accept =
          method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream';
        expect(headers).toMatchObject({ 'x-own': 'yes', accept });
      }
    }
  });

  verifies('link.http.order', async () => {
    for (const kind of ['http', 'sse'] as const) {
      const upstream = await start({ get: 'none' });
      const url = kind === 'http' ? upstream.url : upstream.sseUrl;
      const { link, request, notify } = await openLink({ kind, url, headers: {} });
      await request('initialize', { protocolVersion: '2025-11-25' });
      link.initialized('2025-11-25');
      const methods = () => upstream.requests.map(({ body }) => body?.method).filter(Boolean);
      // Redirected, it is longer on its way than what comes after it.
      const redirect = (location: string) =>
        ({ kind: 'status', status: 307, headers: { location } }) as const;
      upstream.fail('notifications/initialized', redirect(''), 3);
      await Promise.all([notify('notifications/initialized'), request('tools/list')]);
      const greetings = Array.from({ length: 4 }, () => 'notifications/initialized');
      expect(methods()).toEqual(['initialize', ...greetings, 'tools/list']);
    }
  });

  test('what comes on the stream of an answer names its request, what comes on the GET stream none', async () => {
    const { upstream, call, messages } = await connect();
    await until(() => upstream.streams === 1);
    const answer = await call('log');
    await call('changed');
    await until(() =>
      messages.some(({ message }) => message.method === 'notifications/tools/list_changed'),
    );
    const related = (method: string) =>
      messages.find(({ message }) => message.method === method)?.related;
    expect(related('notifications/message')).toBe(answer.id);
    expect(related('notifications/tools/list_changed')).toBeUndefined();
  });

  test('messages of 20 MiB pass whole, in both directions and both forms', async () => {
    for (const answer of ['json', 'sse'] as const) {
      const { call } = await connect({ answer });
      const text = `${'ü'.repeat(10 * MEBIBYTE)}!`;
      expect(textOf(await call('ok', { text })) === text).toBe(true);
    }
  });

  verifies('link.http.lost', async () => {
    const { upstream, call, ends } = await connect();
    for (const kind of ['end', 'lost'] as const) {
      upstream.fail('tools/call write', { kind });
      const failure = await rejection(() => call('write', { key: kind }));
      expect(failure).toMatchObject({ delivery: 'lost' });
      expect(classify(failure)).toMatchObject({ code: 'CONNECTION_RESET', delivery: 'lost' });
    }
    expect(upstream.record.writes).toEqual(['write end', 'write lost']);
    expect(textOf(await call('ok'))).toBe('ok');
    expect(ends).toEqual([]);
  });

  verifies('link.http.resume', async () => {
    const clock = new ManualClock();
    const { upstream, ask, messages, lost } = await connect(
      { eventIds: true, retry: 400 },
      { clock },
    );
    upstream.fail('tools/call write', { kind: 'poll' });
    const id = ask('tools/call', { name: 'write', arguments: {} });
    await until(() => upstream.record.writes.length === 1);
    const resumes = () =>
      upstream.requests.filter(({ headers }) => headers['last-event-id'] !== undefined);
    await until(() => clock.pendingTimers > 0);
    await clock.advance(399);
    expect(resumes()).toHaveLength(0);
    await clock.advance(1);
    await until(() => messages.some(({ message }) => message.id === id));
    expect(resumes()).toHaveLength(1);
    expect(messages.at(-1)).toMatchObject({ related: id, message: { id, result: {} } });
    expect(upstream.record.writes).toHaveLength(1);
    expect(lost).toEqual([]);
  });

  test('a stream that cannot be taken up again loses the answer in the end', async () => {
    for (const [status, gets] of [
      [404, 1],
      [400, 1],
      [503, 5],
    ] as const) {
      const clock = new ManualClock();
      const { upstream, ask, lost } = await connect(
        { eventIds: true, retry: 10, sessions: status !== 404 },
        { clock },
      );
      await until(() => upstream.requests.some(({ method }) => method === 'GET'));
      upstream.fail('tools/call write', { kind: 'poll' });
      const id = ask('tools/call', { name: 'write', arguments: {} });
      await until(() => upstream.record.writes.length === 1);
      upstream.fail('GET', { kind: 'status', status }, 100);
      while (lost.length === 0) await clock.advance(1_000);
      expect(lost).toMatchObject([{ id, failure: { delivery: 'lost' } }]);
      const resumes = upstream.requests.filter(
        ({ headers }) => headers['last-event-id'] !== undefined,
      );
      expect(resumes).toHaveLength(gets);
    }
  });

  verifies('link.http.server-stream', async () => {
    const gets = (upstream: { requests: readonly { method: string }[] }) =>
      upstream.requests.filter(({ method }) => method === 'GET').length;
    const none = new ManualClock();
    const without = await connect({ get: 'none' }, { clock: none });
    await until(() => gets(without.upstream) === 1);
    await none.advance(3_600_000);
    expect(gets(without.upstream)).toBe(1);

    const clock = new ManualClock();
    const { upstream, call } = await connect({ get: 'end' }, { clock, random: () => 0 });
    const times: number[] = [];
    for (let seen = 0; clock.now() < 1_000 + 600_000; ) {
      if (gets(upstream) > seen) {
        seen += 1;
        times.push(clock.now() - 1_000);
        await until(() => clock.pendingTimers > 0);
      }
      await clock.advance(clock.nextTimer ?? 0);
      await until(() => gets(upstream) > seen);
    }
    // Half a second, doubled up to half a minute: with the jitter of this random source.
    expect(times.slice(0, 7)).toEqual([0, 500, 1_500, 3_500, 7_500, 15_500, 31_500]);
    expect(times.length).toBeLessThan(30);
    expect(textOf(await call('ok'))).toBe('ok');
  });

  test('a GET stream that worked goes on after its last event', async () => {
    const clock = new ManualClock();
    const { upstream, messages } = await connect({ eventIds: true }, { clock, random: () => 0 });
    await until(() => upstream.streams === 1);
    upstream.push({ jsonrpc: '2.0', method: 'notifications/one' });
    await until(() => messages.some(({ message }) => message.method === 'notifications/one'));
    upstream.endStreams();
    await until(() => upstream.streams === 0 && clock.pendingTimers > 0);
    upstream.push({ jsonrpc: '2.0', method: 'notifications/two' });
    await clock.advance(500);
    await until(() => messages.some(({ message }) => message.method === 'notifications/two'));
    expect(upstream.requests.at(-1)?.headers['last-event-id']).toBe('get/1');
    const methods = messages.map(({ message }) => message.method).filter(Boolean);
    expect(methods).toEqual(['notifications/one', 'notifications/two']);
  });

  test('Retry-After of the GET stream is honoured', async () => {
    const clock = new ManualClock();
    const upstream = await start();
    upstream.fail('GET', { kind: 'status', status: 429, headers: { 'retry-after': '30' } });
    const { initialize } = await openLink(
      { kind: 'http', url: upstream.url, headers: {} },
      { clock },
    );
    await initialize();
    await until(() => clock.pendingTimers > 0);
    await clock.advance(29_999);
    expect(upstream.streams).toBe(0);
    await clock.advance(1);
    await until(() => upstream.streams === 1);
  });

  verifies('link.http.session-lost', async () => {
    const { upstream, ask, call, link, ends, messages } = await connect();
    await until(() => upstream.streams === 1);
    const running = ask('tools/call', { name: 'slow', arguments: { ms: 300 } });
    await until(() => upstream.record.received.some(({ message }) => message.id === running));
    upstream.fail('tools/call write', { kind: 'status', status: 404 });
    const failure = await rejection(() => write({ call }));
    expect(failure).toMatchObject({ delivery: 'not-sent', sessionLost: true, status: 404 });
    expect(classify(failure)).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', delivery: 'refused' });
    expect(await rejection(() => call('ok'))).toMatchObject({
      delivery: 'not-sent',
      sessionLost: true,
    });
    expect(ends).toEqual([]);
    await until(() => ends.length > 0);
    expect(messages.some(({ message }) => message.id === running && 'result' in message)).toBe(
      true,
    );
    expect(ends).toMatchObject([{ kind: 'session' }]);
    await link.close();
    expect(ends).toHaveLength(1);
    expect(upstream.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(0);
    await until(() => upstream.open === 0);
  });

  test('a session that the GET stream finds gone ends the link too', async () => {
    const clock = new ManualClock();
    const { upstream, ends } = await connect({}, { clock, random: () => 0 });
    await until(() => upstream.streams === 1);
    upstream.restart();
    await until(() => clock.pendingTimers > 0);
    await clock.advance(500);
    await until(() => ends.length > 0);
    expect(ends).toMatchObject([{ kind: 'session' }]);
  });

  verifies('link.http.statuses', async () => {
    const { upstream, call, ends } = await connect({ get: 'none' });
    await until(() => upstream.requests.some(({ method }) => method === 'GET'));
    await call('ok');
    const { open } = upstream;
    const at = async (status: number, headers: Record<string, string> = {}, body = 'why') => {
      upstream.fail('tools/call write', { kind: 'status', status, headers, body });
      const error = await rejection(() => write({ call }));
      return { error, failure: classify(error) };
    };
    for (const status of [401, 403, 405, 413, 429]) {
      expect((await at(status)).error).toMatchObject({ status, delivery: 'not-sent' });
    }
    for (const status of [400, 408, 409, 422, 500, 502, 503, 504]) {
      expect((await at(status)).error).toMatchObject({ status, delivery: 'lost' });
    }
    const throttled = await at(429, { 'retry-after': '7', 'set-cookie': 'a=1' });
    expect(throttled.failure).toMatchObject({
      code: 'RATE_LIMITED',
      delivery: 'refused',
      retryAfter: 7,
    });
    expect((throttled.error as { headers: Headers }).headers.get('retry-after')).toBe('7');
    expect((await at(503, { 'retry-after': '9' })).failure).toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      delivery: 'answered',
      retryAfter: 9,
    });
    expect((await at(401)).failure).toMatchObject({ code: 'AUTH_FAILED', retryable: false });
    expect((await at(400)).failure.message).toContain('answered HTTP 400: why');
    expect(upstream.record.writes).toEqual([]);
    expect(ends).toEqual([]);
    // None of them took its connection with it.
    expect(upstream.open).toBe(open);
  });

  test('a JSON-RPC error is the answer to its request, whatever the status says', async () => {
    const { upstream, request } = await connect();
    const error = { code: -32602, message: 'bad', data: { x: 1 } };
    for (const status of [200, 400]) {
      const headers = { 'content-type': 'application/json' };
      // The request to come has the second and third id of this link.
      const id = status === 200 ? null : 3;
      const body = JSON.stringify({ jsonrpc: '2.0', id, error });
      upstream.fail('x/y', { kind: 'status', status, headers, body });
      expect((await request('x/y')).error).toEqual(error);
    }
  });

  verifies('link.http.redirect', async () => {
    const { upstream, call, logged } = await connect({ get: 'none' });
    const seen = () => upstream.requests.length;
    const elsewhere: string[] = [];
    const port = await http((req, res) => {
      elsewhere.push(String(req.headers['x-own']));
      res.end();
    });
    const redirect = (status: number, location: string) =>
      upstream.fail('tools/call write', { kind: 'status', status, headers: { location } });

    redirect(307, upstream.url);
    redirect(308, '/mcp');
    expect(textOf(await write({ call }))).toBe('written');
    expect(upstream.record.writes).toHaveLength(1);

    redirect(307, `http://127.0.0.1:${port}/mcp`);
    const failure = await rejection(() => write({ call }));
    expect(failure).toMatchObject({ delivery: 'not-sent' });
    expect(classify(failure)).toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      retryable: false,
    });
    expect(String(failure)).toContain(`redirects to http://127.0.0.1:${port}`);
    expect(elsewhere).toEqual([]);

    // Would make a GET of it.
    redirect(302, upstream.url);
    expect(await rejection(() => write({ call }))).toMatchObject({ status: 302 });
    const before = seen();
    for (let hop = 0; hop < 9; hop += 1) redirect(307, upstream.url);
    expect(String(await rejection(() => write({ call })))).toMatch(/redirects more than 3 times/);
    expect(seen() - before).toBe(4);
    expect(upstream.record.writes).toHaveLength(1);
    expect(logged).toEqual([]);
  });

  verifies('link.http.limits', async () => {
    for (const answer of ['json', 'sse'] as const) {
      const { call } = await connect({ answer }, { config: { maxMessageBytes: MEBIBYTE } });
      const failure = await rejection(() => call('big', { n: MEBIBYTE }));
      expect(failure).toMatchObject({ delivery: 'lost' });
      expect(classify(failure)).toMatchObject({
        code: 'UPSTREAM_INVALID_RESPONSE',
        retryable: false,
        message: expect.stringContaining('longer than 1048576 bytes (maxMessageBytes)'),
      });
      expect(textOf(await call('ok'))).toBe('ok');
    }
    const { upstream, call, logged } = await connect({ get: 'none' });
    const answered = async (type: string, body: string, headers: Record<string, string> = {}) => {
      const all = { ...headers, ...(type && { 'content-type': type }) };
      upstream.fail('tools/call write', { kind: 'status', status: 200, headers: all, body });
      return String(await rejection(() => write({ call })));
    };
    const json = 'application/json; charset=utf-8';
    expect(await answered('text/html', '<html>')).toMatch(/it is text\/html, neither JSON nor/);
    expect(await answered('', '')).toMatch(/without a content type/);
    expect(await answered(json, '{"jsonrpc":')).toMatch(/no JSON-RPC message/);
    expect(await answered(json, '{"jsonrpc":"2.0","id":99,"result":{}}')).toMatch(
      /does not answer/,
    );
    expect(await answered(json, '{}', { 'content-encoding': 'br' })).toMatch(/encoded with br/);
    expect(await answered('text/event-stream', 'data: {"nonsense":1}\n\n')).toMatch(
      /ended the stream/,
    );
    expect(logged).toHaveLength(1);
    expect(textOf(await call('ok'))).toBe('ok');
  });

  verifies('link.http.close', async () => {
    const { upstream, ask, link, ends, lost } = await connect();
    await until(() => upstream.streams === 1);
    ask('tools/call', { name: 'hang', arguments: {} });
    await until(() =>
      upstream.record.received.some(({ message }) => message.method === 'tools/call'),
    );
    const [session] = upstream.sessions;
    await Promise.all([link.close(), link.close()]);
    const [last, ...others] = upstream.requests.filter(({ method }) => method === 'DELETE');
    expect(last?.headers['mcp-session-id']).toBe(session);
    expect(others).toEqual([]);
    expect(upstream.sessions.size).toBe(0);
    expect(ends).toEqual([{ kind: 'closed', reason: 'closed' }]);
    expect(lost).toEqual([]);
    await until(() => upstream.open === 0);
    expect(await rejection(() => link.send({ jsonrpc: '2.0', method: 'x' }))).toMatchObject({
      delivery: 'not-sent',
    });
  });

  test('closing waits no longer than 2 s for the server', async () => {
    const clock = new ManualClock();
    const { upstream, link, ends } = await connect({}, { clock });
    upstream.fail('DELETE', { kind: 'hang' });
    const closed = link.close();
    await until(() => upstream.requests.at(-1)?.method === 'DELETE');
    await clock.advance(1_999);
    expect(ends).toEqual([]);
    await clock.advance(1);
    await closed;
    expect(ends).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
    await until(() => upstream.open === 0);
  });

  verifies('link.http.abort', async () => {
    const { upstream, ask, call, link, lost } = await connect({ get: 'none' });
    const controller = new AbortController();
    const id = ask('tools/call', { name: 'hang', arguments: {} }, controller.signal);
    await until(() => upstream.record.received.some(({ message }) => message.id === id));
    await flush();
    const before = upstream.open;
    controller.abort(new Error('enough'));
    await until(() => upstream.open === before - 1);
    upstream.fail('x/hang', { kind: 'hang' });
    const other = new AbortController();
    const message = { jsonrpc: '2.0', id: 99, method: 'x/hang' } as const;
    const sent = rejection(() => link.send(message, other.signal));
    await until(() => upstream.requests.at(-1)?.body?.method === 'x/hang');
    other.abort(new Error('not yet answered'));
    expect(await sent).toBe(other.signal.reason);
    expect(await rejection(() => link.send(message, other.signal))).toBe(other.signal.reason);
    expect(textOf(await call('ok'))).toBe('ok');
    expect(lost).toEqual([]);
  });

  verifies('link.http.network', async () => {
    const failing = async (port: number, host = '127.0.0.1') => {
      const { link } = await openLink({
        kind: 'http',
        url: `http://${host}:${port}/mcp`,
        headers: {},
      });
      const error = await rejection(() => link.send({ jsonrpc: '2.0', id: 1, method: 'x' }));
      return { delivery: (error as { delivery: string }).delivery, code: classify(error).code };
    };
    expect(await failing(await closedPort())).toEqual({
      delivery: 'not-sent',
      code: 'CONNECTION_REFUSED',
    });
    expect(await failing(80, 'no-such-host.invalid')).toEqual({
      delivery: 'not-sent',
      code: 'DNS_FAILURE',
    });
    expect(await failing(await tcp((socket) => socket.resetAndDestroy()))).toEqual({
      delivery: 'lost',
      code: 'CONNECTION_RESET',
    });
    expect(await failing(await tcp((socket) => socket.end('garbage\r\n\r\n')))).toEqual({
      delivery: 'lost',
      code: 'UPSTREAM_INVALID_RESPONSE',
    });
    const half =
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{"json';
    expect(await failing(await tcp((socket) => socket.end(half)))).toEqual({
      delivery: 'lost',
      code: 'CONNECTION_RESET',
    });
  });

  test('a stream that the server leaves open after the answer is closed', async () => {
    const clock = new ManualClock();
    let closed = false;
    const port = await http((req, res) => {
      req.resume();
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n');
      res.once('close', () => {
        closed = true;
      });
    });
    const { request } = await openLink(
      { kind: 'http', url: `http://127.0.0.1:${port}`, headers: {} },
      { clock },
    );
    await request('x');
    await clock.advance(999);
    expect(closed).toBe(false);
    await clock.advance(1);
    await until(() => closed);
  });

  test('50 links opened and closed leave no connection and no session', async () => {
    const upstream = await start();
    for (let round = 0; round < 50; round += 1) {
      const { link, initialize, call } = await openLink({
        kind: 'http',
        url: upstream.url,
        headers: {},
      });
      await initialize();
      await call('ok');
      await link.close();
    }
    expect(upstream.record.initializes).toBe(50);
    expect(upstream.sessions.size).toBe(0);
    await until(() => upstream.open === 0);
  });

  test('answers to what the upstream asks are posted', async () => {
    const { upstream, ask, messages, link } = await connect();
    const id = ask('tools/call', { name: 'elicit', arguments: {} });
    const asked = () => messages.find(({ message }) => message.method === 'elicitation/create');
    await until(() => asked() !== undefined);
    expect(asked()?.related).toBe(id);
    const answer = { jsonrpc: '2.0', id: asked()?.message.id, result: { action: 'decline' } };
    await link.send(answer as never);
    await until(() => messages.some(({ message }) => message.id === id && 'result' in message));
    expect(textOf(messages.at(-1)?.message as Json)).toContain('decline');
    expect(upstream.requests.filter(({ method }) => method === 'POST')).toHaveLength(4);
  });
});
