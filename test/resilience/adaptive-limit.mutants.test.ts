import { describe, expect, test } from 'vitest';
import { AdaptiveLimit } from '../../src/resilience/adaptive-limit.ts';
import type { AdaptiveLimitSettings } from '../../src/resilience/policy.ts';

const setUp = (settings: Partial<AdaptiveLimitSettings> = {}) => {
  const adaptive = new AdaptiveLimit({ max: 1_000, ...settings });
  /** As many samples as one decision takes. */
  const window = (rtt: number, { inflight = adaptive.limit, dropped = 0 } = {}) => {
    const size = Math.max(16, adaptive.limit);
    for (let i = 0; i < size; i++) adaptive.onSample(rtt, inflight, i < dropped);
    return adaptive.limit;
  };
  /** What calls that began under another limit leave behind. */
  const drain = (calls: number) => {
    for (let i = 0; i < calls; i++) adaptive.onSample(1e6, 1, true);
  };
  return { adaptive, window, drain };
};

describe('bounds', () => {
  test('it starts with 10, or with the bound that is nearer', () => {
    const start = (settings: AdaptiveLimitSettings) => new AdaptiveLimit(settings).limit;
    expect(start({ max: 100 })).toBe(10);
    expect(start({ max: 5 })).toBe(5);
    expect(start({ min: 20, max: 100 })).toBe(20);
    expect(start({ max: 100, initial: 30 })).toBe(30);
    expect(start({ min: 7, max: 7 })).toBe(7);
  });

  test('they must not cross', () => {
    expect(() => new AdaptiveLimit({ min: 5, max: 4 })).toThrow(
      'adaptiveLimit.max must be at least adaptiveLimit.min (5), got 4',
    );
    expect(() => new AdaptiveLimit({ min: 5, max: 4 }, 'x')).toThrow(
      'x.max must be at least x.min',
    );
    expect(() => new AdaptiveLimit({ max: 0 })).toThrow('adaptiveLimit.max must be');
  });

  test('hold whatever happens', () => {
    const { window } = setUp({ max: 11 });
    expect(window(10)).toBe(11);
    expect(window(10)).toBe(11);
    const falling = setUp({ min: 8 });
    expect(falling.window(10, { dropped: 16 })).toBe(8);
  });
});

describe('a decision', () => {
  test('comes with the sixteenth sample, or with as many as the limit is', () => {
    const { adaptive } = setUp();
    for (let i = 0; i < 15; i++) adaptive.onSample(10, 10, false);
    expect(adaptive.limit).toBe(10);
    adaptive.onSample(10, 10, false);
    expect(adaptive.limit).toBe(11);

    const { adaptive: larger } = setUp({ initial: 40 });
    for (let i = 0; i < 39; i++) larger.onSample(10, 40, false);
    expect(larger.limit).toBe(40);
    larger.onSample(10, 40, false);
    expect(larger.limit).toBe(43);
  });

  test('grows by half the root of the limit while the latency is good, by 1 at least', () => {
    // 10 + 1.58, + 1.70
    const { window } = setUp();
    expect([window(10), window(10)]).toEqual([11, 13]);
    const { window: small } = setUp({ initial: 2 });
    expect([small(10), small(10)]).toEqual([3, 4]);
  });

  test('takes half the share of what was dropped off the limit', () => {
    const { window } = setUp({ initial: 16 });
    expect(window(10, { dropped: 8 })).toBe(12);
    const { window: all } = setUp({ initial: 16 });
    expect(all(10, { dropped: 16 })).toBe(8);
  });

  test('leaves a limit alone that is not in use, up to half of it', () => {
    const { window } = setUp({ initial: 20 });
    expect(window(10, { inflight: 9 })).toBe(20);
    expect(window(10, { inflight: 9 })).toBe(20);
    expect(window(10, { inflight: 10 })).toBe(22);
  });

  test('bears latency up to the tolerance and shrinks beyond it, to half at most', () => {
    // The unloaded latency is known from the first window: 10 ms.
    const limitAt = (rtt: number, settings: Partial<AdaptiveLimitSettings> = {}) => {
      const { window } = setUp({ initial: 16, ...settings });
      window(10, { inflight: 1 });
      return window(rtt);
    };
    expect(limitAt(15)).toBe(18);
    // 16 * 15 / 20 + 2
    expect(limitAt(20)).toBe(14);
    expect(limitAt(1_000)).toBe(10);
    expect(limitAt(20, { tolerance: 2 })).toBe(18);
  });

  test('forgets the samples of the one before', () => {
    const { window } = setUp({ initial: 16 });
    window(10, { inflight: 16, dropped: 16 });
    // Half of 16; what was dropped then and how many were in flight is over.
    expect(window(10, { inflight: 1 })).toBe(8);
    expect(window(10, { inflight: 8 })).toBe(9);
  });
});

describe('a probe', () => {
  test('lowers the limit to a third, measures, and goes back', () => {
    const { adaptive, window, drain } = setUp();
    window(10);
    window(10);
    // The third decision: 15.1 by now.
    expect(window(10)).toBe(5);
    drain(12);
    // Twelve of thirteen were of the former limit; these measure.
    for (let i = 0; i < 15; i++) adaptive.onSample(10, 5, false);
    expect(adaptive.limit).toBe(5);
    adaptive.onSample(10, 5, false);
    expect(adaptive.limit).toBe(15);
    drain(4);
    // As expected: no further probe for a long time.
    const limits = Array.from({ length: 49 }, () => window(10));
    expect(limits.every((limit, i) => limit > (limits[i - 1] ?? 15))).toBe(true);
    expect(window(10)).toBeLessThan(limits[48] ?? 0);
  });

  test('never goes below the least', () => {
    const { window } = setUp({ min: 9 });
    window(10);
    window(10);
    expect(window(10)).toBe(9);
  });

  test('comes early when four decisions in a row do not go with what was measured', () => {
    const known = () => {
      const { window } = setUp({ initial: 100 });
      // Twice the same while it was not in use: 10 ms is certain, the next probe far.
      expect([1, 2].map(() => window(10, { inflight: 1 }))).toEqual([100, 100]);
      return window;
    };
    const slower = known();
    expect([1, 2, 3, 4].map(() => slower(40))).toEqual([55, 31, 18, 3]);
    const faster = known();
    expect([1, 2, 3, 4].map(() => faster(5))).toEqual([105, 110, 115, 40]);
    // 7 ms is as good as 10, and one good decision ends the doubts.
    const usual = known();
    expect([1, 2, 3, 4].map(() => usual(7))).toEqual([105, 110, 115, 120]);
    const mixed = known();
    for (let i = 0; i < 3; i++) mixed(40);
    expect(mixed(10)).toBe(20);
    expect(mixed(40)).toBeGreaterThan(10);
  });

  test('takes in half of what it finds, an idle time a tenth', () => {
    // Unloaded 10 ms, then 20 ms: the baseline becomes 11, and 16.5 ms is still good.
    const { window } = setUp({ initial: 16 });
    window(10, { inflight: 1 });
    window(20, { inflight: 1 });
    expect(window(16.4)).toBe(18);
    const other = setUp({ initial: 16 });
    other.window(10, { inflight: 1 });
    other.window(20, { inflight: 1 });
    expect(other.window(33)).toBe(10);
  });
});
