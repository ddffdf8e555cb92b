import { logs, metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { afterAll, beforeEach, expect, vi } from 'vitest';
import { Bulkhead } from '../../src/resilience/bulkhead.ts';
import { RateLimiter } from '../../src/resilience/rate-limiter.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
const provider = new MeterProvider({ readers: [reader] });
metrics.setGlobalMeterProvider(provider);

const events: { eventName?: string | undefined; attributes?: unknown }[] = [];
logs.setGlobalLoggerProvider({
  getLogger: () => ({ enabled: () => true, emit: (record) => void events.push(record) }),
});

beforeEach(() => events.splice(0));
afterAll(() => provider.shutdown());

/** Values by `metric`, or `metric outcome`, of one dependency. */
const collect = async (dependency: string): Promise<Record<string, unknown>> => {
  exporter.reset();
  await provider.forceFlush();
  const values: Record<string, unknown> = {};
  for (const { scopeMetrics } of exporter.getMetrics()) {
    for (const { descriptor, dataPoints } of scopeMetrics.flatMap((scope) => scope.metrics)) {
      for (const { attributes, value } of dataPoints) {
        if (attributes['resilience.dependency'] !== dependency) continue;
        const { outcome } = attributes;
        values[outcome ? `${descriptor.name} ${outcome}` : descriptor.name] = value;
      }
    }
  }
  return values;
};

verifies('limits.counted', async () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter('counted', { limit: 1, interval: 1_000 }, { clock });
  limiter.tryTake();
  // A wait that was only asked for is no decision.
  limiter.tryTake();
  await limiter.take().catch(() => {});
  const bulkhead = new Bulkhead('counted', { limit: 1, queue: 1 }, { clock });
  const abort = new AbortController();
  bulkhead.tryAcquire();
  bulkhead.acquire({ signal: abort.signal }).catch(() => {});
  await bulkhead.acquire().catch(() => {});
  abort.abort('gone');
  await flush();
  expect(await collect('counted')).toMatchObject({
    'resilience.rate_limiter.decisions accepted': 1,
    'resilience.rate_limiter.decisions rejected': 1,
    'resilience.bulkhead.decisions accepted': 1,
    'resilience.bulkhead.decisions rejected': 1,
    'resilience.bulkhead.decisions cancelled': 1,
  });
  expect(events).toMatchObject([
    {
      eventName: 'resilience.rate_limiter.rejected',
      attributes: { 'resilience.dependency': 'counted', 'resilience.retry_after': 1 },
    },
    {
      eventName: 'resilience.bulkhead.rejected',
      attributes: { 'resilience.dependency': 'counted', reason: 'full' },
    },
  ]);
  bulkhead.destroy();
});

verifies('bulkhead.observable', async () => {
  const clock = new ManualClock();
  const bulkhead = new Bulkhead('observed', { limit: 2, queue: 5 }, { clock });
  for (let call = 0; call < 4; call += 1) bulkhead.acquire().catch(() => {});
  clock.jump(1_500);
  const gauges = {
    'resilience.bulkhead.active': 2,
    'resilience.bulkhead.queued': 2,
    'resilience.bulkhead.limit': 2,
    'resilience.bulkhead.oldest_wait': 1.5,
  };
  expect(await collect('observed')).toMatchObject(gauges);
  bulkhead.destroy();
  const asked = vi.spyOn(bulkhead, 'observe');
  await collect('observed');
  expect(asked).not.toHaveBeenCalled();
});
