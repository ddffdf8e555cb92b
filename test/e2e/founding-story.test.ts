import { describe, expect } from 'vitest';
import type { HealthReport } from '../../src/tools/health-schema.ts';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { startServer } from '../fixtures/server.ts';
import { answer, hang, json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { pages, report, upstreamForTest } from '../tools/support.ts';

interface Result {
  isError?: boolean;
  content: { text: string }[];
  structuredContent?: Record<string, unknown>;
  _meta?: { 'mcp-resilience/failure'?: { code: string; retryAfter?: number } };
}

const config = {
  http: { rateLimit: false },
  tools: {
    get_weather: {
      timeout: 500,
      retry: { maxRetries: 2, baseDelay: 20 },
      breaker: { threshold: 3, openDuration: 2_000 },
      rateLimit: { limit: 1_000 },
    },
  },
};

describe('the founding story, with a real client, server process and upstream', () => {
  verifies('e2e.founding-story', async () => {
    const upstream = await upstreamForTest();
    const wiki = await upstreamForTest();
    wiki.on('/w/api.php', json(pages({ title: 'Circuit breaker' })));
    const collector = await OtlpReceiver.start();
    const server = await startServer(
      {
        WEATHER_API_URL: upstream.url,
        SEARCH_API_URL: wiki.url,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '50',
      },
      config,
    );
    const client = await server.connect();
    const call = (name: string, args: Record<string, unknown> = {}) =>
      client.callTool({ name, arguments: args }) as unknown as Promise<Result>;
    const weather = (city: string) => call('get_weather', { city, use_cache: false });
    const failureOf = (result: Result) => result._meta?.['mcp-resilience/failure'];
    const health = async () =>
      (await call('health_check')).structuredContent as unknown as HealthReport;
    const breaker = async () =>
      (await health()).dependencies.find(({ name }) => name === 'weather-api')?.breaker;
    const searchWorks = async () => {
      const result = await call('search', { query: 'breaker', use_cache: false });
      expect(result.isError).not.toBe(true);
    };

    // 503 twice, then 200: three requests, one span, no error.
    upstream.on('/Utopia', answer(503), answer(503), json(report()));
    expect((await weather('Utopia')).structuredContent).toMatchObject({ temperature_c: 18 });
    expect(upstream.count('/Utopia')).toBe(3);
    await collector.waitFor(
      () => collector.spans().some((span) => span.name === 'tools/call get_weather'),
      'the span of the call',
    );
    const served = collector.spans().filter((span) => span.name === 'tools/call get_weather');
    expect(served.map((span) => [span.kind, span.attributes['error.type']])).toEqual([
      [2, undefined],
    ]);
    await searchWorks();

    // 429 with Retry-After: 1 waits at least that long.
    const arrivals: number[] = [];
    const arrive = () => arrivals.push(performance.now());
    upstream.on(
      '/Shangri-La',
      (request, response) => {
        arrive();
        answer(429, 'slow down', { 'retry-after': '1' })(request, response);
      },
      (request, response) => {
        arrive();
        json(report())(request, response);
      },
    );
    expect((await weather('Shangri-La')).isError).not.toBe(true);
    expect((arrivals[1] ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThanOrEqual(1_000);

    // An upstream that hangs: three calls, each with all its attempts timed out, open the breaker.
    upstream.on('/Atlantis', hang());
    for (let i = 0; i < 3; i++) {
      const result = await weather('Atlantis');
      expect([result.isError, failureOf(result)?.code]).toEqual([true, 'TIMEOUT']);
      await searchWorks();
    }
    const requests = upstream.count();
    const refused = await weather('Atlantis');
    expect(refused.isError).toBe(true);
    expect(failureOf(refused)).toMatchObject({ code: 'CIRCUIT_OPEN' });
    const wait = failureOf(refused)?.retryAfter ?? 0;
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(2);
    expect(refused.content[0]?.text).toMatch(/\[CIRCUIT_OPEN\][\s\S]*second/);
    expect(upstream.count()).toBe(requests);
    expect(await breaker()).toMatchObject({ state: 'open', failureCount: 3 });
    expect((await health()).status).toBe('degraded');
    await searchWorks();

    // After the open time one probe closes it.
    while ((await breaker())?.state === 'open') await new Promise((next) => setTimeout(next, 50));
    expect((await breaker())?.state).toBe('half-open');
    upstream.on('/Utopia', json(report()));
    const before = upstream.count();
    expect((await weather('Utopia')).isError).not.toBe(true);
    expect(upstream.count()).toBe(before + 1);
    expect((await breaker())?.state).toBe('closed');
    expect((await health()).status).toBe('ok');
    await searchWorks();

    expect(await server.stop()).toBe(0);
    expect(server.stdout()).toBe('');
    await collector.stop();
  });
});
