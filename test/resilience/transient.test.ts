import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Place, TransientMap, TransientSet } from '../../src/resilience/transient.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as (options?: { type: 'minor' }) => void;
const MEGABYTE = 1024 * 1024;

const oldBytes = (): number =>
  getHeapSpaceStatistics()
    .filter(({ space_name: name }) => name === 'old_space')
    .reduce((sum, { space_used_size: used }) => sum + used, 0);

/**
 * How much of 32 MB that calls hold one after the other minor collections take for alive, once
 * the collection itself has grown old.
 */
const promoted = (begin: (id: number, call: object) => () => void): number => {
  const ends = [begin(-1, {})];
  gc();
  gc();
  const before = oldBytes();
  for (let id = 0; id < 1_024; id += 1) {
    ends.push(begin(id, { held: new Array(4_096).fill(id) }));
    if (ends.length > 16 || id === 0) ends.shift()?.();
  }
  gc({ type: 'minor' });
  gc({ type: 'minor' });
  return oldBytes() - before;
};

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

  test('regression: minor collections free calls that have gone', () => {
    const map = new TransientMap<number, object>();
    const bytes = promoted((id, call) => {
      map.set(id, call);
      return () => map.take(id);
    });
    expect(bytes).toBeLessThan(4 * MEGABYTE);
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

  test('regression: minor collections free calls that have gone', () => {
    const set = new TransientSet<object>();
    const bytes = promoted((_, call) => {
      const place = set.add(call);
      return () => set.leave(place);
    });
    expect(bytes).toBeLessThan(4 * MEGABYTE);
  });
});
