import { readdirSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/gateway/types.ts';
import { runCommand, startCommand } from '../fixtures/command.ts';
import { OtlpReceiver, type ReceivedSpan } from '../fixtures/otlp-receiver.ts';
import { verifies } from '../fixtures/verifies.ts';
import { connectCommand, serveCommand, writtenConfig } from './support/command.ts';
import { eventually, isAlive, openGateway, toolNames } from './support/gateway.ts';
import { rawClient } from './support/raw-client.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

const NOWHERE = { command: 'no-such-program-anywhere' };

/** Children of a process that live. Read from the system, not from what we say of ourselves. */
const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return Number(parent) === pid && state !== 'Z' ? [Number(name)] : [];
      } catch {
        return [];
      }
    });

const socketsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

describe('the gateway command', () => {
  verifies('gateway.command', async () => {
    const { file } = writtenConfig({
      alpha: stdioUpstream(),
      beta: stdioUpstream(),
      off: { command: 'x', disabled: true },
    });
    const { client, request, call, stderr } = await connectCommand(['gateway', '--config', file]);
    expect(client.getServerVersion()).toMatchObject({ name: 'mcp-resilience' });
    const names = await toolNames(request);
    expect(names).toContain('alpha__ok');
    expect(names.at(-1)).toBe('health_check');
    const health = await call('health_check');
    expect(health.structuredContent).toMatchObject({
      status: 'ok',
      upstreams: [
        { name: 'alpha', state: 'ready' },
        { name: 'beta', state: 'ready' },
      ],
    });
    expect(stderr()).toMatch(/serves alpha, beta on stdio/);
    expect(stderr()).toMatch(/^alpha \(stdio\): .*deadline 300 s/m);
    expect(stderr()).toMatch(/off is disabled/);
    expect(stderr()).toMatch(/warning: the tool "ok" of alpha is shown as alpha__ok/);
  });

  verifies('gateway.ready', async () => {
    const upstream = await startHttpUpstream();
    onTestFinished(() => upstream.close());
    await upstream.stop();
    const { file } = writtenConfig({
      late: { url: upstream.url, resilience: { restart: { initialDelay: 50, maxDelay: 100 } } },
    });
    const { origin, said } = await serveCommand(['gateway', '--config', file]);
    const status = async () => (await fetch(`${origin}/readyz`)).status;
    await said(/warning: late: /);
    expect(await status()).toBe(503);
    expect((await fetch(`${origin}/healthz`)).status).toBe(200);
    // Nobody calls, and yet it is noticed that the server is back.
    await upstream.start();
    await eventually(async () => (await status()) === 200);
    await eventually(() => upstream.sessions.size === 0);
  });

  verifies('gateway.strict', async () => {
    const { file } = writtenConfig({ alpha: stdioUpstream(), gone: NOWHERE });
    for (const door of [[], ['--http', '--port', '0']]) {
      const { code, stdout, stderr } = await runCommand([
        'gateway',
        '--config',
        file,
        '--strict',
        ...door,
      ]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(
        /not every server could be reached.*\n.*gone: .*no-such-program-anywhere/,
      );
    }
  });

  verifies('gateway.usage', async () => {
    const refused = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(['gateway', ...args]);
      expect([code, stdout]).toEqual([2, '']);
      return stderr;
    };
    expect(await refused()).toMatch(/--config FILE is missing/);
    expect(await refused('--config', 'no-such-file')).toMatch(/there is no such file/);
    const { file } = writtenConfig({ alpha: { args: [] } });
    expect(await refused('--config', file)).toMatch(/mcpServers.alpha must have a command/);
    expect(await refused('--config', file, '--prefix', 'odd')).toMatch(/auto, always, never/);
    expect(await refused('--config', file, '--host', '::1')).toMatch(/give --http too/);
  });

  verifies('gateway.ends', async () => {
    const { file } = writtenConfig({ alpha: stdioUpstream() });
    const served = await serveCommand(['gateway', '--config', file]);
    const { call } = await served.connect();
    const { pid } = (await call('whoami')).structuredContent;
    const slow = call('slow', { ms: 500 });
    await call('ok');
    served.child.kill('SIGTERM');
    // What runs may finish; then nothing is left.
    expect((await slow).content).toEqual([{ type: 'text', text: 'slow' }]);
    expect((await served.ended).code).toBe(0);
    expect(isAlive(pid)).toBe(false);
  });

  test('a port that is taken ends it, and the servers that it had started', async () => {
    const { file } = writtenConfig({ alpha: stdioUpstream() });
    const first = await serveCommand(['gateway', '--config', file]);
    const port = new URL(first.url).port;
    const second = startCommand([
      'gateway',
      '--strict',
      '--config',
      file,
      '--http',
      '--port',
      port,
    ]);
    const { code, stderr } = await second.ended;
    expect([code, stderr]).toEqual([1, expect.stringContaining(`port ${port}`)]);
  });
});

describe('sessions', () => {
  verifies(
    'P02',
    async () => {
      const { file } = writtenConfig({ alpha: stdioUpstream(), beta: stdioUpstream() });
      const served = await serveCommand(['gateway', '--config', file]);
      const pid = served.child.pid ?? 0;
      const round = async (): Promise<void> => {
        const { client, transport, call } = await served.connect();
        await call('alpha__ok');
        await transport.terminateSession();
        await client.close();
      };
      await round();
      await eventually(() => childrenOf(pid).length === 0);
      const descriptors = socketsOf(pid);
      for (let n = 0; n < 50; n += 10) await Promise.all(Array.from({ length: 10 }, round));
      await eventually(() => childrenOf(pid).length === 0);
      // Keep-alive connections of the clients may linger; what they stood for does not.
      await eventually(() => socketsOf(pid) <= descriptors + 2);
    },
    120_000,
  );

  verifies('P04', async () => {
    const { file } = writtenConfig(
      { alpha: stdioUpstream(), beta: stdioUpstream() },
      { http: { sessions: false, rateLimit: false } },
    );
    const served = await serveCommand(['gateway', '--config', file]);
    const pid = served.child.pid ?? 0;
    const post = async (id: number, method: string, params: object = {}) => {
      const response = await fetch(served.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      });
      return (await response.json()) as Json;
    };
    const call = (id: number) => post(id, 'tools/call', { name: 'beta__whoami', arguments: {} });
    const pidOf = ({ result }: Json) => ((result as Json).structuredContent as Json).pid;
    const first = pidOf(await call(0));
    const children = childrenOf(pid).sort();
    expect(children).toHaveLength(2);
    for (let n = 1; n <= 100; n += 20) {
      const answers = await Promise.all(Array.from({ length: 20 }, (_, k) => call(n + k)));
      expect(new Set(answers.map(pidOf))).toEqual(new Set([first]));
    }
    expect((await post(1, 'tools/list')).result).toMatchObject({ tools: expect.any(Array) });
    expect(childrenOf(pid).sort()).toEqual(children);
  });

  verifies('P05', async () => {
    const gateway = await openGateway(
      { alpha: stdioUpstream(), beta: stdioUpstream() },
      { http: { sessionIdleTimeout: 400 } },
    );
    const { call, transport } = await gateway.connect();
    const { pid } = (await call('alpha__whoami')).structuredContent;
    const { stats = () => ({ sessions: -1, streams: -1 }) } = gateway.served;
    await eventually(() => stats().streams === 1);
    // Another client opens its stream and is gone without a word: no FIN that anybody answers to.
    const lost = await rawClient(gateway.url);
    const socket = new Socket();
    onTestFinished(() => void socket.destroy());
    socket.connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.write(
      `GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\nmcp-session-id: ${lost.transport.sessionId}\r\n\r\n`,
    );
    socket.pause();
    await eventually(() => stats().sessions === 0);
    await eventually(() => !isAlive(pid));
    expect(stats().streams).toBe(0);
    await eventually(() =>
      gateway.served.upstreams.health().every(({ sessions }) => sessions === 0),
    );
    await transport.close();
  });

  verifies('P07', async () => {
    const gateway = await openGateway({ alpha: stdioUpstream(), beta: stdioUpstream() });
    const a = await gateway.connect();
    const b = await gateway.connect();
    const { pid } = (await b.call('alpha__whoami')).structuredContent;
    const running = b.call('alpha__slow', { ms: 300 });
    await a.transport.terminateSession();
    expect((await running).content).toEqual([{ type: 'text', text: 'slow' }]);
    expect((await b.call('alpha__whoami')).structuredContent.pid).toBe(pid);
    expect(gateway.served.stats?.().sessions).toBe(1);
  });

  test('regression: one busy client on fetch gets every answer, however many calls it makes at a time', async () => {
    const gateway = await openGateway({ alpha: stdioUpstream() });
    const { call } = await gateway.connect();
    const answers = await Promise.all(Array.from({ length: 150 }, () => call('slow', { ms: 200 })));
    expect(answers.filter(({ isError }) => isError)).toEqual([]);
  });

  verifies('gateway.shared', async () => {
    const upstream = await startHttpUpstream();
    onTestFinished(() => upstream.close());
    const gateway = await openGateway({
      alpha: { ...stdioUpstream(), resilience: { shared: true } },
      http: { url: upstream.url, resilience: { shared: true } },
    });
    const clients = await Promise.all(
      Array.from({ length: 5 }, () =>
        rawClient(gateway.url, { capabilities: { elicitation: {} } }),
      ),
    );
    for (const client of clients)
      expect((await client.request(1, 'tools/list')).result).toBeTruthy();
    const sessions = await Promise.all(
      clients.map(async ({ call }) => {
        const { result } = await call(2, 'http__whoami');
        return ((result as Json).structuredContent as Json).session;
      }),
    );
    expect(new Set(sessions).size).toBe(1);
    expect(upstream.record.initializes).toBe(1);
    const lists = upstream.record.received.filter(({ message }) => message.method === 'tools/list');
    expect(lists).toHaveLength(1);
    // A change is told to all of them, and asked for once.
    await clients[0]?.call(3, 'http__changed');
    for (const client of clients) {
      await eventually(() =>
        client.received.some(({ method }) => method === 'notifications/tools/list_changed'),
      );
    }
    await Promise.all(clients.map((client) => client.request(4, 'tools/list')));
    const after = upstream.record.received.filter(({ message }) => message.method === 'tools/list');
    expect(after.length).toBeLessThanOrEqual(3);
    // Progress goes to the one that calls.
    await clients[1]?.call(5, 'http__progress', { n: 2 }, { progressToken: 'x' });
    const progress = clients.map(
      ({ received }) => received.filter(({ method }) => method === 'notifications/progress').length,
    );
    expect(progress).toEqual([0, 2, 0, 0, 0]);
  });
});

describe('telemetry', () => {
  verifies('O04', async () => {
    const collector = await OtlpReceiver.start();
    onTestFinished(() => collector.stop());
    const upstream = await startHttpUpstream();
    onTestFinished(() => upstream.close());
    const { file } = writtenConfig({ stdio: stdioUpstream(), http: { url: upstream.url } });
    const served = await serveCommand(['gateway', '--config', file], {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    });
    const { request } = await served.connect();
    // Only names that were listed are recorded.
    await request('tools/list');
    const parent = 'b7ad6b7169203331';
    const calls = [
      ['stdio', '0af7651916cd43dd8448eb211c80319c'],
      ['http', '1af7651916cd43dd8448eb211c80319c'],
    ] as const;
    const echoed: Record<string, string> = {};
    for (const [name, trace] of calls) {
      const { structuredContent } = await request('tools/call', {
        name: `${name}__echo-meta`,
        arguments: {},
        _meta: {
          traceparent: `00-${trace}-${parent}-01`,
          baggage: 'secret=1',
          'vendor.example/kept': true,
        },
      });
      const { _meta } = structuredContent.params;
      expect(_meta).toMatchObject({ 'vendor.example/kept': true });
      expect(_meta).not.toHaveProperty('baggage');
      echoed[name] = _meta.traceparent;
    }
    served.child.kill('SIGTERM');
    await served.ended;
    for (const [name, trace] of calls) {
      const spans = collector.spans().filter(({ traceId }) => traceId === trace);
      const find = (kind: number): ReceivedSpan | undefined =>
        spans.find((span) => span.kind === kind && span.name.startsWith('tools/call'));
      const server = find(2);
      const client = find(3);
      expect(server).toMatchObject({
        name: `tools/call ${name}__echo-meta`,
        parentSpanId: parent,
        attributes: { 'mcp.upstream.name': name },
      });
      expect(client).toMatchObject({
        name: 'tools/call echo-meta',
        parentSpanId: server?.spanId,
        attributes: { 'mcp.upstream.name': name },
      });
      // What the upstream gets is a child of ours.
      expect(echoed[name]).toBe(`00-${trace}-${client?.spanId}-01`);
    }
  });
});
