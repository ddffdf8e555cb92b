import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classify } from '../../src/resilience/failure.ts';
import { Retry } from '../../src/resilience/retry.ts';
import { RetryBudget } from '../../src/resilience/retry-budget.ts';
import { SettingsError } from '../../src/resilience/settings.ts';
import { verifies } from '../fixtures/verifies.ts';

const refused = classify(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }));
const failed = {
  failure: refused,
  attempt: 1,
  idempotent: true,
  remaining: Number.POSITIVE_INFINITY,
  previousDelay: 0,
  now: 0,
};
const throttled = (retryAfter: number) =>
  classify({ status: 429, headers: { 'retry-after': String(retryAfter) } });

describe('Retry', () => {
  verifies('retry.full-jitter-default', () => {
    const at = (random: number) =>
      [1, 2, 3].map((attempt) =>
        new Retry({ maxRetries: 5, baseDelay: 100 }, { random: () => random }).decide({
          ...failed,
          attempt,
        }),
      );
    expect(at(0)).toEqual([0, 0, 0]);
    expect(at(0.5)).toEqual([50, 100, 200]);
    expect(at(1 - Number.EPSILON).map((delay) => Math.ceil(Number(delay)))).toEqual([
      100, 200, 400,
    ]);
  });

  verifies('L17', () => {
    const retry = new Retry({ baseDelay: 100, jitter: 'none', respectRetryAfter: false });
    expect(retry.decide({ ...failed, failure: throttled(60) })).toBe(100);
  });

  verifies('L34', () => {
    const retry = new Retry({ maxDelay: 30_000 }, { random: () => 0 });
    expect(retry.decide({ ...failed, failure: throttled(20) })).toBe(20_000);
    expect(retry.decide({ ...failed, failure: throttled(600) })).toBe('retry_after');
  });

  verifies('M19', () => {
    const month = throttled(2_592_000);
    expect(new Retry().decide({ ...failed, failure: month })).toBe('retry_after');
    expect(month.retryAfter).toBe(2_592_000);
  });

  test('jitter is added on top of Retry-After, never below it and never beyond the cap', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 40 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (seconds, random) => {
          const retry = new Retry({ maxDelay: 30_000 }, { random: () => random });
          const delay = retry.decide({ ...failed, failure: throttled(seconds) });
          if (seconds > 30) expect(delay).toBe('retry_after');
          else {
            expect(delay).toBeGreaterThanOrEqual(seconds * 1_000);
            expect(delay).toBeLessThanOrEqual(30_000);
          }
        },
      ),
    );
  });

  test('a Retry-After that is no time to wait is as good as none', () => {
    const retry = new Retry({ baseDelay: 100, jitter: 'none', budget: false });
    for (const retryAfter of [Number.NaN, -5]) {
      const failure = { ...throttled(1), retryAfter };
      expect(retry.decide({ ...failed, failure })).toBe(100);
    }
  });

  test('says why there is no further attempt', () => {
    const retry = new Retry({
      maxRetries: 1,
      baseDelay: 100,
      jitter: 'none',
      budget: { floor: 1, ratio: 0 },
    });
    expect(retry.decide({ ...failed, failure: classify(new TypeError('bug')) })).toBe(
      'not_retryable',
    );
    expect(retry.decide({ ...failed, failure: classify({ status: 503 }), idempotent: false })).toBe(
      'not_idempotent',
    );
    expect(retry.decide({ ...failed, attempt: 2 })).toBe('exhausted');
    expect(retry.decide({ ...failed, remaining: 100 })).toBe('deadline');
    expect(retry.decide({ ...failed, remaining: 101 })).toBe(100);
    expect(retry.decide(failed)).toBe('budget');
  });
});

describe('RetryBudget', () => {
  test('in any period, extras are at most the floor or the share of calls, and it recovers', () => {
    const step = fc.record({ wait: fc.integer({ min: 0, max: 3_000 }), extra: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const budget = new RetryBudget({ ratio: 0.2, floor: 3 });
        const calls: number[] = [];
        const extras: number[] = [];
        let now = 0;
        for (const { wait, extra } of steps) {
          now += wait;
          if (!extra) {
            budget.onCall(now);
            calls.push(now);
            continue;
          }
          const young = (times: number[], age: number) =>
            times.filter((at) => now - at < age).length;
          const taken = budget.tryTake(now);
          if (taken) extras.push(now);
          // Exact up to one slot (a tenth of the period) at the old end.
          if (taken)
            expect(young(extras, 9_000)).toBeLessThanOrEqual(
              Math.max(3, 0.2 * young(calls, 10_000)),
            );
          else
            expect(young(extras, 10_000) + 1).toBeGreaterThan(
              Math.max(3, 0.2 * young(calls, 9_000)),
            );
        }
        expect(budget.stats(now + 10_000)).toEqual({ calls: 0, extras: 0, available: 3 });
      }),
    );
  });

  test('refuses settings that make no sense, an empty period before all', () => {
    expect(() => new RetryBudget({ interval: 0 })).toThrow('retry.budget.interval must be');
    expect(() => new RetryBudget({ ratio: -1, floor: 0.5 })).toThrow(SettingsError);
  });

  test('recovers, wherever the origin of the clock lies', () => {
    for (const origin of [-50_000, -10_500, 2 ** 50]) {
      const budget = new RetryBudget({ ratio: 0, floor: 1 });
      expect([budget.tryTake(origin), budget.tryTake(origin + 100)]).toEqual([true, false]);
      expect(budget.tryTake(origin + 11_000)).toBe(true);
    }
  });

  test('a ratio of 0 and a floor of 0 allow no extra at all', () => {
    const budget = new RetryBudget({ ratio: 0, floor: 0 });
    budget.onCall(0);
    expect(budget.tryTake(0)).toBe(false);
  });
});
