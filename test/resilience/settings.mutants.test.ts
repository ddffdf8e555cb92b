import { describe, expect, test } from 'vitest';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import { overridePolicy, type PolicySettings, policyRules } from '../../src/resilience/policy.ts';
import { presets } from '../../src/resilience/presets.ts';
import { PipelineRegistry } from '../../src/resilience/registry.ts';
import {
  allowed,
  check,
  type Rules,
  resolve,
  SettingsError,
} from '../../src/resilience/settings.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

const problemsOf = (settings: unknown, options = {}): string[] => {
  const problems: string[] = [];
  check(policyRules, settings, '', problems, options);
  return problems;
};

/** What may be set, as the documentation says: unit, least, most, default. */
const numbers: Record<string, Record<string, [string, number, number, number?]>> = {
  rateLimit: {
    limit: ['', 1, 1_000_000],
    interval: ['ms', 1, 86_400_000, 1_000],
    burst: ['', 1, 1_000_000],
    maxWait: ['ms', 0, 86_400_000, 0],
    maxKeys: ['', 1, 10_000_000, 10_000],
  },
  bulkhead: {
    limit: ['', 1, 100_000],
    queue: ['', 0, 1_000_000, 0],
    maxWait: ['ms', 0, 86_400_000, 60_000],
  },
  breaker: {
    threshold: ['', 1, 1_000_000, 5],
    size: ['', 1, 1_000_000, 100],
    duration: ['ms', 10, 86_400_000, 30_000],
    minimumCalls: ['', 1, 1_000_000, 10],
    slowCallDuration: ['ms', 1, 86_400_000],
    openDuration: ['ms', 1, 86_400_000, 30_000],
    probes: ['', 1, 1_000, 1],
    successThreshold: ['', 1, 1_000, 1],
    probeLease: ['ms', 1, 86_400_000, 60_000],
  },
  retry: {
    maxRetries: ['', 0, 10, 2],
    baseDelay: ['ms', 0, 86_400_000, 500],
    maxDelay: ['ms', 0, 86_400_000, 30_000],
  },
  hedge: { delay: ['ms', 0, 86_400_000, 2_000], maxHedges: ['', 1, 5, 1] },
  cache: {
    ttl: ['ms', 1, 86_400_000],
    staleWhileRevalidate: ['ms', 0, 86_400_000, 0],
    staleIfError: ['ms', 0, 86_400_000, 0],
    maxEntries: ['', 1, 10_000_000, 1_000],
  },
};
const shares: Record<string, Record<string, [number, number, number?]>> = {
  breaker: {
    failureRate: [0.001, 1, 0.5],
    slowCallRate: [0.001, 1, 1],
    openBackoff: [1, 10, 1],
  },
  retry: { factor: [1, 10, 2] },
  hedge: { quantile: [0.5, 0.999] },
};
/** What has to be given whatever else is. */
const needed: Record<string, object> = {
  rateLimit: { limit: 1 },
  bulkhead: { limit: 1 },
  cache: { ttl: 1 },
};

const settingsOf = (group: string, name: string, value: unknown) => ({
  [group]: { ...needed[group], [name]: value },
});
const defaultsOf = (group: string): Record<string, unknown> => {
  const rule = policyRules[group];
  if (rule?.kind !== 'group') throw new Error(`${group} is no group`);
  return resolve<Record<string, unknown>>(rule.rules, { ...needed[group] }, group);
};

describe('each number', () => {
  const cases = Object.entries(numbers).flatMap(([group, settings]) =>
    Object.entries(settings).map(([name, [unit, min, max, usual]]) => ({
      group,
      name,
      unit,
      min,
      max,
      usual,
    })),
  );
  test.each(cases)('$group.$name from $min to $max', ({ group, name, unit, min, max, usual }) => {
    for (const value of [min, max]) {
      expect(problemsOf(settingsOf(group, name, value))).toEqual([]);
    }
    const whole = unit === '' ? 'a whole number' : 'a number';
    const tail = unit === '' ? '' : ` (${unit})`;
    for (const value of [min - 1, max + 1]) {
      const [problem] = problemsOf(settingsOf(group, name, value));
      expect(problem).toContain(`${group}.${name} must be ${whole} from ${min} to ${max}${tail}`);
      expect(problem).toContain(`got ${value}`);
    }
    expect(problemsOf(settingsOf(group, name, min + 0.5))).toHaveLength(unit === '' ? 1 : 0);
    if (!(name in (needed[group] ?? {}))) expect(defaultsOf(group)[name]).toBe(usual);
  });

  const shareCases = Object.entries(shares).flatMap(([group, settings]) =>
    Object.entries(settings).map(([name, [min, max, usual]]) => ({ group, name, min, max, usual })),
  );
  test.each(shareCases)('$group.$name from $min to $max', ({ group, name, min, max, usual }) => {
    for (const value of [min, (min + max) / 2, max]) {
      expect(problemsOf(settingsOf(group, name, value))).toEqual([]);
    }
    for (const value of [min - 0.0001, max + 0.0001]) {
      expect(problemsOf(settingsOf(group, name, value))).toEqual([
        `${group}.${name} must be a number from ${min} to ${max}, got ${value}`,
      ]);
    }
    expect(defaultsOf(group)[name]).toBe(usual);
  });

  test('of the whole call and of the budget and the adaptive limit', () => {
    for (const name of ['deadline', 'timeout']) {
      expect(problemsOf({ [name]: 1 })).toEqual([]);
      expect(problemsOf({ [name]: 0.5 })[0]).toContain('from 1 to 86400000 (ms)');
    }
    const budget = (value: object) => problemsOf({ retry: { budget: value } });
    expect(budget({ ratio: 0, floor: 0, interval: 10 })).toEqual([]);
    expect(budget({ ratio: 10.1, floor: 0.5, interval: 9 })).toEqual([
      'retry.budget.ratio must be a number from 0 to 10, got 10.1',
      'retry.budget.floor must be a whole number from 0 to 1000000, got 0.5',
      'retry.budget.interval must be a number from 10 to 86400000 (ms), got 9',
    ]);
    const adaptive = (value: object) => problemsOf({ bulkhead: { limit: value } });
    expect(adaptive({ min: 1, max: 100_000, initial: 1, tolerance: 5 })).toEqual([]);
    expect(adaptive({ min: 0, initial: 0, tolerance: 0.9 })).toEqual([
      'bulkhead.limit.min must be a whole number from 1 to 100000, got 0',
      'bulkhead.limit.initial must be a whole number from 1 to 100000, got 0',
      'bulkhead.limit.tolerance must be a number from 1 to 5, got 0.9',
      'bulkhead.limit.max must be given: a whole number from 1 to 100000',
    ]);
  });
});

describe('each choice and flag', () => {
  test.each([
    ['breaker', 'window', ['consecutive', 'count', 'time']],
    ['breaker', 'scope', ['call', 'attempt']],
    ['retry', 'jitter', ['full', 'equal', 'decorrelated', 'none']],
  ])('%s.%s', (group, name, choices) => {
    for (const choice of choices) expect(problemsOf({ [group]: { [name]: choice } })).toEqual([]);
    expect(problemsOf({ [group]: { [name]: 'odd' } })).toEqual([
      `${group}.${name} must be one of ${choices.map((c) => `"${c}"`).join(', ')}, got "odd"`,
    ]);
    expect(defaultsOf(group)[name]).toBe(choices[0]);
  });

  test('retry.respectRetryAfter', () => {
    for (const value of [true, false]) {
      expect(problemsOf({ retry: { respectRetryAfter: value } })).toEqual([]);
    }
    expect(problemsOf({ retry: { respectRetryAfter: 'yes' } })).toEqual([
      'retry.respectRetryAfter must be true or false, got "yes"',
    ]);
    expect(defaultsOf('retry').respectRetryAfter).toBe(true);
  });
});

describe('what is wrong', () => {
  test('is shown as it was given', () => {
    const shown = (timeout: unknown) => problemsOf({ timeout })[0]?.split('got ')[1];
    expect(shown(true)).toBe('true');
    expect(shown('x'.repeat(50))).toBe(`"${'x'.repeat(40)}"`);
    expect(shown(null)).toBe('null');
    expect(shown([])).toBe('a value of type array');
    expect(shown({})).toBe('a value of type object');
    expect(shown(() => {})).toBe('a value of type function');
  });

  test('is every group that is none, and not one that is switched off', () => {
    for (const group of ['rateLimit', 'bulkhead', 'breaker', 'retry', 'hedge', 'cache']) {
      expect(problemsOf({ [group]: false })).toEqual([]);
      expect(problemsOf({ [group]: undefined })).toEqual([]);
      for (const value of [true, null, 5, []]) {
        expect(problemsOf({ [group]: value })[0]).toContain(`${group} must be an object, got`);
      }
    }
    for (const value of [undefined, null, 5, []]) {
      expect(problemsOf(value)[0]).toContain('settings must be an object, got');
    }
  });

  test('is named with all that is known', () => {
    expect(problemsOf({ toString: 1 })).toEqual([
      'toString is not a setting; known are deadline, timeout, rateLimit, bulkhead, breaker, retry, hedge, cache',
    ]);
    expect(problemsOf({ cache: { ttl: 1, tll: 1 } })[0]).toMatch(
      /^cache\.tll is not a setting; known are ttl, stale/,
    );
  });

  test('is not what stands in the settings underneath', () => {
    expect(problemsOf({ cache: {} })).toEqual([
      'cache.ttl must be given: a number from 1 to 86400000 (ms)',
    ]);
    expect(problemsOf({ cache: {}, bulkhead: { limit: {} } }, { partial: true })).toEqual([]);
  });

  test('is told at once, all of it', () => {
    const make = () => createPipeline('x', { timeout: 0, deadline: 0 });
    expect(make).toThrow(SettingsError);
    expect(make).toThrow(
      'timeout must be a number from 1 to 86400000 (ms), got 0; deadline must be a number from 1 to 86400000 (ms), got 0',
    );
    try {
      make();
    } catch (error) {
      expect(error).toMatchObject({ name: 'SettingsError' });
      expect((error as SettingsError).problems).toHaveLength(2);
    }
  });

  test('is put in words for every kind of rule', () => {
    const rules: Rules = policyRules;
    const bulkhead = rules.bulkhead?.kind === 'group' ? rules.bulkhead.rules : {};
    expect(bulkhead.limit && allowed(bulkhead.limit)).toBe(
      'a whole number from 1 to 100000, or an object of min, max, initial, tolerance',
    );
    expect(rules.cache && allowed(rules.cache)).toBe('an object, or false to switch it off');
  });
});

describe('overridePolicy', () => {
  test('keeps what is not named, whatever lies underneath', () => {
    expect(overridePolicy({ timeout: 5 }, { timeout: undefined } as never)).toEqual({ timeout: 5 });
    expect(overridePolicy({ retry: false }, { retry: { maxRetries: 1 } })).toEqual({
      retry: { maxRetries: 1 },
    });
    expect(overridePolicy({ retry: { maxRetries: 1 } }, { retry: false })).toEqual({
      retry: false,
    });
    expect(overridePolicy({ cache: null as never }, { cache: { ttl: 1 } })).toEqual({
      cache: { ttl: 1 },
    });
  });
});

describe('presets', () => {
  test('keep a whole call below the 60 s after which MCP clients give up', () => {
    const limits = Object.fromEntries(
      Object.entries(presets).map(([name, { deadline, timeout }]) => [name, [timeout, deadline]]),
    );
    expect(limits).toEqual({
      'public-api': [10_000, 45_000],
      'paid-api': [15_000, 55_000],
      internal: [5_000, 20_000],
      database: [5_000, 15_000],
      filesystem: [5_000, 10_000],
    });
  });
});

describe('PipelineRegistry', () => {
  test('keeps what it made, in order, once under each name, until it is destroyed', () => {
    const clock = new ManualClock();
    const registry = new PipelineRegistry({ clock });
    const settings: PolicySettings = { breaker: { threshold: 1 } };
    const first = registry.create('a', settings);
    const second = registry.create('b', settings, { clock: new ManualClock() });
    expect([...registry]).toEqual([first, second]);
    expect(registry.get('a')).toBe(first);
    expect(registry.get('c')).toBeUndefined();
    expect(() => registry.create('a', {})).toThrow(
      'a pipeline named "a" exists already: use get("a") to share it',
    );
    first.breaker?.recordFailure();
    second.breaker?.recordFailure();
    // The clock of the registry, unless another one was given.
    expect(clock.pendingTimers).toBe(1);
    registry.destroy();
    expect(clock.pendingTimers).toBe(0);
    expect([...registry]).toEqual([]);
    expect(registry.create('a', {})).not.toBe(first);
  });
});
