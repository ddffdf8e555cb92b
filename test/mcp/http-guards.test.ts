import { once } from 'node:events';
import { request } from 'node:http';
import { connect as connectSocket } from 'node:net';
import fc from 'fast-check';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { accepts, hostName, limitKey } from '../../src/mcp/transports/http-guards.ts';
import { verifies } from '../fixtures/verifies.ts';
import { initialize, JSON_HEADERS, openDoor, openSession, post, rpc } from './support/door.ts';
import { startTelemetry } from './support/telemetry.ts';
import { until } from './support/wait.ts';

const telemetry = startTelemetry();
afterAll(() => telemetry.shutdown());

/** A POST of `initialize` with headers that `fetch` would not let us set. */
const knock = async (url: string, headers: Record<string, string | string[]>, method = 'POST') => {
  const req = request(url, { method, headers: { ...JSON_HEADERS, ...headers } });
  req.end(method === 'POST' ? JSON.stringify(initialize()) : undefined);
  const [res] = await once(req, 'response');
  let body = '';
  for await (const chunk of res.setEncoding('utf8')) body += chunk;
  return { status: res.statusCode as number, headers: res.headers, body };
};

/** Bytes written to a socket, and everything that comes back until it ends. */
const raw = async (port: number, ...writes: string[]) => {
  const socket = connectSocket(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk;
  });
  socket.on('error', () => {});
  for (const bytes of writes) socket.write(bytes);
  return { socket, answer: () => answer };
};

const statusOf = (answer: string) => Number(answer.split(' ')[1]);
const bodyOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));

describe('names', () => {
  verifies('http.host', async () => {
    const { door } = await openDoor({ allowedHosts: ['mcp.example'] });
    const status = async (host: string) => (await knock(door.url, { host })).status;
    for (const host of [
      'localhost',
      'LOCALHOST:1',
      'localhost.',
      '127.0.0.1:99',
      '127.8.9.1',
      '[::1]',
      '[::1]:80',
      'mcp.example',
      'MCP.example.:8443',
    ]) {
      expect([host, await status(host)]).toEqual([host, 200]);
    }
    for (const host of [
      'evil.example',
      'evil.example.',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'evil-localhost',
      '2130706433',
      '0.0.0.0',
      '[::2]',
      '[::ffff:10.0.0.1]',
      'sub.mcp.example',
      '10.0.0.1:3000',
    ]) {
      expect([host, await status(host)]).toEqual([host, 403]);
    }
    for (const host of [
      'localhost/evil',
      'localhost@evil.example',
      'localhost:port',
      'a b',
      '[::1',
      'localhost,evil.example',
    ]) {
      expect([host, await status(host)]).toEqual([host, 400]);
    }
    for (const lines of ['', 'Host:\r\n', 'Host: localhost\r\nHost: evil.example\r\n']) {
      const { answer } = await raw(
        door.port,
        `POST /mcp HTTP/1.1\r\n${lines}Content-Length: 0\r\n\r\n`,
      );
      await until(() => answer().includes('jsonrpc'));
      expect([lines, statusOf(answer())]).toEqual([lines, 400]);
    }
    const { body } = await knock(door.url, { host: 'evil.example' });
    expect(JSON.parse(body)).toMatchObject({
      id: null,
      error: { code: 403, message: expect.stringContaining('allowedHosts') },
    });
  });

  test('an origin without a name of its own does not let in every page that has none', async () => {
    const extension = 'chrome-extension://abcdefghijklmnop';
    const { door } = await openDoor({ allowedOrigins: [extension, 'mailto:x@y', 'file:///x'] });
    expect((await knock(door.url, { origin: extension })).status).toBe(200);
    for (const origin of ['null', 'chrome-extension://ponmlkjihgfedcba', 'https://evil.example']) {
      expect([origin, (await knock(door.url, { origin })).status]).toEqual([origin, 403]);
    }
  });

  verifies('http.origin', async () => {
    const { door } = await openDoor({ allowedOrigins: ['https://app.example'] });
    const status = async (origin: string) => (await knock(door.url, { origin })).status;
    for (const origin of [
      'http://localhost',
      'https://localhost:6274',
      'http://LOCALHOST:1',
      'http://127.0.0.1:8080',
      'http://[::1]:3000',
      'https://app.example',
      'HTTPS://APP.example',
    ]) {
      expect([origin, await status(origin)]).toEqual([origin, 200]);
    }
    for (const origin of [
      'https://evil.example',
      'http://localhost.evil.example',
      'http://127.0.0.1.evil.example',
      'http://evil.example#localhost',
      'http://localhost@evil.example',
      'http://app.example',
      'https://app.example:8443',
      'https://app.example.evil.example',
      'null',
      '',
      'file://',
      'localhost',
      'https://localhost, https://evil.example',
    ]) {
      expect([origin, await status(origin)]).toEqual([origin, 403]);
    }
    expect(door.stats().sessions).toBe(7);
  });

  verifies('http.cors', async () => {
    const { door } = await openDoor({ allowedOrigins: ['https://app.example'] });
    const preflight = await knock(
      door.url,
      { origin: 'https://app.example', 'access-control-request-method': 'POST' },
      'OPTIONS',
    );
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': 'https://app.example',
      'access-control-allow-methods': 'POST, GET, DELETE',
      'access-control-allow-headers': expect.stringContaining('mcp-session-id'),
      vary: 'origin',
    });
    const allowed = await knock(door.url, { origin: 'https://app.example' });
    expect(allowed.headers).toMatchObject({
      'access-control-allow-origin': 'https://app.example',
      'access-control-expose-headers': expect.stringContaining('mcp-session-id'),
    });
    const local = await knock(door.url, { origin: 'http://localhost:1' });
    expect([local.status, local.headers['access-control-allow-origin']]).toEqual([200, undefined]);
    expect((await knock(door.url, { origin: 'http://localhost:1' }, 'OPTIONS')).status).toBe(405);
    expect(
      (await knock(door.url, { origin: 'https://app.example', host: 'evil.example' }, 'OPTIONS'))
        .status,
    ).toBe(403);
  });
});

describe('form', () => {
  verifies('http.headers', async () => {
    const { door } = await openDoor();
    const session = await openSession(door);
    const status = async (headers: Record<string, string>, body: unknown = rpc(1, 'ping')) =>
      (await post(door, body, { ...session, ...headers })).status;
    expect(await status({ 'content-type': 'text/plain' })).toBe(415);
    expect(await status({ 'content-type': 'text/plain; a=application/json' })).toBe(415);
    expect(await status({ 'content-type': 'Application/JSON; charset=utf-8' })).toBe(200);
    expect(await status({ 'content-encoding': 'gzip' })).toBe(415);
    expect(await status({ accept: 'application/json' })).toBe(406);
    expect(await status({ accept: 'text/event-stream' })).toBe(406);
    expect(await status({ accept: '*/*' })).toBe(200);
    expect(await status({ 'mcp-protocol-version': '2026-07-28' })).toBe(400);
    expect(await status({ 'mcp-protocol-version': '2025-06-18' })).toBe(200);
    expect(await status({ 'mcp-session-id': 'nobody' })).toBe(404);
    const missing = await post(door, rpc(1, 'ping'));
    expect(missing.status).toBe(400);
    expect(await missing.json()).toMatchObject({
      error: { message: expect.stringContaining('Mcp-Session-Id is missing') },
    });
  });

  verifies('http.malformed', async () => {
    const { door } = await openDoor();
    for (const [body, code, id] of [
      ['{"jsonrpc":', -32700, null],
      ['', -32700, null],
      ['7', -32600, null],
      ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, null],
      ['{"jsonrpc":"2.0","id":5,"method":7}', -32600, 5],
      ['{"jsonrpc":"2.0","id":6,"method":"ping","params":"x"}', -32600, 6],
    ] as const) {
      const response = await post(door, body);
      expect(response.status).toBe(400);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(await response.json()).toMatchObject({ id, error: { code } });
    }
    const invalidUtf8 = await fetch(door.url, {
      method: 'POST',
      headers: JSON_HEADERS,
      body: Buffer.from([0x22, 0xff, 0x22]),
    });
    expect(await invalidUtf8.json()).toMatchObject({ error: { code: -32700 } });
    for (const nonsense of [
      'GARBAGE\r\n\r\n',
      `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    ]) {
      const { answer, socket } = await raw(door.port, nonsense);
      await once(socket, 'close');
      expect([400, 431]).toContain(statusOf(answer()));
      expect(bodyOf(answer())).toMatchObject({ jsonrpc: '2.0', error: {} });
    }
  });

  test('host names and media ranges are read as the standards have them', () => {
    expect(hostName('Example.COM.:443')).toBe('example.com');
    expect(hostName('[::1]:80')).toBe('[::1]');
    expect(hostName('a:b')).toBeUndefined();
    expect(accepts(undefined, 'text/event-stream')).toBe(true);
    expect(accepts('text/*;q=0.5, application/json', 'text/event-stream')).toBe(true);
    expect(accepts('text/event-stream;q=0', 'text/event-stream')).toBe(false);
    expect(accepts('text/event-streamer', 'text/event-stream')).toBe(false);
  });
});

describe('limits', () => {
  verifies('http.body-limit', async () => {
    const { door } = await openDoor({ maxBodyBytes: 1_000 });
    const large = await post(door, 'x'.repeat(1_001));
    expect(large.status).toBe(413);
    expect(large.headers.get('content-type')).toBe('application/json');
    expect(await large.json()).toMatchObject({
      id: null,
      error: { code: 413, message: expect.stringContaining('1000 bytes') },
    });
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;

    // Declared: refused before the first byte of it.
    const declared = await raw(door.port, `${head}Content-Length: 1000000000\r\n\r\n`);
    await until(() => declared.answer().includes('jsonrpc'));
    expect(statusOf(declared.answer())).toBe(413);

    // Undeclared: refused when it becomes too long, and not read for ever.
    const endless = await raw(door.port, `${head}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = `400\r\n${'x'.repeat(1_024)}\r\n`;
    let sent = 0;
    while (!endless.socket.destroyed && sent < 1_000) {
      endless.socket.write(chunk);
      sent += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(statusOf(endless.answer())).toBe(413);
    expect(endless.socket.bytesRead).toBeGreaterThan(0);
    expect(sent).toBeLessThan(1_000);
    await until(() => door.stats().connections <= 2);
  });

  verifies('http.rate-limit', async () => {
    const { door, clock } = await openDoor({
      rateLimit: { limit: 10, interval: 1_000, burst: 20 },
      trustProxy: 1,
    });
    const from = (address: string) => post(door, rpc(1, 'ping'), { 'x-forwarded-for': address });
    for (let call = 0; call < 20; call += 1) expect((await from('10.0.0.1')).status).toBe(400);
    const refused = await from('10.0.0.1');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await refused.json()).toMatchObject({
      id: null,
      error: { code: 429, message: expect.stringContaining('wait 1 s') },
    });
    // Only the last entry is the proxy's word; what the client wrote before it does not count.
    expect((await from('10.9.9.9, 10.0.0.1')).status).toBe(429);
    expect((await from('10.0.0.2')).status).toBe(400);
    await clock.advance(100);
    expect((await from('10.0.0.1')).status).toBe(400);
    expect((await from('10.0.0.1')).status).toBe(429);
  });

  test('the port of a proxy is not told as that of the client behind it', async () => {
    const { door } = await openDoor(
      { trustProxy: 1 },
      {
        tools: [
          {
            name: 'where',
            description: 'x',
            inputSchema: z.object({}),
            handler: () => ({ content: [] }),
          },
        ],
      },
    );
    const session = await openSession(door);
    const call = rpc(1, 'tools/call', { name: 'where' });
    await (await post(door, call, { ...session, 'x-forwarded-for': '10.0.0.1' })).text();
    await (await post(door, call, session)).text();
    const spans = telemetry.named('tools/call where').map(({ attributes }) => attributes);
    expect(spans.map((a) => a['client.address'])).toEqual(['10.0.0.1', '127.0.0.1']);
    expect(spans.map((a) => typeof a['client.port'])).toEqual(['undefined', 'number']);
  });

  test('a batch takes a token for each message, and X-Forwarded-For is not believed unasked', async () => {
    const { door } = await openDoor({ rateLimit: { limit: 1, interval: 1_000, burst: 5 } });
    const batch = Array.from({ length: 6 }, (_, id) => rpc(id, 'ping'));
    expect((await post(door, batch, { 'x-forwarded-for': '10.0.0.1' })).status).toBe(429);
    expect((await post(door, rpc(1, 'ping'), { 'x-forwarded-for': '10.0.0.2' })).status).toBe(429);
  });

  test('an injected limiter decides, and hears of refusals', async () => {
    const refused: number[] = [];
    const { door } = await openDoor({
      limiter: {
        tryTake: (key) => (key === '127.0.0.1' ? 2_500 : 0),
        refusal: (wait) => refused.push(wait),
      },
    });
    const response = await post(door, rpc(1, 'ping'));
    expect([response.status, response.headers.get('retry-after'), refused]).toEqual([
      429,
      '3',
      [2_500],
    ]);
  });

  verifies('http.connections', async () => {
    const { door } = await openDoor({ maxConnections: 2 });
    const first = [await raw(door.port), await raw(door.port)];
    await until(() => door.stats().connections === 2);
    const refused = await knock(door.url, { connection: 'close' });
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(JSON.parse(refused.body)).toMatchObject({
      error: { code: 503, message: expect.stringContaining('all 2 connections') },
    });
    const health = new URL('/healthz', door.url).href;
    expect((await knock(health, { connection: 'close' }, 'GET')).status).toBe(200);

    // One that came too early is served once others have gone.
    await until(() => door.stats().connections === 2);
    const patient = await raw(door.port);
    await until(() => door.stats().connections === 3);
    for (const { socket } of first) socket.destroy();
    await until(() => door.stats().connections === 1);
    patient.socket.write('DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => patient.answer().includes('jsonrpc'));
    expect(statusOf(patient.answer())).toBe(400);
  });

  verifies('http.slow-request', async () => {
    const { door, clock } = await openDoor({ readTimeout: 10_000 });
    const head =
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{';
    const body = await raw(door.port, head);
    await until(() => clock.pendingTimers === 1);
    await clock.advance(9_999);
    body.socket.write('"');
    await clock.advance(1);
    await until(() => body.answer().includes('jsonrpc'));
    expect(statusOf(body.answer())).toBe(408);
    expect(clock.pendingTimers).toBe(0);

    // Headers are timed by node:http itself, on the real clock.
    const quick = await openDoor({ readTimeout: 20 });
    const headers = await raw(quick.door.port, 'POST /mcp HTTP/1.1\r\nHost: local');
    await once(headers.socket, 'close');
    expect(statusOf(headers.answer())).toBe(408);
    expect(bodyOf(headers.answer())).toMatchObject({ error: { code: 408 } });
  });

  test('a client that leaves in the middle of its body is forgotten', async () => {
    const { door, clock } = await openDoor();
    const { socket } = await raw(
      door.port,
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    );
    await until(() => clock.pendingTimers === 1);
    socket.destroy();
    await until(() => clock.pendingTimers === 0 && door.stats().connections === 0);
  });

  test('a client that does not read its stream is cut off', async () => {
    const { door, calls } = await openDoor({ maxUnreadBytes: 100_000 });
    const { 'mcp-session-id': id } = await openSession(door);
    const body = JSON.stringify(
      rpc(1, 'tools/call', { name: 'hold', arguments: {}, _meta: { progressToken: 1 } }),
    );
    const { socket } = await raw(
      door.port,
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: ${id}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    await until(() => calls.length === 1);
    for (let step = 1; !calls[0]?.context.signal.aborted; step += 1) {
      calls[0]?.context.progress(step, undefined, 'x'.repeat(50_000));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(door.stats().running).toBe(0);
  });
});

describe('limitKey', () => {
  test('counts IPv4 by address and IPv6 by network', () => {
    const keys = [
      '192.0.2.7',
      '2001:db8:1:2:3:4:5:6',
      '2001:DB8:1:2::1',
      '2001:0db8:0001:0002:ffff::',
      '2001:db8::1',
      '::1',
      '::',
      'fe80::1%eth0',
      '64:ff9b::192.0.2.7',
      'unknown',
    ].map(limitKey);
    expect(keys).toEqual([
      '192.0.2.7',
      '2001:db8:1:2::/64',
      '2001:db8:1:2::/64',
      '2001:db8:1:2::/64',
      '2001:db8:0:0::/64',
      '0:0:0:0::/64',
      '0:0:0:0::/64',
      'fe80:0:0:0::/64',
      '64:ff9b:0:0::/64',
      'unknown',
    ]);
  });

  test('any two addresses share a key exactly when they share their first 64 bits', () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    const address = fc.array(group, { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(address, address, (a, b) => {
        const written = (groups: number[]) => groups.map((each) => each.toString(16)).join(':');
        const together = written([...a.slice(0, 4), ...b.slice(4)]);
        expect(limitKey(together)).toBe(limitKey(written(a)));
        const same = a.slice(0, 4).every((each, index) => each === b[index]);
        expect(limitKey(written(a)) === limitKey(written(b))).toBe(same);
      }),
    );
  });
});
