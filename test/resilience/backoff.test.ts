import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { backoffDelay, type Jitter } from '../../src/resilience/backoff.ts';
import { verifies } from '../fixtures/verifies.ts';

const jitters: Jitter[] = ['none', 'full', 'equal', 'decorrelated'];
const settings = { baseDelay: 100, maxDelay: 30_000, factor: 2, jitter: 'none' as Jitter };

describe('backoffDelay', () => {
  verifies('backoff.bounds', () => {
    fc.assert(
      fc.property(
        fc.record({
          baseDelay: fc.oneof(fc.double({ min: 0, max: 1e9, noNaN: true }), fc.constant(0)),
          maxDelay: fc.oneof(fc.double({ min: 0, max: 1e9, noNaN: true }), fc.constant(0)),
          factor: fc.double({ min: 1, max: 1e6, noNaN: true }),
          jitter: fc.constantFrom(...jitters),
        }),
        fc.oneof(fc.integer({ min: -5, max: 2 ** 31 }), fc.constant(Number.MAX_SAFE_INTEGER)),
        // A random source gone wrong must not break the bounds either.
        fc.oneof(fc.double({ min: 0, max: 1, maxExcluded: true }), fc.constant(Number.NaN)),
        fc.double({ min: 0, max: 1e12, noNaN: true }),
        (backoff, attempt, random, previous) => {
          const delay = backoffDelay(backoff, attempt, () => random, previous);
          expect(delay).toBeGreaterThanOrEqual(0);
          expect(delay).toBeLessThanOrEqual(backoff.maxDelay);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  verifies('L7', () => {
    for (const attempt of [1, 64, 1_024, 5_000, 2 ** 31 - 1]) {
      for (const jitter of jitters) {
        const delay = backoffDelay(
          { ...settings, maxDelay: 300_000, jitter },
          attempt,
          () => 0.999,
        );
        expect(delay).toBeLessThanOrEqual(300_000);
      }
    }
    expect(backoffDelay(settings, 5_000)).toBe(30_000);
    expect(backoffDelay({ ...settings, baseDelay: 0 }, 5_000)).toBe(30_000);
  });

  verifies('M17', () => {
    const delays = [1, 2, 3, 4].map((attempt) => backoffDelay({ ...settings, factor: 3 }, attempt));
    expect(delays).toEqual([100, 300, 900, 2_700]);
  });

  test('each jitter spreads over the interval that it documents', () => {
    const at = (jitter: Jitter, random: number, previous = 0) =>
      backoffDelay({ ...settings, jitter }, 3, () => random, previous);
    expect([at('full', 0), at('full', 0.5)]).toEqual([0, 200]);
    expect([at('equal', 0), at('equal', 0.5)]).toEqual([200, 300]);
    expect([at('decorrelated', 0, 400), at('decorrelated', 0.5, 400)]).toEqual([100, 650]);
    expect(at('decorrelated', 0.5)).toBe(200);
    expect(at('decorrelated', 0.999, 1e9)).toBeLessThanOrEqual(30_000);
  });
});
