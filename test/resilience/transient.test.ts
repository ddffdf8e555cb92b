import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Place, TransientMap, TransientSet } from '../../src/resilience/transient.ts';

describe('TransientMap', () => {
  test('does what a Map would do', () => {
    const step = fc.tuple(fc.constantFrom('set', 'take', 'clear'), fc.nat(8), fc.nat(100));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const map = new TransientMap<number, number>();
        const model = new Map<number, number>();
        for (const [action, key, value] of steps) {
          if (action === 'set') {
            map.set(key, value);
            model.set(key, value);
          } else if (action === 'take') {
            expect(map.take(key)).toBe(model.get(key));
            model.delete(key);
          } else if (value < 20) {
            map.clear();
            model.clear();
          }
          expect(map.size).toBe(model.size);
          expect(map.get(key)).toBe(model.get(key));
          expect(map.has(key)).toBe(model.has(key));
          expect(map.keys()).toEqual([...model.keys()]);
          expect(map.values()).toEqual([...model.values()]);
        }
      }),
    );
  });

  test('lists are copies: what comes or goes meanwhile changes nothing', () => {
    const map = new TransientMap<string, number>();
    map.set('a', 1);
    map.set('b', 2);
    const [keys, values] = [map.keys(), map.values()];
    map.take('a');
    map.clear();
    expect([keys, values]).toEqual([
      ['a', 'b'],
      [1, 2],
    ]);
  });
});

describe('TransientSet', () => {
  test('does what a Set would do, whatever leaves in which order, and twice', () => {
    const step = fc.tuple(fc.boolean(), fc.nat(30));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const set = new TransientSet<number>();
        let model: number[] = [];
        const places: Place<number>[] = [];
        for (const [adds, at] of steps) {
          if (adds) {
            model.push(places.length);
            places.push(set.add(places.length));
          } else {
            const place = places[at];
            if (place) set.leave(place);
            model = model.filter((value) => value !== at);
          }
          expect(set.size).toBe(model.length);
          expect(set.values()).toEqual(model);
        }
      }),
    );
  });
});
