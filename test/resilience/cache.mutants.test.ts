import { describe, expect, test } from 'vitest';
import { cacheKey, ResultCache } from '../../src/resilience/cache.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

describe('ResultCache', () => {
  test('counts what it found and what not', () => {
    const clock = new ManualClock();
    const settings = { ttl: 1_000, staleWhileRevalidate: 500, staleIfError: 2_000 };
    const cache = new ResultCache<string>(settings, { clock });
    cache.get('key');
    cache.set('key', 'answer');
    clock.jump(1_000);
    for (let i = 0; i < 3; i++) cache.get('key');
    clock.jump(1_000);
    cache.get('key');
    expect(cache.stats()).toEqual({ hits: 0, misses: 2, stale: 3, entries: 1 });
  });

  test('for each answer that comes, two that are beyond all their times go', () => {
    const clock = new ManualClock();
    const cache = new ResultCache<string>({ ttl: 1_000 }, { clock });
    for (let i = 0; i < 10; i++) cache.set(`old ${i}`, 'answer');
    clock.jump(1_000);
    cache.set('new', 'answer');
    expect(cache.size).toBe(9);
  });
});

describe('cacheKey', () => {
  const key = (args: unknown) => cacheKey({ dependency: 'd', operation: 'o', args });
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);

  test('tells values apart that are written alike', () => {
    const values = [1n, 2n, -0, 0, [-0], Array(1), [undefined], [], [[]], { a: 1 }, { a: 1n }];
    expect(new Set(values.map(key)).size).toBe(values.length);
  });

  test('an object without a prototype is a plain one', () => {
    expect(key(Object.assign(Object.create(null), { a: 1 }))).toBe(key({ a: 1 }));
  });

  test('takes two hundred levels and no more', () => {
    expect(key(nested(200))).toMatch(/^sha256:/);
    expect(() => key(nested(201))).toThrow('nested deeper than 200 levels');
  });

  test('stays in clear up to 256 characters', () => {
    const rest = key('').length;
    const longest = 'x'.repeat(256 - rest);
    expect(key(longest)).toContain(longest);
    expect(key(`${longest}x`)).toMatch(/^sha256:/);
  });

  test('names what it cannot take', () => {
    class Odd {
      readonly toJSON = 'not a function';
    }
    expect(() => key(new Odd())).toThrow('args contain a Odd; pass plain data');
    const nameless: unknown = Object.create(Object.create(Object.create(null)));
    expect(() => key(nameless)).toThrow('args contain a class instance; pass plain data');
  });
});
