import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Deadline } from '../../src/resilience/deadline.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const key = { cacheKey: 'k' };

const setUp = (cache: NonNullable<PolicySettings['cache']>, settings: PolicySettings = {}) => {
  const clock = new ManualClock();
  const pipeline = createPipeline('up', { cache, ...settings }, { clock });
  const upstream = { calls: 0, down: false, gate: undefined as Promise<void> | undefined };
  const work = async () => {
    const call = ++upstream.calls;
    const { down } = upstream;
    await upstream.gate;
    if (down) throw reset();
    return `answer ${call}`;
  };
  return { clock, pipeline, upstream, work };
};

describe('cache in the pipeline', () => {
  test('serves a fresh answer with its age, until its time is over', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000 });
    const start = clock.wallTime();
    expect(await pipeline.outcome(work, key)).toMatchObject({
      source: 'call',
      cachedUntil: start + 1_000,
    });
    await clock.advance(999);
    expect(await pipeline.outcome(work, key)).toEqual({
      ok: true,
      value: 'answer 1',
      source: 'cache',
      age: 999,
      cachedUntil: start + 1_000,
      attempts: 0,
    });
    await clock.advance(1);
    expect(await pipeline.execute(work, key)).toBe('answer 2');
    expect(await pipeline.execute(work, { cacheKey: 'other' })).toBe('answer 3');
    expect(await pipeline.execute(work)).toBe('answer 4');
    expect(upstream.calls).toBe(4);
  });

  test('useCache: false asks anew and keeps the new answer', async () => {
    const { pipeline, work } = setUp({ ttl: 1_000 });
    await pipeline.execute(work, key);
    expect(await pipeline.execute(work, { ...key, useCache: false })).toBe('answer 2');
    expect(await pipeline.execute(work, key)).toBe('answer 2');
  });

  test('a failure is never kept', async () => {
    const { pipeline, upstream, work } = setUp({ ttl: 1_000 });
    upstream.down = true;
    await expect(pipeline.execute(work, key)).rejects.toThrow('hang up');
    upstream.down = false;
    expect(await pipeline.execute(work, key)).toBe('answer 2');
  });

  verifies('cache.stale-while-revalidate', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000, staleWhileRevalidate: 500 });
    await pipeline.execute(work, key);
    await clock.advance(1_200);
    const gate = Promise.withResolvers<void>();
    upstream.gate = gate.promise;
    // The caller that triggers it has a deadline and a signal of its own: neither ends the refresh.
    const controller = new AbortController();
    const options = { ...key, signal: controller.signal, deadline: Deadline.after(10, clock) };
    const stale = await Promise.all([
      pipeline.outcome(work, options),
      pipeline.outcome(work, key),
      pipeline.outcome(work, key),
    ]);
    expect(
      stale.map((outcome) => outcome.ok && [outcome.source, outcome.value, outcome.age]),
    ).toEqual(Array(3).fill(['stale', 'answer 1', 1_200]));
    expect(upstream.calls).toBe(2);
    controller.abort();
    await clock.advance(20);
    gate.resolve();
    await flush();
    expect(await pipeline.outcome(work, key)).toMatchObject({ source: 'cache', value: 'answer 2' });
  });

  test('a refresh that fails leaves the old answer, and no unhandled rejection', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000, staleWhileRevalidate: 500 });
    await pipeline.execute(work, key);
    await clock.advance(1_200);
    upstream.down = true;
    for (let i = 0; i < 3; i++) {
      expect(await pipeline.outcome(work, key)).toMatchObject({
        source: 'stale',
        value: 'answer 1',
      });
      await flush();
    }
    expect(upstream.calls).toBe(4);
  });

  verifies('cache.stale-if-error', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000, staleIfError: 5_000 });
    await pipeline.execute(work, key);
    await clock.advance(3_000);
    upstream.down = true;
    expect(await pipeline.outcome(work, key)).toMatchObject({
      ok: true,
      value: 'answer 1',
      source: 'stale',
      age: 3_000,
      failure: { code: 'CONNECTION_RESET' },
    });
    await clock.advance(3_000);
    await expect(pipeline.execute(work, key)).rejects.toThrow('hang up');
  });

  test('a stale answer has the age it has when it is served, and is not served beyond its time', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000, staleIfError: 2_000 });
    await pipeline.execute(work, key);
    upstream.down = true;
    const failAfter = async (ms: number) => {
      const gate = Promise.withResolvers<void>();
      upstream.gate = gate.promise;
      const outcome = pipeline.outcome(work, key);
      await clock.advance(ms);
      gate.resolve();
      return outcome;
    };
    await clock.advance(1_500);
    expect(await failAfter(1_000)).toMatchObject({ source: 'stale', age: 2_500 });
    expect(await failAfter(500)).toMatchObject({
      ok: false,
      failure: { code: 'CONNECTION_RESET' },
    });
  });

  test('a caller that wants a new answer gets no older one than an error allows', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000, staleWhileRevalidate: 9_000 });
    await pipeline.execute(work, key);
    upstream.down = true;
    const options = { ...key, useCache: false };
    expect(await pipeline.outcome(work, options)).toMatchObject({ source: 'stale', age: 0 });
    await clock.advance(5_000);
    expect(await pipeline.outcome(work, options)).toMatchObject({ ok: false });
  });

  verifies(['cache.one-flight', 'R06'], async () => {
    const { pipeline, upstream, work } = setUp({ ttl: 1_000 });
    const gate = Promise.withResolvers<void>();
    upstream.gate = gate.promise;
    const leaver = new AbortController();
    const leader = pipeline.execute(work, { ...key, signal: leaver.signal });
    const followers = Array.from({ length: 20 }, () => pipeline.execute(work, key));
    leaver.abort('gone');
    await expect(leader).rejects.toBe('gone');
    gate.resolve();
    expect(await Promise.all(followers)).toEqual(Array(20).fill('answer 1'));
    expect(upstream.calls).toBe(1);
  });

  test('the work is aborted when every caller has left', async () => {
    const { pipeline } = setUp({ ttl: 1_000 });
    let aborted: unknown;
    const work = ({ signal }: { signal: AbortSignal }) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return new Promise<string>(() => {});
    };
    const controller = new AbortController();
    const all = [1, 2].map(() => pipeline.outcome(work, { ...key, signal: controller.signal }));
    await flush();
    controller.abort('gone');
    expect((await Promise.all(all)).map((outcome) => !outcome.ok && outcome.failure.code)).toEqual([
      'CANCELLED',
      'CANCELLED',
    ]);
    expect(aborted).toBe(true);
  });

  test('who joins a flight with an earlier deadline leaves at that deadline', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000 }, { deadline: 5_000 });
    upstream.gate = new Promise(() => {});
    const leader = pipeline.outcome(work, key);
    const follower = pipeline.outcome(work, { ...key, deadline: Deadline.after(100, clock) });
    await clock.advance(100);
    expect(await follower).toMatchObject({ ok: false, failure: { code: 'DEADLINE_EXCEEDED' } });
    await clock.advance(4_900);
    expect(await leader).toMatchObject({ ok: false, failure: { code: 'DEADLINE_EXCEEDED' } });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('fallback', () => {
  verifies('fallback.marked', async () => {
    const { clock, pipeline, upstream, work } = setUp({ ttl: 1_000, staleIfError: 1_000 });
    const fallback = () => 'climate table';
    const options = { ...key, fallback };
    await pipeline.execute(work, options);
    upstream.down = true;
    await clock.advance(1_500);
    expect(await pipeline.outcome(work, options)).toMatchObject({ source: 'stale' });
    await clock.advance(1_000);
    for (let i = 0; i < 2; i++) {
      expect(await pipeline.outcome(work, options)).toMatchObject({
        ok: true,
        value: 'climate table',
        source: 'fallback',
        failure: { code: 'CONNECTION_RESET' },
      });
    }
    expect(pipeline.cache?.size).toBe(0);
    expect(await pipeline.execute(work, options)).toBe('climate table');
    // Nothing to give, and a fallback that fails: the first failure stands.
    await expect(pipeline.execute(work, { fallback: () => undefined })).rejects.toThrow('hang up');
    const broken = () => Promise.reject(new Error('fallback broke'));
    await expect(pipeline.execute(work, { fallback: broken })).rejects.toThrow('hang up');
  });

  test('an abort is heard at once while a fallback is awaited', async () => {
    const { pipeline, upstream, work } = setUp({ ttl: 1_000 });
    upstream.down = true;
    const controller = new AbortController();
    const { signal } = controller;
    const outcome = pipeline.outcome(work, { signal, fallback: () => new Promise(() => {}) });
    await flush();
    controller.abort('gone');
    expect(await outcome).toMatchObject({
      ok: false,
      error: 'gone',
      failure: { code: 'CANCELLED' },
    });
    // One that aborts in the fallback itself is told so as well.
    const leaver = new AbortController();
    const fallback = async () => {
      leaver.abort('left');
      return 'lesser';
    };
    const left = pipeline.execute(work, { signal: leaver.signal, fallback });
    await expect(left).rejects.toBe('left');
    // No listener stays behind.
    const listeners = new AbortController();
    await pipeline.execute(work, { signal: listeners.signal, fallback: async () => 'lesser' });
    expect(getEventListeners(listeners.signal, 'abort')).toEqual([]);
  });

  verifies('fallback.not-for-callers-faults', async () => {
    const { pipeline } = setUp({ ttl: 1_000 }, { breaker: { threshold: 1 } });
    const fallback = () => 'lesser';
    const faults = [
      new TypeError('bug'),
      { status: 404 },
      { status: 401 },
      { code: -32602, message: 'x' },
    ];
    for (const fault of faults) {
      await expect(pipeline.execute(() => Promise.reject(fault), { fallback })).rejects.toBe(fault);
    }
    // Neither does it hide that nobody knows whether a write was done.
    const lost = () => Promise.reject(reset());
    await expect(pipeline.execute(lost, { fallback, idempotent: false })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    const controller = new AbortController();
    controller.abort('gone');
    const cancelled = pipeline.execute(lost, { fallback, signal: controller.signal });
    await expect(cancelled).rejects.toBe('gone');
    // An open breaker passes by itself.
    expect(await pipeline.execute(lost, { fallback })).toBe('lesser');
  });
});
