import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configFile, held, type RunningCommand, startCommand } from './fixtures/command.ts';
import { closedPort, OtlpReceiver } from './fixtures/otlp-receiver.ts';
import { answer, hang, json } from './fixtures/upstream.ts';
import { verifies } from './fixtures/verifies.ts';
import { until } from './mcp/support/wait.ts';
import { pages, report, upstreamForTest } from './tools/support.ts';

interface Result {
  readonly isError?: boolean;
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly _meta?: Readonly<Record<string, { readonly code?: string; readonly message?: string }>>;
}
const failureOf = (result: Result | undefined) => result?._meta?.['mcp-resilience/failure'];

/** A client of a command that serves HTTP, and the address of its door. */
const connect = async (command: RunningCommand) => {
  const [, url = ''] = await command.said(/serves MCP at (\S+)\n/);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as never);
  onTestFinished(() => client.close());
  const weather = (city: string) =>
    client.callTool({ name: 'get_weather', arguments: { city } }) as Promise<Result>;
  return { url, client, weather };
};

/** Resolves once the door says that it takes nothing new. */
const draining = async (url: string): Promise<void> => {
  const ready = new URL('/readyz', url);
  while ((await fetch(ready)).status !== 503);
};

const HTTP = ['--http', '--port', '0'];

describe('over HTTP', () => {
  verifies('cli.http-banner', async () => {
    const collector = await OtlpReceiver.start();
    onTestFinished(() => collector.stop());
    const { host } = new URL(collector.url);
    const command = startCommand(HTTP, {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://someone:secret@${host}`,
      OTEL_LOG_LEVEL: 'all',
    });
    const { url, client } = await connect(command);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect((await client.listTools()).tools).toHaveLength(3);
    await command.said(new RegExp(`claude mcp add --transport http mcp-resilience ${url}\n`));
    await command.said(new RegExp(`telemetry goes to http://${host} \\(http/json\\)\n`));
    command.child.kill('SIGTERM');
    const { code, stdout, stderr } = await command.ended;
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).not.toContain('warning');
    // Nor anywhere in the diagnostics of OpenTelemetry.
    expect(stderr).not.toContain('secret');
    // What had not been sent yet was sent at the end.
    expect(collector.spans().map(({ name }) => name)).toContain('tools/list');
  });

  test('an address that others can reach is warned of, and the client line stays callable', async () => {
    const command = startCommand([...HTTP, '--host', '0.0.0.0']);
    await command.said(/serves MCP at http:\/\/0\.0\.0\.0:(\d+)\/mcp\n/);
    await command.said(
      /warning: 0\.0\.0\.0 can be reached from other machines.*http\.allowedHosts/,
    );
    await command.said(/mcp-resilience http:\/\/127\.0\.0\.1:\d+\/mcp\n/);
  });

  test('settings of the door out of the file are taken', async () => {
    const config = configFile({ http: { path: '/elsewhere', maxBodyBytes: 1_000 } });
    const command = startCommand([...HTTP, '--config', config]);
    const { url } = await connect(command);
    expect(new URL(url).pathname).toBe('/elsewhere');
    const tooLong = await fetch(url, { method: 'POST', body: 'x'.repeat(1_001) });
    await tooLong.body?.cancel();
    expect(tooLong.ok).toBe(false);
  });

  verifies('cli.graceful-end', async () => {
    const upstream = await upstreamForTest();
    const overHttp = held();
    upstream.on('/Oslo', overHttp.behaviour);
    const http = startCommand(HTTP, { WEATHER_API_URL: upstream.url });
    const { url, weather } = await connect(http);
    const running = weather('Oslo');
    await overHttp.arrived;
    http.child.kill('SIGTERM');
    await draining(url);
    overHttp.release(json(report()));
    expect((await running).structuredContent).toMatchObject({ source: 'wttr.in' });
    expect(await http.ended).toMatchObject({ code: 0, stdout: '' });

    const overStdio = held();
    upstream.on('/Bergen', overStdio.behaviour);
    const stdio = startCommand(['--stdio'], { WEATHER_API_URL: upstream.url });
    const call = stdio.call('get_weather', { city: 'Bergen' });
    await overStdio.arrived;
    stdio.child.kill('SIGTERM');
    await stdio.said(/^ending: running calls may finish/m);
    overStdio.release(json(report()));
    expect((await call).result?.structuredContent).toMatchObject({ source: 'wttr.in' });
    expect((await stdio.ended).code).toBe(0);
  });

  verifies('cli.second-signal', async () => {
    for (const [signal, number] of [
      ['SIGINT', 2],
      ['SIGTERM', 15],
    ] as const) {
      const upstream = await upstreamForTest();
      const never = held();
      upstream.on('/Oslo', never.behaviour);
      const command = startCommand(HTTP, { WEATHER_API_URL: upstream.url });
      const { url, weather } = await connect(command);
      const running = weather('Oslo').catch(() => 'lost');
      await never.arrived;
      command.child.kill('SIGTERM');
      await draining(url);
      command.child.kill(signal);
      expect((await command.ended).code).toBe(128 + number);
      expect(await running).toBe('lost');
    }
  });
});

describe('over stdio', () => {
  verifies('cli.stdin-end', async () => {
    const blackHole = await OtlpReceiver.start('black hole');
    onTestFinished(() => blackHole.stop());
    const collectors = [undefined, await closedPort(), blackHole.url];
    for (const endpoint of collectors) {
      const upstream = await upstreamForTest();
      const slow = held();
      upstream.on('/Oslo', slow.behaviour);
      const command = startCommand([], {
        WEATHER_API_URL: upstream.url,
        ...(endpoint !== undefined && { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }),
      });
      const call = command.call('get_weather', { city: 'Oslo' });
      await slow.arrived;
      command.child.stdin.end();
      slow.release(json(report()));
      expect((await call).result?.structuredContent).toMatchObject({ source: 'wttr.in' });
      const { code, stdout } = await command.ended;
      expect([endpoint, code, stdout.split('\n')]).toEqual([endpoint, 0, [expect.any(String), '']]);
    }
    expect(blackHole.requests.length).toBeGreaterThan(0);
  });

  test('SIGTERM after the end of the input aborts what still runs', async () => {
    const upstream = await upstreamForTest();
    const never = held();
    upstream.on('/Nowhere', never.behaviour);
    // Whoever waited for the call to end by itself would get this failure as an answer.
    const config = configFile({ tools: { get_weather: { timeout: 4_000, retry: false } } });
    const command = startCommand(['--config', config], { WEATHER_API_URL: upstream.url });
    command.call('get_weather', { city: 'Nowhere' }).catch(() => {});
    await never.arrived;
    command.child.stdin.end();
    await once(command.child.stdin, 'finish');
    command.child.kill('SIGTERM');
    expect(await command.ended).toMatchObject({ code: 0, stdout: '' });
    await until(() => upstream.requests[0]?.aborted === true);
  });

  verifies('P11b', async () => {
    const upstream = await upstreamForTest();
    upstream.on('*', answer(503));
    const levels = ['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all'];
    const config = configFile({ tools: { get_weather: { retry: { baseDelay: 1 } } } });
    const dead = await closedPort();
    const session = async (OTEL_LOG_LEVEL: string): Promise<void> => {
      const command = startCommand(['--config', config], {
        WEATHER_API_URL: upstream.url,
        OTEL_LOG_LEVEL,
        OTEL_TRACES_EXPORTER: 'console,otlp',
        OTEL_METRICS_EXPORTER: 'console,otlp',
        OTEL_LOGS_EXPORTER: 'console,otlp',
        OTEL_EXPORTER_OTLP_ENDPOINT: dead,
        NODE_DEBUG: 'http',
      });
      command.child.stdin.write('no JSON\n');
      await command.request('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      });
      await command.request('tools/list');
      await command.call('get_weather', { city: 'Nowhere' });
      await command.call('health_check', {});
      command.child.stdin.end();
      const { code, stdout, stderr } = await command.ended;
      expect([OTEL_LOG_LEVEL, code]).toEqual([OTEL_LOG_LEVEL, 0]);
      const lines = stdout.split('\n');
      expect(lines.pop()).toBe('');
      const messages = lines.map((line) => JSON.parse(line));
      expect(messages.map(({ jsonrpc }) => jsonrpc)).toEqual(['2.0', '2.0', '2.0', '2.0', '2.0']);
      // The exporters were at work, only elsewhere.
      for (const noise of [
        'tools/call get_weather',
        'tool.duration',
        'resilience.retry.scheduled',
      ]) {
        expect(stderr).toContain(noise);
      }
    };
    await Promise.all(levels.map(session));
  });
});

describe('timeouts that are configured', () => {
  /** The two tools before upstreams that are slower than one timeout and faster than the other. */
  const slowUpstreams = async () => {
    const weather = await upstreamForTest();
    const wiki = await upstreamForTest();
    weather.on('*', hang());
    // Answers after 300 ms: of the two timeouts, one is far below and the other far above.
    wiki.on('*', (request, response) => {
      setTimeout(() => json(pages({ title: 'A' }))(request, response), 300);
    });
    return { weather, env: { WEATHER_API_URL: weather.url, SEARCH_API_URL: wiki.url } };
  };

  verifies('T04', async () => {
    const { env, weather } = await slowUpstreams();
    const config = configFile({ tools: { get_weather: { timeout: 100, retry: false } } });
    const command = startCommand(['--config', config], env);
    await command.said(
      /get_weather calls weather-api: attempt timeout 100 ms, deadline 45 s, retries 0\n/,
    );
    await command.said(/search calls search-api: attempt timeout 10 s, deadline 45 s, retries 2\n/);
    const { result } = await command.call('get_weather', { city: 'Nowhere' });
    expect(failureOf(result)).toMatchObject({ code: 'TIMEOUT' });
    expect(failureOf(result)?.message).toContain('100 ms');
    expect(weather.count()).toBe(1);
  });

  verifies('T05', async () => {
    const { env } = await slowUpstreams();
    const config = configFile({
      tools: { get_weather: { timeout: 100, retry: false }, search: { timeout: 40_000 } },
    });
    const command = startCommand(['--config', config], env);
    const [weather, search] = await Promise.all([
      command.call('get_weather', { city: 'Nowhere' }),
      command.call('search', { query: 'a' }),
    ]);
    expect(failureOf(weather.result)).toMatchObject({ code: 'TIMEOUT' });
    expect(search.result).not.toHaveProperty('isError', true);
    expect(search.result?.structuredContent).toMatchObject({ results: [{ title: 'A' }] });
  });
});
