import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { protectTool } from '../../src/mcp/protect.ts';
import { defineTool } from '../../src/mcp/tool.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { answer, hang, json, oversized, reset, truncatedJson } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { codeOf, openTools, report, textOf } from './support.ts';

const MINUTE = 60_000;
/** One attempt, so that a clock that stands still is waited for by nobody. */
const once = { policies: { get_weather: { retry: false } } } as const;
/** Retries without waiting. */
const quick = { policies: { get_weather: { retry: { baseDelay: 0 } } } };
/** Nothing counts but the answer at hand. */
const patient = {
  policies: { get_weather: { retry: false, breaker: false, rateLimit: false, cache: false } },
} as const;

describe('answers', () => {
  verifies('weather.report', async () => {
    const { call, weather } = await openTools(patient);
    weather.on('/東京', json(report()));
    const result = await call('get_weather', { city: ' 東京 ' });
    expect(result.structuredContent).toEqual({
      city: '東京',
      location: 'Tokyo, Japan',
      temperature_c: 18,
      feels_like_c: 17,
      description: 'Partly cloudy',
      humidity_percent: 62,
      wind_kph: 13,
      observed_at: '2026-04-20T13:28',
      source: 'wttr.in',
    });
    expect(textOf(result)).toBe(
      'Weather in 東京 (Tokyo, Japan): Partly cloudy, 18 °C, feels like 17 °C, humidity 62 %, wind 13 km/h. Observed at 2026-04-20 13:28 local time.',
    );
    expect(weather.requests[0]?.url).toBe('/%E6%9D%B1%E4%BA%AC?format=j1');

    weather.on(
      '*',
      json({ data: report({ temp_C: '-0.5', localObsDateTime: 'soon', FeelsLikeC: '' }) }),
    );
    const other = await call('get_weather', { city: 'Oslo' });
    expect(other.structuredContent).toMatchObject({ temperature_c: -0.5 });
    expect(other.structuredContent).not.toHaveProperty('observed_at');
    expect(other.structuredContent).not.toHaveProperty('feels_like_c');

    for (const temp_C of ['', ' ', '1e3', '0x10', '18°', '999', 'NaN', null, [], true]) {
      weather.on('*', json(report({ temp_C })));
      const strict = await call('get_weather', { city: 'Nowhere' });
      expect(codeOf(strict)).toBe('UPSTREAM_INVALID_RESPONSE');
      expect(textOf(strict)).toContain('current_condition.0.temp_C');
    }
    for (const body of [{}, [], null, { current_condition: [] }, report({ weatherDesc: [] })]) {
      weather.on('*', json(body));
      expect(codeOf(await call('get_weather', { city: 'Nowhere' }))).toBe(
        'UPSTREAM_INVALID_RESPONSE',
      );
    }
  });

  verifies('weather.cached', async () => {
    const clock = new ManualClock();
    const { call, weather } = await openTools({ ...once, clock });
    weather.on('*', json(report()));
    const first = await call('get_weather', { city: 'Zürich' });
    expect(first._meta).toMatchObject({ from_cache: false });
    await clock.advance(5 * MINUTE - 1);
    const again = await call('get_weather', { city: ' ZU\u0308RICH ' });
    expect(again._meta).toMatchObject({ from_cache: true, age_seconds: 300 });
    expect(again._meta).toHaveProperty('cached_until');
    expect(again.structuredContent).toEqual(first.structuredContent);
    expect(weather.count()).toBe(1);

    await call('get_weather', { city: 'Zürich', use_cache: false });
    expect(weather.count()).toBe(2);
    // The new answer went into the cache that use_cache does not split.
    await clock.advance(5 * MINUTE - 1);
    await call('get_weather', { city: 'zürich' });
    expect(weather.count()).toBe(2);
    await clock.advance(1);
    await call('get_weather', { city: 'zürich' });
    expect(weather.count()).toBe(3);
  });

  verifies('weather.stale-if-error', async () => {
    const clock = new ManualClock();
    const { call, weather } = await openTools({ ...once, clock });
    weather.on('*', json(report()), answer(503));
    await call('get_weather', { city: 'Tokyo' });
    await clock.advance(65 * MINUTE - 1);
    const stale = await call('get_weather', { city: 'Tokyo' });
    expect(stale.isError).toBeUndefined();
    expect(stale._meta).toMatchObject({ from_cache: true, degraded: true });
    expect(stale.structuredContent).toMatchObject({
      temperature_c: 18,
      source: 'wttr.in',
      degraded: true,
      reason: expect.stringContaining('UPSTREAM_UNAVAILABLE'),
    });
    expect(textOf(stale)).toContain('3900 s old');
    await clock.advance(1);
    const later = await call('get_weather', { city: 'Tokyo' });
    expect(later.structuredContent).toMatchObject({ source: 'climate-table' });
  });

  verifies('weather.fallback-degraded', async () => {
    for (const behaviour of [answer(503), reset(), truncatedJson(report()), oversized(3_000_000)]) {
      const clock = new ManualClock(); // in January
      const { call, weather, registry } = await openTools({ ...once, clock });
      weather.on('*', behaviour);
      const result = await call('get_weather', { city: 'new york, USA' });
      expect(result.isError).toBeUndefined();
      expect(result.structuredContent).toEqual({
        city: 'new york, USA',
        temperature_c: 1,
        typical_low_c: -2,
        typical_high_c: 4,
        description: expect.stringMatching(/Typical for January in New York: -2 to 4 °C.*average/),
        source: 'climate-table',
        degraded: true,
        reason: expect.stringMatching(/^(UPSTREAM|CONNECTION)_[A-Z_]+: /),
      });
      expect(result._meta).toMatchObject({ degraded: true, 'mcp-resilience/outcome': 'degraded' });
      expect(textOf(result)).toMatch(/No current weather.*[\s\S]*substitute, not a live answer/);
      // A substitute is not kept.
      await call('get_weather', { city: 'new york, USA' });
      expect(weather.count()).toBe(2);
      const unlisted = await call('get_weather', { city: 'Paris, Texas' });
      expect(codeOf(unlisted)).toMatch(/^(UPSTREAM|CONNECTION)_/);
      expect(registry.get('weather-api')?.breaker?.state).toBe('open');
      // The open breaker has a substitute too, and asks nobody.
      const refused = await call('get_weather', { city: 'London' });
      expect(refused.structuredContent).toMatchObject({
        degraded: true,
        reason: expect.stringContaining('CIRCUIT_OPEN'),
      });
      expect(weather.count()).toBe(3);
    }
  });

  test('a service that hangs is given up after 10 s, and told so', async () => {
    const clock = new ManualClock();
    const { call, weather } = await openTools({ ...once, clock });
    weather.on('*', hang());
    const answered = call('get_weather', { city: 'Nowhere' });
    await until(() => weather.count() === 1);
    await clock.advance(10_000);
    expect(codeOf(await answered)).toBe('TIMEOUT');
    await until(() => weather.requests[0]?.aborted === true);
  });

  test('a failure that passes is repeated', async () => {
    const { call, weather } = await openTools(quick);
    weather.on('*', answer(502), reset(), json(report()));
    expect((await call('get_weather', { city: 'Oslo' })).structuredContent).toHaveProperty(
      'source',
      'wttr.in',
    );
    expect(weather.count()).toBe(3);
  });

  verifies('weather.unknown-place', async () => {
    const { call, weather, registry } = await openTools(quick);
    const behaviours = [
      answer(404, report(), { 'content-type': 'application/json' }),
      answer(404, '404 UNKNOWN LOCATION: Xyzzy'),
      json('Unknown location'),
      answer(200, 'Unknown location'),
      answer(500, 'ERROR: Unknown location: Xyzzy'),
    ];
    for (const [index, behaviour] of behaviours.entries()) {
      weather.on('*', behaviour);
      const result = await call('get_weather', { city: 'Xyzzy' });
      expect(codeOf(result)).toBe('NOT_FOUND');
      expect(textOf(result)).toContain('wttr.in knows no place called "Xyzzy"');
      expect(textOf(result)).toContain('Check the spelling');
      expect(weather.count()).toBe(index + 1);
    }
    // Not even for a city that is listed: it would hide that the name is wrong.
    expect(codeOf(await call('get_weather', { city: 'Tokyo' }))).toBe('NOT_FOUND');
    expect(registry.get('weather-api')?.breaker?.toJSON()).toMatchObject({
      state: 'closed',
      failureCount: 0,
    });
    weather.on('*', answer(500, 'Traceback'));
    expect(codeOf(await call('get_weather', { city: 'Xyzzy' }))).toBe('UPSTREAM_ERROR');
  });

  verifies('weather.quota', async () => {
    const { call, weather, registry } = await openTools(quick);
    weather.on('*', json('Unknown location; please try ~35.6828387,139.7594549'));
    const unlisted = await call('get_weather', { city: 'Hachioji' });
    expect(codeOf(unlisted)).toBe('RATE_LIMITED');
    expect(textOf(unlisted)).toContain('used up its own quota');
    const listed = await call('get_weather', { city: 'Tokyo' });
    expect(listed.structuredContent).toMatchObject({ source: 'climate-table', degraded: true });
    expect(weather.count()).toBe(2);
    expect(registry.get('weather-api')?.breaker?.toJSON().failureCount).toBe(0);
  });
});

verifies('K03', async () => {
  const clock = new ManualClock();
  const { call, weather, wiki, registry } = await openTools({
    clock,
    policies: { get_weather: { retry: false }, search: { retry: false } },
  });
  weather.on('*', answer(503), answer(404), json('{'), json(report()));
  for (const code of ['UPSTREAM_UNAVAILABLE', 'NOT_FOUND', 'UPSTREAM_INVALID_RESPONSE']) {
    expect(codeOf(await call('get_weather', { city: 'Oslo' }))).toBe(code);
  }
  const good = await call('get_weather', { city: 'Oslo' });
  expect(good.isError).toBeUndefined();
  expect(good._meta).toMatchObject({ from_cache: false });
  wiki.on('*', json({ error: { code: 'badvalue', info: 'no' } }));
  for (const _ of [1, 2])
    expect(codeOf(await call('search', { query: 'x' }))).toBe('REQUEST_REJECTED');
  expect(wiki.count()).toBe(2);
  expect(registry.get('search-api')?.cache?.stats().entries).toBe(0);

  const pipeline = registry.create('writes', { cache: { ttl: MINUTE } });
  for (const [readOnlyHint, calls] of [
    [false, 2],
    [true, 1],
  ] as const) {
    let made = 0;
    const tool = defineTool({
      name: `tool-${readOnlyHint}`,
      description: '',
      inputSchema: z.object({}),
      annotations: { readOnlyHint, idempotentHint: true },
      handler: () => {
        made += 1;
        return { content: [] };
      },
    });
    const { handler } = protectTool(tool, { pipeline });
    const { signal } = new AbortController();
    for (const _ of [1, 2]) await handler({}, { signal, progress() {} });
    expect(made).toBe(calls);
  }
});
