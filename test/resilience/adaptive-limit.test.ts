import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AdaptiveLimit } from '../../src/resilience/adaptive-limit.ts';
import { Bulkhead } from '../../src/resilience/bulkhead.ts';
import { type Phase, simulate } from '../fixtures/queueing.ts';
import { verifies } from '../fixtures/verifies.ts';

const SECOND = 1_000;
const halved = (servers: number, service: number): Phase[] => [
  { until: 40 * SECOND, servers, service },
  { until: 80 * SECOND, servers: servers / 2, service },
  { until: 120 * SECOND, servers, service },
];

describe('a backend that loses half its capacity and gets it back', () => {
  verifies('adaptive.recovers', () => {
    for (const [servers, service] of [
      [10, 50],
      [20, 100],
      [50, 20],
    ] as const) {
      for (const load of [1.5, 4]) {
        for (const seed of [1, 2]) {
          const phases = halved(servers, service);
          const results = simulate({
            phases,
            load,
            seed,
            settling: 15 * SECOND,
            limit: { max: 500 },
          });
          for (const { throughput, latency } of results) {
            expect(throughput).toBeGreaterThan(0.9);
            expect(latency).toBeLessThan(2);
          }
        }
      }
    }
  });

  test('a fixed limit that suited the whole capacity does not suit half of it', () => {
    // What the adaptive one is measured against: the same backend behind a fixed limit.
    const fixed = { min: 160, max: 160 };
    const phases = halved(40, 50);
    const [, half] = simulate({ phases, load: 10, seed: 1, settling: 15 * SECOND, limit: fixed });
    expect(half?.latency).toBeGreaterThan(7);
  });

  test('slower answers instead of fewer places: it finds the new latency', () => {
    const phases: Phase[] = [
      { until: 60 * SECOND, servers: 20, service: 50 },
      { until: 180 * SECOND, servers: 20, service: 150 },
      { until: 240 * SECOND, servers: 20, service: 50 },
    ];
    const results = simulate({
      phases,
      load: 2,
      seed: 1,
      settling: 30 * SECOND,
      limit: { max: 500 },
    });
    for (const { throughput, latency } of results) {
      expect(throughput).toBeGreaterThan(0.9);
      expect(latency).toBeLessThan(2);
    }
  });

  test('answers of very different length do not starve it', () => {
    const results = simulate({
      phases: halved(20, 50),
      load: 3,
      seed: 1,
      settling: 15 * SECOND,
      // Nine of ten take half the mean, the tenth eleven times as long.
      spread: (random) => (random < 0.9 ? 0.5 : 5.5),
      limit: { max: 500 },
    });
    for (const { throughput, latency } of results) {
      expect(throughput).toBeGreaterThan(0.8);
      expect(latency).toBeLessThan(3);
    }
  });

  test('a start far too high is found out', () => {
    const phases: Phase[] = [{ until: 180 * SECOND, servers: 10, service: 50 }];
    const limit = { max: 1_000, initial: 400 };
    const [result] = simulate({ phases, load: 20, seed: 1, settling: 120 * SECOND, limit });
    expect(result?.latency).toBeLessThan(2);
  });
});

describe('AdaptiveLimit', () => {
  verifies('L36', () => {
    // The report: calls of 12 s, and counting at the end, saw nothing for 12 s and then too much.
    const bulkhead = new Bulkhead('slow', { limit: { min: 2, max: 50, initial: 20 } });
    let admitted = 0;
    // 1 000 calls come before the first has ended: no answer is needed to bound them.
    for (let call = 0; call < 1_000; call += 1) if (bulkhead.tryAcquire()) admitted += 1;
    expect(admitted).toBe(20);
    for (let call = 0; call < 20; call += 1) bulkhead.release(12_000);
    // They were slow, but not slower than ever before: no shedding on that account.
    expect(bulkhead.stats().limit).toBeGreaterThanOrEqual(20);
    bulkhead.destroy();
  });

  verifies('adaptive.bounded', () => {
    const settings = fc
      .tuple(fc.integer({ min: 1, max: 50 }), fc.nat(100), fc.integer({ min: 1, max: 200 }))
      .map(([min, more, initial]) => ({ min, max: min + more, initial }));
    const sample = fc.tuple(
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e6, noNaN: true })),
      fc.integer({ min: 1, max: 200 }),
      fc.boolean(),
    );
    fc.assert(
      fc.property(settings, fc.array(sample, { maxLength: 500, size: 'max' }), (given, samples) => {
        const adaptive = new AdaptiveLimit(given);
        for (const [rtt, inflight, dropped] of samples) {
          expect(adaptive.limit).toBeGreaterThanOrEqual(given.min);
          expect(adaptive.limit).toBeLessThanOrEqual(given.max);
          expect(Number.isInteger(adaptive.limit)).toBe(true);
          adaptive.onSample(rtt, inflight, dropped);
        }
      }),
    );
  });

  test('does not grow while it is not in use', () => {
    const adaptive = new AdaptiveLimit({ max: 1_000, initial: 20 });
    for (let call = 0; call < 10_000; call += 1) adaptive.onSample(10, 3, false);
    expect(adaptive.limit).toBe(20);
  });

  test('shrinks while everything is dropped', () => {
    const adaptive = new AdaptiveLimit({ max: 1_000, initial: 100 });
    for (let call = 0; call < 2_000; call += 1) adaptive.onSample(10, adaptive.limit, true);
    expect(adaptive.limit).toBe(1);
  });
});
