import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CircuitBreaker } from '../../src/resilience/circuit-breaker.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import {
  overridePolicy,
  type PolicySettings,
  usualProbeLease,
} from '../../src/resilience/policy.ts';
import { presets } from '../../src/resilience/presets.ts';
import { SettingsError } from '../../src/resilience/settings.ts';
import { verifies } from '../fixtures/verifies.ts';

const problemsOf = (settings: unknown): readonly string[] => {
  try {
    createPipeline('x', settings as PolicySettings).destroy();
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
};

describe('policy', () => {
  verifies('policy.presets', () => {
    const matrix = Object.entries(presets).map(([name, preset]) => {
      const { breaker, retry, rateLimit } = preset;
      if (!breaker || !retry) throw new Error(`${name} lacks a policy`);
      const rate = rateLimit ? `${rateLimit.limit}/${rateLimit.interval}` : 'none';
      return [
        name,
        breaker.threshold,
        breaker.openDuration,
        retry.maxRetries,
        retry.baseDelay,
        rate,
      ];
    });
    expect(matrix).toEqual([
      ['public-api', 3, 60_000, 2, 2_000, '10/60000'],
      ['paid-api', 5, 30_000, 3, 1_000, 'none'],
      ['internal', 3, 15_000, 2, 500, '100/60000'],
      ['database', 2, 10_000, 2, 200, '50/60000'],
      ['filesystem', 1, 5_000, 1, 100, 'none'],
    ]);
    for (const preset of Object.values(presets)) expect(problemsOf(preset)).toEqual([]);
  });

  verifies('policy.validated', () => {
    const problems = problemsOf({
      timeout: 0,
      deadline: Number.NaN,
      retry: { maxRetries: 1.5, jitter: 'some', budget: { ratio: -1 } },
      breaker: { threshold: '3', treshold: 3 },
      rateLimit: { interval: 1_000 },
      bulkhead: 5,
      cache: null,
      hedge: { delay: Number.POSITIVE_INFINITY },
      unknown: true,
    });
    expect(problems).toEqual([
      'timeout must be a number from 1 to 86400000 (ms), got 0',
      'deadline must be a number from 1 to 86400000 (ms), got NaN',
      'retry.maxRetries must be a whole number from 0 to 10, got 1.5',
      'retry.jitter must be one of "full", "equal", "decorrelated", "none", got "some"',
      'retry.budget.ratio must be a number from 0 to 10, got -1',
      'breaker.threshold must be a whole number from 1 to 1000000, got "3"',
      expect.stringMatching(/^breaker\.treshold is not a setting; known are window, threshold/),
      'rateLimit.limit must be given: a whole number from 1 to 1000000',
      'bulkhead must be an object, got 5',
      'cache must be an object, got null',
      'hedge.delay must be a number from 0 to 86400000 (ms), got Infinity',
      expect.stringMatching(/^unknown is not a setting; known are deadline/),
    ]);
  });

  test('anything at all is either taken or refused with a path, never crashed on', () => {
    fc.assert(
      fc.property(fc.anything(), (settings) => {
        for (const problem of problemsOf(settings ?? {}))
          expect(problem).toMatch(/ must be | is not a setting/);
      }),
    );
  });

  test('a policy used alone checks its settings too', () => {
    expect(() => new CircuitBreaker('x', { threshold: 0 })).toThrow(
      'breaker.threshold must be a whole number from 1 to 1000000, got 0',
    );
  });

  test('an undefined setting counts as absent', () => {
    const settings = { threshold: undefined } as unknown as { threshold: number };
    const breaker = new CircuitBreaker('x', settings);
    expect(breaker.settings.threshold).toBe(5);
    breaker.destroy();
  });

  test('a probe is given as long as its call may take, and a second to be late', () => {
    expect(usualProbeLease({ deadline: 5_000, timeout: 60_000 })).toBe(6_000);
    expect(usualProbeLease({ timeout: 1_000 })).toBe(2_000);
    expect(usualProbeLease({ timeout: 1_000, retry: false })).toBe(2_000);
    expect(usualProbeLease({ timeout: 1_000, retry: {} })).toBe(3 * 1_000 + 2 * 30_000 + 1_000);
    const retry = { maxRetries: 1, maxDelay: 10 };
    expect(usualProbeLease({ timeout: 1_000, retry })).toBe(3_010);
    expect(usualProbeLease({ deadline: 86_400_000 })).toBe(86_400_000);
    expect(usualProbeLease({ retry: {} })).toBeUndefined();
    const pipeline = createPipeline('x', { timeout: 50_000, retry: {}, breaker: {} });
    expect(pipeline.breaker?.settings.probeLease).toBe(211_000);
    pipeline.destroy();
  });

  test('overridePolicy lays one over the other, group by group', () => {
    const merged = overridePolicy(presets['public-api'], {
      timeout: 500,
      breaker: { openDuration: 1 },
      rateLimit: false,
      bulkhead: { limit: 2 },
    });
    expect(merged).toEqual({
      deadline: 45_000,
      timeout: 500,
      breaker: { threshold: 3, openDuration: 1 },
      retry: { maxRetries: 2, baseDelay: 2_000 },
      rateLimit: false,
      bulkhead: { limit: 2 },
    });
    expect(presets['public-api'].timeout).toBe(10_000);
  });
});
