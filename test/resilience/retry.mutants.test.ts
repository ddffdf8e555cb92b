import { describe, expect, test } from 'vitest';
import { classify, createFailure } from '../../src/resilience/failure.ts';
import { Retry } from '../../src/resilience/retry.ts';
import { RetryBudget } from '../../src/resilience/retry-budget.ts';

const failed = {
  failure: createFailure('CONNECTION_REFUSED'),
  attempt: 1,
  idempotent: true,
  remaining: Number.POSITIVE_INFINITY,
  previousDelay: 0,
  now: 0,
};
const throttled = (seconds: number) =>
  classify({ status: 429, headers: { 'retry-after': String(seconds) } });

describe('Retry', () => {
  test('what is not retryable and what is the caller’s to mend are both left alone', () => {
    const retry = new Retry();
    const tls = createFailure('TLS_FAILURE');
    expect([tls.weight, tls.retryable]).toEqual(['infrastructure', false]);
    expect(retry.decide({ ...failed, failure: tls })).toBe('not_retryable');
    const fault = { ...failed.failure, weight: 'caller', retryable: true } as const;
    expect(retry.decide({ ...failed, failure: fault })).toBe('not_retryable');
  });

  test('on top of Retry-After comes a tenth of it at most, and never more than 100 ms', () => {
    const retry = new Retry({}, { random: () => 0.5 });
    expect(retry.decide({ ...failed, failure: throttled(0.5) })).toBe(525);
    expect(retry.decide({ ...failed, failure: throttled(20) })).toBe(20_050);
  });

  test('a Retry-After that ends with the deadline or later is the reason to give up', () => {
    const retry = new Retry({}, { random: () => 0 });
    const failure = throttled(20);
    expect(retry.decide({ ...failed, failure, remaining: 20_000 })).toBe('retry_after');
    expect(retry.decide({ ...failed, failure, remaining: 5_000 })).toBe('retry_after');
    expect(retry.decide({ ...failed, failure, remaining: 20_001 })).toBe(20_000);
  });

  test('a wrong budget is named with its path', () => {
    expect(() => new Retry({ budget: { ratio: -1 } })).toThrow('retry.budget.ratio must be');
  });
});

describe('RetryBudget', () => {
  test('a call counts for the time at which it began', () => {
    const budget = new RetryBudget();
    budget.onCall(0);
    budget.onCall(9_500);
    expect(budget.stats(9_500).calls).toBe(2);
    expect(budget.stats(10_500).calls).toBe(1);
  });

  test('what is available is what is allowed less what was taken', () => {
    const budget = new RetryBudget();
    expect(budget.tryTake(0)).toBe(true);
    expect(budget.stats(0)).toEqual({ calls: 0, extras: 1, available: 2 });
  });

  test('time that goes back forgets nothing', () => {
    const budget = new RetryBudget();
    budget.onCall(5_000);
    budget.onCall(1_000);
    expect(budget.stats(5_000).calls).toBe(2);
  });
});
