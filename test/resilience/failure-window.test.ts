import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ConsecutiveWindow,
  CountWindow,
  createWindow,
  TimeWindow,
} from '../../src/resilience/failure-window.ts';
import { verifies } from '../fixtures/verifies.ts';

const thresholds = { failureRate: 0.5, slowCallRate: 0.5, minimumCalls: 4 };
const outcome = fc.record({ failed: fc.boolean(), slow: fc.boolean() });
const tally = (calls: { failed: boolean; slow: boolean }[]) => ({
  calls: calls.length,
  failures: calls.filter((call) => call.failed).length,
  slow: calls.filter((call) => call.slow).length,
});

describe('failure windows', () => {
  verifies('breaker.windows', () => {
    // Consecutive: the run of failures that the sequence ends with.
    fc.assert(
      fc.property(fc.array(fc.boolean()), fc.integer({ min: 1, max: 5 }), (calls, threshold) => {
        const window = new ConsecutiveWindow(threshold);
        for (const failed of calls) window.record(failed, false);
        const run = calls.length - 1 - calls.lastIndexOf(false);
        expect(window.counts().failures).toBe(run);
        expect(window.tripped()).toBe(run >= threshold);
      }),
    );
    // Count: exactly the last `size` calls.
    fc.assert(
      fc.property(
        fc.array(outcome, { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        (calls, size) => {
          const window = new CountWindow(size, thresholds);
          for (const { failed, slow } of calls) window.record(failed, slow);
          expect(window.counts()).toEqual(tally(calls.slice(-size)));
        },
      ),
    );
    // Time: never forgets what is younger than nine tenths, never remembers what is older than all of it.
    const timed = fc.array(fc.tuple(outcome, fc.integer({ min: 0, max: 400 })), { maxLength: 60 });
    fc.assert(
      fc.property(timed, fc.integer({ min: 0, max: 3_000 }), (calls, idle) => {
        const window = new TimeWindow(1_000, thresholds);
        const seen: { failed: boolean; slow: boolean; at: number }[] = [];
        let now = 5_000;
        for (const [call, wait] of calls) {
          now += wait;
          window.record(call.failed, call.slow, now);
          seen.push({ ...call, at: now });
        }
        now += idle;
        const counts = window.counts(now);
        const sure = tally(seen.filter((call) => now - call.at < 900));
        const most = tally(seen.filter((call) => now - call.at < 1_000));
        for (const key of ['calls', 'failures', 'slow'] as const) {
          expect(counts[key]).toBeGreaterThanOrEqual(sure[key]);
          expect(counts[key]).toBeLessThanOrEqual(most[key]);
        }
        if (idle >= 1_000) expect(counts).toEqual({ calls: 0, failures: 0, slow: 0 });
      }),
    );
  });

  test('reset forgets everything', () => {
    const windows = [
      new ConsecutiveWindow(3),
      new CountWindow(5, thresholds),
      new TimeWindow(1_000, thresholds),
    ];
    for (const window of windows) {
      for (let i = 0; i < 7; i++) window.record(true, true, 100);
      expect(window.tripped(100)).toBe(true);
      window.reset();
      expect(window.counts(100)).toEqual({ calls: 0, failures: 0, slow: 0 });
      expect(window.tripped(100)).toBe(false);
    }
  });

  test('a share that is met exactly trips, however the product rounds', () => {
    for (const [failures, rate] of [
      [7, 0.07],
      [14, 0.14],
      [55, 0.55],
    ] as const) {
      const window = new CountWindow(100, { ...thresholds, failureRate: rate, minimumCalls: 100 });
      for (let call = 0; call < 100; call++) window.record(call >= 100 - failures, false);
      expect(window.tripped()).toBe(true);
      window.record(false, false);
      for (let call = 0; call < 100 - failures; call++) window.record(false, false);
      expect(window.tripped()).toBe(false);
    }
  });

  test('a time window forgets, wherever the origin of the clock lies', () => {
    for (const origin of [-5_000, -1_050, 0, 2 ** 50]) {
      const window = new TimeWindow(1_000, thresholds);
      for (let i = 0; i < 5; i++) window.record(true, false, origin + i * 100);
      expect(window.counts(origin + 400)).toMatchObject({ calls: 5, failures: 5 });
      expect(window.counts(origin + 1_200)).toMatchObject({ calls: 2, failures: 2 });
      expect(window.counts(origin + 2_000)).toMatchObject({ calls: 0, failures: 0 });
    }
  });

  test('a count window that is asked for more calls than it remembers still trips', () => {
    const settings = { window: 'count', threshold: 5, size: 4, duration: 1_000 } as const;
    const window = createWindow({
      ...settings,
      failureRate: 0.5,
      slowCallRate: 1,
      minimumCalls: 100,
    });
    for (let i = 0; i < 4; i++) window.record(true, false, 0);
    expect(window.tripped(0)).toBe(true);
  });
});
