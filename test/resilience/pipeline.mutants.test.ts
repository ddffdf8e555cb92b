import { diag, logs } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Deadline } from '../../src/resilience/deadline.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';

const lost = () => Promise.reject(Object.assign(new Error('hang up'), { code: 'ECONNRESET' }));
const key = { cacheKey: 'k' };

const setUp = (settings: PolicySettings) => {
  const clock = new ManualClock();
  return { clock, pipeline: createPipeline('db', settings, { clock, random: () => 0 }) };
};

describe('Pipeline', () => {
  test('wants the name of the dependency', () => {
    for (const name of ['', undefined, 5] as string[]) {
      expect(() => createPipeline(name)).toThrow('name must be a non-empty string');
    }
  });

  test('shows the policies that are set and no others', () => {
    const { pipeline: full } = setUp({
      rateLimit: { limit: 1 },
      bulkhead: { limit: 1 },
      breaker: {},
      retry: {},
      hedge: {},
      cache: { ttl: 1 },
    });
    for (const policy of [
      full.rateLimiter,
      full.bulkhead,
      full.breaker,
      full.retry,
      full.hedge,
      full.cache,
    ]) {
      expect(policy).toBeDefined();
    }
    full.destroy();
    const { pipeline: bare } = setUp({ cache: false, breaker: false });
    expect([
      bare.rateLimiter,
      bare.bulkhead,
      bare.breaker,
      bare.retry,
      bare.hedge,
      bare.cache,
    ]).toEqual(Array(6).fill(undefined));
  });

  test('destroy ends what all of its policies had going', async () => {
    const { clock, pipeline } = setUp({
      timeout: 1_000,
      breaker: { threshold: 1 },
      bulkhead: { limit: 1, queue: 1 },
    });
    void pipeline.outcome(() => new Promise(() => {}));
    const waiting = pipeline.outcome(() => 'never');
    pipeline.breaker?.recordFailure();
    expect(clock.pendingTimers).toBe(3);
    pipeline.destroy();
    // The time limit of the call in flight is left, as long as that.
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(1_000);
    expect(clock.pendingTimers).toBe(0);
    expect(await waiting).toMatchObject({ ok: false, failure: { code: 'BULKHEAD_FULL' } });
  });

  test('a follower leaves no timer behind when the answer comes before its deadline', async () => {
    const { clock, pipeline } = setUp({ cache: { ttl: 1_000 }, deadline: 5_000 });
    const gate = Promise.withResolvers<string>();
    const work = () => gate.promise;
    const leader = pipeline.outcome(work, key);
    const follower = pipeline.outcome(work, { ...key, deadline: Deadline.after(100, clock) });
    await flush();
    gate.resolve('up');
    expect(await Promise.all([leader, follower])).toMatchObject([{ value: 'up' }, { value: 'up' }]);
    await flush();
    expect(clock.pendingTimers).toBe(0);
  });

  test('a caller that left is told so, with its reason', async () => {
    const { pipeline } = setUp({});
    const reason = new Error('enough');
    const outcome = await pipeline.outcome(() => 'up', { signal: AbortSignal.abort(reason) });
    expect(outcome).toMatchObject({
      ok: false,
      error: reason,
      failure: {
        code: 'CANCELLED',
        message: 'the caller cancelled the call to "db"',
        cause: reason,
      },
    });
  });
});

describe('what a pipeline reports', () => {
  let recording: ReturnType<typeof startRecording>;
  const told: unknown[] = [];
  beforeEach(() => {
    recording = startRecording();
    told.splice(0);
    logs.disable();
    logs.setGlobalLoggerProvider({
      getLogger: () => ({
        enabled: () => true,
        emit: ({ eventName, severityText, attributes }) =>
          void told.push([eventName, severityText, attributes]),
      }),
    });
  });
  afterEach(() => {
    recording.stop();
    diag.disable();
  });

  const counts = async (metric: string, by: string) =>
    Object.fromEntries(
      (await recording.points(metric)).map(({ attributes, value }) => [attributes[by], value]),
    );

  test('each way in which the cache was used, and the age of a stale answer', async () => {
    const { clock, pipeline } = setUp({ cache: { ttl: 1_000, staleWhileRevalidate: 1_000 } });
    const gate = Promise.withResolvers<string>();
    const both = [1, 2].map(() => pipeline.outcome(() => gate.promise, key));
    gate.resolve('up');
    await Promise.all(both);
    await pipeline.outcome(() => 'up', key);
    await pipeline.outcome(() => 'up', { ...key, useCache: false });
    await clock.advance(1_500);
    expect(await pipeline.outcome(() => 'up', key)).toMatchObject({ source: 'stale' });
    await flush();
    expect(await counts('resilience.cache.requests', 'outcome')).toEqual({
      miss: 1,
      shared: 1,
      hit: 1,
      bypass: 1,
      stale: 1,
    });
    expect(told).toEqual([
      [
        'resilience.cache.stale_served',
        'INFO',
        { 'resilience.dependency': 'db', 'resilience.cache.age': 1.5 },
      ],
    ]);
  });

  test('a follower that its deadline ended', async () => {
    const { clock, pipeline } = setUp({ cache: { ttl: 1_000 } });
    void pipeline.outcome(() => new Promise(() => {}), key);
    const follower = pipeline.outcome(() => 'up', { ...key, deadline: Deadline.after(100, clock) });
    await clock.advance(100);
    expect(await follower).toMatchObject({ failure: { code: 'DEADLINE_EXCEEDED' } });
    expect(await counts('resilience.timeouts', 'reason')).toEqual({ deadline: 1 });
  });

  test('a fallback that was used as a warning, one that threw to the diagnostics', async () => {
    const error = vi.fn();
    const quiet = () => {};
    diag.setLogger({ error, warn: quiet, info: quiet, debug: quiet, verbose: quiet });
    const { pipeline } = setUp({});
    await pipeline.outcome(lost, { fallback: () => 'lesser' });
    expect(told).toEqual([
      [
        'resilience.fallback.used',
        'WARN',
        { 'resilience.dependency': 'db', reason: 'CONNECTION_RESET' },
      ],
    ]);
    const broken = new Error('broken');
    await pipeline.outcome(lost, { fallback: () => Promise.reject(broken) });
    expect(error).toHaveBeenCalledWith('fallback of "db" threw', broken);
  });
});
