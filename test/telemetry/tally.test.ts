import type { Attributes, Counter } from '@opentelemetry/api';
import { AggregationTemporality, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { describe, expect, test } from 'vitest';
import { Tally } from '../../src/telemetry/tally.ts';

const startCounting = () => {
  const told: [number, Attributes | undefined][] = [];
  const counter: Counter = { add: (value, attributes) => told.push([value, attributes]) };
  return { told, tally: new Tally(counter) };
};

class PullReader extends MetricReader {
  protected onForceFlush = async () => {};
  protected onShutdown = async () => {};
}

describe('Tally', () => {
  test('hands on the first one at once and the rest at the collection', () => {
    const { told, tally } = startCounting();
    const a = { outcome: 'success' };
    const b = { outcome: 'failure' };
    tally.add(1, a);
    tally.add(2, a);
    tally.add(3, a);
    tally.add(1, b);
    expect(told).toEqual([
      [1, a],
      [1, b],
    ]);
    tally.flush();
    expect(told.slice(2)).toEqual([[5, a]]);
    tally.flush();
    tally.add(4, a);
    expect(told.slice(3)).toEqual([[4, a]]);
  });

  test('counts without attributes', () => {
    const { told, tally } = startCounting();
    tally.add(1);
    tally.add(1);
    tally.flush();
    expect(told).toEqual([
      [1, {}],
      [1, {}],
    ]);
  });

  test('keeps a bounded number of series, and loses none', () => {
    const { told, tally } = startCounting();
    const series = Array.from({ length: 2_500 }, (_, id) => ({ id }));
    for (let round = 0; round < 3; round++) for (const one of series) tally.add(1, one);
    tally.flush();
    expect(told.reduce((sum, [value]) => sum + value, 0)).toBe(7_500);
  });

  test('every reader has every call in the collection that follows it', async () => {
    const delta = new PullReader({
      aggregationTemporalitySelector: () => AggregationTemporality.DELTA,
    });
    const cumulative = new PullReader();
    const meter = new MeterProvider({ readers: [delta, cumulative] }).getMeter('test');
    const tally = new Tally(meter.createCounter('calls'));
    meter.addBatchObservableCallback(() => tally.flush(), [meter.createObservableGauge('other')]);
    const attributes = { outcome: 'success' };
    const calls = async (reader: MetricReader) => {
      const { resourceMetrics } = await reader.collect();
      const metric = resourceMetrics.scopeMetrics[0]?.metrics.find(
        ({ descriptor }) => descriptor.name === 'calls',
      );
      const point = metric?.dataPoints[0];
      if (point) expect(point.startTime <= point.endTime).toBe(true);
      return point?.value;
    };
    for (let i = 0; i < 10; i++) tally.add(1, attributes);
    expect([await calls(delta), await calls(cumulative)]).toEqual([10, 10]);
    for (let i = 0; i < 5; i++) tally.add(1, attributes);
    expect([await calls(cumulative), await calls(delta)]).toEqual([15, 5]);
  });
});
