import { afterAll, expect, test } from 'vitest';
import { PipelineRegistry } from '../../src/resilience/registry.ts';
import { instruments } from '../../src/telemetry/instruments.ts';
import { ATTR_GEN_AI_TOOL_NAME } from '../../src/telemetry/semconv.ts';
import { ATTR } from '../../src/telemetry/signals.ts';
import { EMPTY_SNAPSHOT } from '../../src/telemetry/snapshot.ts';
import { startTelemetry } from '../../src/telemetry/start.ts';
import { healthReport } from '../../src/tools/health.ts';
import { healthSchema } from '../../src/tools/health-schema.ts';
import { VERSION } from '../../src/version.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { answer, json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { openTools, pages, report, textOf } from './support.ts';

const telemetry = startTelemetry({ env: {} });
afterAll(() => telemetry.shutdown());

const once = { policies: { search: { retry: false }, get_weather: { retry: false } } } as const;

const record = (tool: string, seconds: number, outcome = 'success') =>
  instruments().toolDuration.record(seconds, {
    [ATTR_GEN_AI_TOOL_NAME]: tool,
    [ATTR.toolOutcome]: outcome,
  });

verifies('health.reads-histogram', async () => {
  const { call } = await openTools({
    snapshot: () => telemetry.snapshot(),
    destination: telemetry.destination,
  });
  const before = await call('health_check');
  expect(before.structuredContent).toMatchObject({
    tool_duration: { available: true, note: 'No tool call has ended yet.' },
  });
  for (let n = 1; n <= 100; n += 1) record('get_weather', n / 1_000);
  record('search', 2.5, 'error');
  const { structuredContent } = await call('health_check');
  const taken = await telemetry.snapshot();
  const { overall, by_tool: tools } = healthSchema.parse(structuredContent).tool_duration;
  expect(overall).toMatchObject({ count: 101 });
  expect(tools).toMatchObject({ get_weather: { count: 100 }, search: { count: 1 } });
  const exact = taken.toolDuration.tools.get('get_weather');
  const { avg_ms = NaN, p50_ms = NaN, p95_ms = NaN, p99_ms = NaN } = tools?.get_weather ?? {};
  expect(avg_ms).toBeCloseTo(50.5, 2);
  expect(p50_ms).toBeCloseTo(exact?.p50 ?? NaN, 2);
  expect(p95_ms).toBeCloseTo(exact?.p95 ?? NaN, 2);
  expect(p99_ms).toBeCloseTo(exact?.p99 ?? NaN, 2);
  // Within the bucket that holds the true one: 30 to 50 ms, 75 to 100 ms.
  expect(p50_ms).toBeGreaterThanOrEqual(30);
  expect(p50_ms).toBeLessThanOrEqual(50);
  expect(p99_ms).toBeGreaterThanOrEqual(75);
  expect(p99_ms).toBeLessThanOrEqual(100);
  expect(tools?.search?.p99_ms).toBeCloseTo(2_500, 2);
});

verifies('health.reads-only', async () => {
  const clock = new ManualClock();
  const { call, weather, wiki, registry } = await openTools({ ...once, clock });
  weather.on('*', json(report()), answer(503));
  wiki.on('*', json(pages({ title: 'A' })));
  await call('get_weather', { city: 'Oslo' });
  await call('get_weather', { city: 'Oslo' });
  await call('get_weather', { city: 'Bergen' });
  await call('search', { query: 'x' });
  await clock.advance(2_500);
  const figures = () => [
    weather.count(),
    wiki.count(),
    ...[...registry].map((pipeline) => ({
      breaker: pipeline.breaker?.toJSON(),
      limits: pipeline.rateLimiter?.stats(),
      cache: pipeline.cache?.stats(),
      budget: pipeline.retry?.budget?.stats(clock.now()),
    })),
  ];
  const timers = clock.pendingTimers;
  const before = figures();
  const result = await call('health_check');
  for (let n = 0; n < 20; n += 1) await call('health_check');
  expect(figures()).toEqual(before);
  expect(clock.pendingTimers).toBe(timers);

  expect(result.structuredContent).toEqual({
    status: 'ok',
    reasons: [],
    dependencies: [
      {
        name: 'weather-api',
        breaker: { name: 'weather-api', state: 'closed', failureCount: 1, successCount: 0 },
        rate_limiter: { accepted: 2, rejected: 0, available: 8 },
        cache: { entries: 1, hits: 1, misses: 2, stale: 0 },
      },
      {
        name: 'search-api',
        breaker: { name: 'search-api', state: 'closed', failureCount: 0, successCount: 1 },
        rate_limiter: { accepted: 1, rejected: 0, available: 30 },
        bulkhead: {
          active: 0,
          queued: 0,
          limit: 4,
          oldest_wait_seconds: 0,
          accepted: 1,
          rejected: 0,
        },
        cache: { entries: 1, hits: 0, misses: 1, stale: 0 },
      },
    ],
    tool_duration: expect.objectContaining({ available: false }),
    uptime_seconds: 2.5,
    version: VERSION,
    telemetry: { destination: expect.any(String) },
  });
  expect(textOf(result)).toMatch(/^Status: ok\. Version .*up 2\.5 s\./);
});

verifies('health.degraded', async () => {
  const clock = new ManualClock();
  const { call, weather, registry } = await openTools({ ...once, clock });
  weather.on('*', answer(503));
  for (let n = 0; n < 3; n += 1) await call('get_weather', { city: `Nowhere ${n}` });
  await clock.advance(20_000);
  const open = await call('health_check');
  expect(open.structuredContent).toMatchObject({
    status: 'degraded',
    reasons: ['circuit breaker of weather-api is open for another 40 s'],
    dependencies: [{ breaker: { state: 'open', failureCount: 3, retry_after_seconds: 40 } }, {}],
  });
  expect(textOf(open)).toMatch(/^Status: degraded \(circuit breaker of weather-api is open/);
  expect(open.isError).toBeUndefined();
  await clock.advance(40_000);
  expect((await call('health_check')).structuredContent).toMatchObject({
    status: 'degraded',
    reasons: ['circuit breaker of weather-api is half-open'],
  });
  registry.get('weather-api')?.breaker?.reset();
  registry.get('search-api')?.breaker?.isolate();
  expect((await call('health_check')).structuredContent).toMatchObject({
    reasons: ['circuit breaker of search-api is isolated'],
  });
});

verifies('health.no-metrics', async () => {
  const sources = [undefined, async () => EMPTY_SNAPSHOT, () => Promise.reject(new Error('no'))];
  for (const snapshot of sources) {
    const { call } = await openTools({ ...(snapshot && { snapshot }), destination: 'nowhere' });
    const result = await call('health_check');
    expect(result.isError).toBeUndefined();
    expect(result.structuredContent).toMatchObject({
      status: 'ok',
      telemetry: { destination: 'nowhere' },
    });
    const { tool_duration } = result.structuredContent as { tool_duration: object };
    expect(tool_duration).toEqual({ available: false, note: expect.stringContaining('metrics') });
    expect(textOf(result)).not.toMatch(/avg 0|0 calls/);
  }
});

test('pipelines of others are reported too, and the share of the caller', async () => {
  const clock = new ManualClock();
  const registry = new PipelineRegistry({ clock });
  registry.create('bare', {});
  const limited = registry.create('limited', { rateLimit: { limit: 5 }, retry: {} });
  for (let n = 0; n < 2; n += 1) await limited.execute(() => 1, { rateLimitKey: 'alice' });
  const sources = { pipelines: registry, clock, startedAt: clock.now(), version: '1' };
  const seenBy = async (principal?: string) =>
    (await healthReport(sources, principal)).dependencies[1]?.rate_limiter?.available;
  expect(await seenBy('alice')).toBe(3);
  expect(await seenBy()).toBe(5);
  expect((await healthReport(sources)).dependencies).toEqual([
    { name: 'bare' },
    {
      name: 'limited',
      rate_limiter: { accepted: 2, rejected: 0, available: 5 },
      retry_budget: { calls: 2, extras: 0, available: 3 },
    },
  ]);
});
