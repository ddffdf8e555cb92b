import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ResultCache } from '../../src/resilience/cache.ts';
import { SingleFlight } from '../../src/resilience/single-flight.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const setUp = (settings: ConstructorParameters<typeof ResultCache>[0]) => {
  const clock = new ManualClock();
  return { clock, cache: new ResultCache<string>(settings, { clock }) };
};

describe('ResultCache', () => {
  verifies('cache.stale', () => {
    const { clock, cache } = setUp({ ttl: 1_000, staleWhileRevalidate: 500, staleIfError: 2_000 });
    const storedAt = clock.wallTime();
    cache.set('key', 'answer');
    const states: Record<number, string | undefined> = {};
    for (const age of [0, 999, 1_000, 1_499, 1_500, 2_999, 3_000]) {
      clock.jump(storedAt + age - clock.wallTime());
      const hit = cache.get('key');
      states[age] = hit?.state;
      if (hit) expect(hit).toMatchObject({ value: 'answer', age, cachedUntil: storedAt + 1_000 });
    }
    expect(states).toEqual({
      0: 'fresh',
      999: 'fresh',
      1000: 'stale',
      1499: 'stale',
      1500: 'expired',
      2999: 'expired',
      3000: undefined,
    });
    expect(cache.stats()).toEqual({ hits: 2, misses: 3, stale: 2, entries: 0 });
  });

  test('without stale times an answer is fresh or gone', () => {
    const { clock, cache } = setUp({ ttl: 1_000 });
    cache.set('key', 'answer');
    clock.jump(1_000);
    expect(cache.get('key')).toBeUndefined();
    expect(cache.size).toBe(0);
  });

  test('a calendar that jumps makes nothing fresh, and nothing old', () => {
    const { clock, cache } = setUp({ ttl: 1_000 });
    cache.set('key', 'answer');
    clock.stepWallTime(-3_600_000);
    expect(cache.get('key')?.state).toBe('fresh');
    clock.jump(1_000);
    expect(cache.get('key')).toBeUndefined();
  });

  test('a new answer is fresh again; delete and clear forget', () => {
    const { clock, cache } = setUp({ ttl: 1_000, staleIfError: 10_000 });
    cache.set('a', 'old');
    clock.jump(5_000);
    cache.set('a', 'new');
    cache.set('b', 'other');
    expect(cache.get('a')).toMatchObject({ value: 'new', age: 0, state: 'fresh' });
    expect(cache.delete('a')).toBe(true);
    expect(cache.delete('a')).toBe(false);
    expect(cache.get('a')).toBeUndefined();
    cache.clear();
    expect(cache.size).toBe(0);
  });

  test('undefined and null are answers', () => {
    const cache = new ResultCache<undefined | null>({ ttl: 1_000 }, { clock: new ManualClock() });
    cache.set('undefined', undefined);
    cache.set('null', null);
    expect(cache.get('undefined')).toMatchObject({ value: undefined, state: 'fresh' });
    expect(cache.get('null')).toMatchObject({ value: null, state: 'fresh' });
  });

  verifies('cache.bounded', () => {
    const { clock, cache } = setUp({ ttl: 1_000, maxEntries: 100 });
    for (let key = 0; key < 10_000; key += 1) {
      cache.set(`key ${key}`, 'answer');
      // In use all the time, so never the one that goes.
      expect(cache.get('key 0')?.state).toBe('fresh');
      expect(cache.size).toBeLessThanOrEqual(100);
    }
    // Nobody asks for the old ones again: new ones push them out, before the bound is reached.
    clock.jump(1_000);
    for (let key = 0; key < 60; key += 1) cache.set(`new ${key}`, 'answer');
    expect(cache.size).toBe(60);
  });

  test('does what a list of dated answers would do', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const step = fc.oneof(
      fc.record({ set: key }),
      fc.record({ get: key }),
      fc.record({ pass: fc.nat(50) }),
    );
    const settings = fc.record({
      ttl: fc.integer({ min: 1, max: 60 }),
      staleWhileRevalidate: fc.nat(60),
      staleIfError: fc.nat(60),
    });
    fc.assert(
      fc.property(settings, fc.array(step, { maxLength: 60 }), (given, steps) => {
        const { clock, cache } = setUp({ ...given, maxEntries: 10 });
        const stored = new Map<string, number>();
        for (const action of steps) {
          if ('pass' in action) clock.jump(action.pass);
          else if ('set' in action) {
            cache.set(action.set, action.set);
            stored.set(action.set, clock.now());
          } else {
            const age = clock.now() - (stored.get(action.get) ?? Number.NEGATIVE_INFINITY);
            const { ttl, staleWhileRevalidate, staleIfError } = given;
            const state =
              age < ttl
                ? 'fresh'
                : age < ttl + staleWhileRevalidate
                  ? 'stale'
                  : age < ttl + staleIfError
                    ? 'expired'
                    : undefined;
            expect(cache.get(action.get)?.state).toBe(state);
          }
        }
      }),
    );
  });

  verifies('cache.errors-never', async () => {
    const { cache } = setUp({ ttl: 60_000 });
    const flights = new SingleFlight<string>();
    let calls = 0;
    const fetch = async () => {
      calls += 1;
      if (calls === 1) throw new Error('down');
      return 'answer';
    };
    const call = async () => {
      const hit = cache.get('key');
      if (hit) return hit.value;
      const { promise } = flights.run('key', undefined, async () => {
        const value = await fetch();
        cache.set('key', value);
        return value;
      });
      return promise;
    };
    await expect(call()).rejects.toThrow('down');
    expect(cache.size).toBe(0);
    expect(await call()).toBe('answer');
    expect(await call()).toBe('answer');
    expect(calls).toBe(2);
  });

  test.each([
    [{ ttl: 0 }, /cache\.ttl/],
    [{ ttl: 1, maxEntries: 0 }, /cache\.maxEntries/],
    [{ ttl: 1, staleIfError: -1 }, /cache\.staleIfError/],
  ])('refuses the settings %j', (settings, message) => {
    expect(() => new ResultCache(settings)).toThrow(RangeError);
    expect(() => new ResultCache(settings)).toThrow(message);
  });
});
