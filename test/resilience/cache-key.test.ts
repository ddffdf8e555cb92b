import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cacheKey } from '../../src/resilience/cache.ts';
import { verifies } from '../fixtures/verifies.ts';

const keyOf = (args: unknown) => cacheKey({ dependency: 'weather', operation: 'today', args });

/** Whatever can stand in arguments. */
const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withSparseArray: true,
  withNullPrototype: false,
  key: fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('__proto__', 'constructor', 'toJSON')),
  maxDepth: 3,
});

/** The same value with the keys of every object in another order. */
const reordered = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  const copy = {};
  for (const key of Object.keys(value).reverse()) {
    const inner = reordered((value as Record<string, unknown>)[key]);
    Object.defineProperty(copy, key, {
      value: inner,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return copy;
};

/** All of one group, each differing from the others. */
const alike: readonly (readonly unknown[])[] = [
  [1, '1', 1n, '1n', true, 'true', null, 'null', undefined, 'undefined', Number.NaN, 'NaN', 0, -0],
  [
    {},
    { a: undefined },
    { a: null },
    { a: 0 },
    { a: '' },
    { a: [] },
    { a: {} },
    [],
    [[]],
    [{}],
    '',
  ],
  [[undefined], new Array(1), [null], [], new Array(2), [undefined, undefined], ['']],
  [new Date(0), 0, '1970-01-01T00:00:00.000Z', 'Date(0)', new Date(1), new Date(Number.NaN)],
  [{ a: 1, b: 2 }, { a: '1,"b":2' }, { 'a":1,"b': 2 }, [{ a: 1 }, { b: 2 }], [{ a: 1, b: 2 }]],
  [['a', 'b'], ['a,b'], ['a","b'], [['a'], 'b'], [['a', 'b']], 'a,b'],
  ['\ud800', '\\ud800', '\ufffd', '\ud800\udc00'],
  [JSON.parse('{"__proto__":{"a":1}}'), {}, { a: 1 }, JSON.parse('{"__proto__":{"a":2}}')],
  [new URL('https://a.example/'), 'https://a.example/', new URL('https://b.example/')],
];

describe('cacheKey', () => {
  verifies('cache.key-canonical', () => {
    for (const group of alike) {
      const keys = group.map(keyOf);
      expect(new Set(keys).size).toBe(group.length);
    }
    expect(keyOf({ b: { d: 1, c: [{ f: 1, e: 2 }] }, a: 0 })).toBe(
      keyOf({ a: 0, b: { c: [{ e: 2, f: 1 }], d: 1 } }),
    );
    fc.assert(
      fc.property(anything, (value) => {
        fc.pre(!hasHoles(value));
        expect(keyOf(reordered(value))).toBe(keyOf(value));
      }),
      { numRuns: 1_000 },
    );
    fc.assert(
      fc.property(anything, anything, (one, other) => {
        expect(keyOf(one) === keyOf(other)).toBe(isDeepStrictEqual(one, other));
      }),
      { numRuns: 5_000 },
    );
    // Two that differ in one place only are the likely collision.
    fc.assert(
      fc.property(fc.array(anything, { minLength: 1 }), fc.nat(), anything, (list, at, other) => {
        const changed = list.with(at % list.length, other);
        expect(keyOf(list) === keyOf(changed)).toBe(isDeepStrictEqual(list, changed));
      }),
      { numRuns: 2_000 },
    );
  });

  test('dependency, operation and principal are part of it, each in its place', () => {
    const parts = fc.record({
      dependency: fc.string(),
      operation: fc.string(),
      principal: fc.option(fc.string(), { nil: undefined }),
      args: fc.constantFrom({}, undefined, null, ''),
    });
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        expect(cacheKey(one) === cacheKey(other)).toBe(isDeepStrictEqual(one, other));
      }),
      { numRuns: 2_000 },
    );
  });

  test('long ones are hashed, short ones can be read', () => {
    expect(keyOf({ city: 'Oslo' })).toBe('["weather","today",undefined,{"city":"Oslo"},]');
    const long = keyOf({ text: 'x'.repeat(1_000) });
    expect(long).toMatch(/^sha256:[\w-]{43}$/);
    expect(keyOf({ text: 'x'.repeat(1_001) })).not.toBe(long);
    expect(keyOf({ text: 'x'.repeat(1_000) })).toBe(long);
  });

  verifies('cache.key-unclear', () => {
    const cycle: Record<string, unknown> = {};
    cycle.inner = [{ cycle }];
    expect(() => keyOf(cycle)).toThrow('cacheKey: args contain themselves (a cycle)');
    const twice = { a: 1 };
    expect(keyOf([twice, twice])).toBe(keyOf([{ a: 1 }, { a: 1 }]));
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    expect(() => keyOf(deep)).toThrow(/nested deeper than 200 levels/);
    expect(() => keyOf({ run: () => 1 })).toThrow(/a function/);
    expect(() => keyOf(Symbol('s'))).toThrow(/a symbol/);
    expect(() => keyOf(new Map([[1, 2]]))).toThrow(/a Map; pass plain data/);
    expect(() => keyOf(new Set())).toThrow(/a Set; pass plain data/);
  });
});

const hasHoles = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  ((Array.isArray(value) && Object.keys(value).length !== value.length) ||
    Object.values(value).some(hasHoles));
