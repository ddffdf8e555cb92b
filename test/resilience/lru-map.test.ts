import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LruMap } from '../../src/resilience/lru-map.ts';

describe('LruMap', () => {
  test('does what a list ordered by use would do', () => {
    const step = fc.tuple(
      fc.constantFrom('get', 'set', 'peek', 'delete', 'clear'),
      fc.nat(6),
      fc.nat(100),
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(step, { maxLength: 60 }),
        (max, steps) => {
          const map = new LruMap<number, number>(max);
          let model: { key: number; value: number }[] = [];
          const use = (key: number, value: number) => {
            model = [...model.filter((entry) => entry.key !== key), { key, value }];
          };
          for (const [action, key, value] of steps) {
            const known = model.find((entry) => entry.key === key);
            if (action === 'get') {
              expect(map.get(key)).toBe(known?.value);
              if (known) use(key, known.value);
            } else if (action === 'set') {
              map.set(key, value);
              if (!known && model.length >= max) model.shift();
              use(key, value);
            } else if (action === 'peek') expect(map.peek(key)).toBe(known?.value);
            else if (action === 'delete') {
              expect(map.delete(key)).toBe(known !== undefined);
              model = model.filter((entry) => entry.key !== key);
            } else if (value < 20) {
              map.clear();
              model = [];
            }
            expect(map.size).toBe(model.length);
            expect(map.oldest?.key).toBe(model[0]?.key);
          }
        },
      ),
    );
  });

  test('pinned entries outlive others, but not the bound', () => {
    const map = new LruMap<string, { pinned: boolean }>(3, (value) => value.pinned);
    map.set('pinned', { pinned: true });
    map.set('a', { pinned: false });
    map.set('b', { pinned: false });
    map.set('c', { pinned: false });
    expect(map.peek('pinned')).toBeDefined();
    expect(map.peek('a')).toBeUndefined();
    for (let key = 0; key < 100; key += 1) map.set(`pinned ${key}`, { pinned: true });
    expect(map.size).toBe(3);
  });
});
