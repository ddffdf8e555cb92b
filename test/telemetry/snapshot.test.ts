import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TOOL_DURATION_BUCKETS } from '../../src/telemetry/signals.ts';
import {
  createSnapshot,
  durationStats,
  EMPTY_SNAPSHOT,
  type HistogramLike,
  type MetricsLike,
  mergeHistograms,
  percentile,
} from '../../src/telemetry/snapshot.ts';
import { verifies } from '../fixtures/verifies.ts';

const bucketOf = (value: number): number => {
  const index = TOOL_DURATION_BUCKETS.findIndex((boundary) => value <= boundary);
  return index === -1 ? TOOL_DURATION_BUCKETS.length : index;
};

/** A histogram as the SDK makes it: upper ends belong to their bucket. */
const histogramOf = (values: readonly number[], withMinMax = true): HistogramLike => {
  const counts = Array.from({ length: TOOL_DURATION_BUCKETS.length + 1 }, () => 0);
  for (const value of values) counts[bucketOf(value)] = (counts[bucketOf(value)] ?? 0) + 1;
  return {
    buckets: { boundaries: TOOL_DURATION_BUCKETS, counts },
    count: values.length,
    sum: values.reduce((sum, value) => sum + value, 0),
    ...(withMinMax ? { min: Math.min(...values), max: Math.max(...values) } : {}),
  };
};

const metricsOf = (
  name: string,
  ...points: { attributes: Record<string, unknown>; value: unknown }[]
): MetricsLike => ({
  scopeMetrics: [{ metrics: [{ descriptor: { name }, dataPoints: points }] }],
});

const durations = fc.array(fc.double({ min: 0, max: 400, noNaN: true }), { minLength: 1 });
const quantile = fc.double({ min: 0.001, max: 1, noNaN: true });

describe('percentiles', () => {
  verifies('telemetry.percentiles', () => {
    fc.assert(
      fc.property(durations, quantile, quantile, fc.boolean(), (values, a, b, withMinMax) => {
        const histogram = histogramOf(values, withMinMax);
        const stats = durationStats(histogram);
        expect(stats?.count).toBe(values.length);
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        expect(stats?.avg).toBe(mean * 1000);

        const [low, high] = a < b ? [a, b] : [b, a];
        expect(percentile(histogram, low)).toBeLessThanOrEqual(percentile(histogram, high));

        const sorted = values.toSorted((x, y) => x - y);
        const exact = sorted[Math.ceil(a * values.length) - 1] as number;
        const index = bucketOf(exact);
        const estimate = percentile(histogram, a);
        expect(estimate).toBeGreaterThanOrEqual(TOOL_DURATION_BUCKETS[index - 1] ?? 0);
        if (index < TOOL_DURATION_BUCKETS.length) {
          expect(estimate).toBeLessThanOrEqual(TOOL_DURATION_BUCKETS[index] as number);
        }
        if (withMinMax) {
          expect(estimate).toBeGreaterThanOrEqual(sorted[0] as number);
          expect(estimate).toBeLessThanOrEqual(sorted.at(-1) as number);
        }
      }),
    );
  });

  test('a single call is known exactly', () => {
    expect(durationStats(histogramOf([0.005]))).toEqual({
      count: 1,
      avg: 5,
      p50: 5,
      p95: 5,
      p99: 5,
    });
  });

  test('merging is recording everything into one', () => {
    fc.assert(
      fc.property(durations, durations, (a, b) => {
        const merged = mergeHistograms([histogramOf(a), histogramOf(b)]);
        const whole = histogramOf([...a, ...b]);
        expect(merged).toEqual({ ...whole, sum: expect.closeTo(whole.sum as number, 6) });
      }),
    );
  });

  test('histograms with other buckets are left out', () => {
    const other = { ...histogramOf([1]), buckets: { boundaries: [1], counts: [1, 0] } };
    expect(mergeHistograms([histogramOf([2]), other])?.count).toBe(1);
  });

  test('nothing recorded is nothing, not zero', () => {
    expect(durationStats(undefined)).toBeUndefined();
    expect(durationStats({ buckets: { boundaries: [], counts: [0] }, count: 0 })).toBeUndefined();
    expect(EMPTY_SNAPSHOT.toolDuration.overall).toBeUndefined();
    expect(EMPTY_SNAPSHOT.value('tool.duration')).toBeUndefined();
  });
});

describe('a snapshot', () => {
  const call = (tool: string, outcome: string, values: number[]) => ({
    attributes: { 'gen_ai.tool.name': tool, 'tool.outcome': outcome },
    value: histogramOf(values),
  });
  const taken = createSnapshot(
    metricsOf(
      'tool.duration',
      call('search', 'success', [0.1, 0.1]),
      call('search', 'error', [2]),
      call('__proto__', 'success', [0.001]),
    ),
  );

  test('tells tools apart and adds outcomes up', () => {
    expect(taken.toolDuration.overall?.count).toBe(4);
    expect(taken.toolDuration.tools.get('search')?.count).toBe(3);
    expect(taken.toolDuration.tools.get('search')?.p99).toBeGreaterThan(1500);
    expect(taken.toolDuration.tools.get('__proto__')?.count).toBe(1);
  });

  test('counts recordings by attributes', () => {
    expect(taken.value('tool.duration', { 'tool.outcome': 'error' })).toBe(1);
    expect(taken.duration('tool.duration', { 'tool.outcome': 'error' })?.avg).toBe(2000);
    expect(taken.value('tool.duration', { 'tool.outcome': 'cached' })).toBeUndefined();
  });

  test('reads states and adds counters up', () => {
    const state = createSnapshot(
      metricsOf(
        'resilience.circuit_breaker.state',
        { attributes: { 'resilience.dependency': 'a', state: 'open' }, value: 1 },
        { attributes: { 'resilience.dependency': 'a', state: 'closed' }, value: 0 },
        { attributes: { 'resilience.dependency': 'b', state: 'open' }, value: 1 },
      ),
    );
    const name = 'resilience.circuit_breaker.state';
    expect(state.value(name, { 'resilience.dependency': 'a', state: 'open' })).toBe(1);
    expect(state.value(name, { 'resilience.dependency': 'a', state: 'closed' })).toBe(0);
    expect(state.value(name, { state: 'open' })).toBe(2);
    expect(state.series(name, { 'resilience.dependency': 'b' })).toEqual([
      { attributes: { 'resilience.dependency': 'b', state: 'open' }, value: 1 },
    ]);
  });
});
