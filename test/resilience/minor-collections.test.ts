import { describe, expect, onTestFinished, test } from 'vitest';
import { Bulkhead } from '../../src/resilience/bulkhead.ts';
import { LruMap } from '../../src/resilience/lru-map.ts';
import { TransientMap, TransientSet } from '../../src/resilience/transient.ts';
import { FEW, promoted } from '../fixtures/promoted.ts';

// In a file of its own: it weighs the heap of its process.
describe('regression: minor collections free', () => {
  test('what has left a TransientMap', async () => {
    const map = new TransientMap<number, object>();
    const bytes = await promoted((id, call) => {
      map.set(id, call);
      return () => map.take(id);
    });
    expect(bytes).toBeLessThan(FEW);
  });

  test('what has left a TransientSet', async () => {
    const set = new TransientSet<object>();
    const bytes = await promoted((_, call) => {
      const place = set.add(call);
      return () => set.leave(place);
    });
    expect(bytes).toBeLessThan(FEW);
  });

  test('what a bounded map has evicted', async () => {
    const map = new LruMap<number, object>(16);
    const bytes = await promoted((id, call) => {
      map.set(id, call);
      return () => {};
    });
    expect(bytes).toBeLessThan(FEW);
  });

  test('who has waited in the line of a bulkhead', async () => {
    const bulkhead = new Bulkhead('search', { limit: 1, queue: 100 });
    onTestFinished(() => bulkhead.destroy());
    const bytes = await promoted((_, call) => {
      const signal = Object.assign(new AbortController().signal, call);
      // Who is still in line in the end is turned away.
      bulkhead.acquire({ signal }).catch(() => {});
      return () => bulkhead.release();
    });
    expect(bytes).toBeLessThan(FEW);
  });
});
