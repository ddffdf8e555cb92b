import { describe, expect, test } from 'vitest';
import { runNode, source } from '../fixtures/run-node.ts';
import { verifies } from '../fixtures/verifies.ts';

const MILLION = 1_000_000;

describe('heap', () => {
  test('pipelines that were dropped and not destroyed leave nothing behind', async () => {
    const { code, stdout, stderr } = await runNode(
      `
      import { createPipeline } from '${source('resilience/pipeline.ts')}';
      const settings = { timeout: 1_000, bulkhead: { limit: 1 }, breaker: {} };
      const make = async (count) => {
        for (let i = 0; i < count; i++) createPipeline('db', settings);
        for (let i = 0; i < 5; i++) { gc(); await new Promise((resolve) => setTimeout(resolve, 10)); }
        return process.memoryUsage().heapUsed / 2 ** 20;
      };
      const before = await make(5_000);
      console.log(await make(50_000) - before);
    `,
      {},
      ['--expose-gc'],
    );
    expect([code, stderr]).toEqual([0, '']);
    // 70 bytes for each breaker and bulkhead would be 7 MB.
    expect(Number(stdout)).toBeLessThan(2);
  });

  verifies(
    'pipeline.heap',
    async () => {
      const { code, stdout, stderr } = await runNode(
        `
      import { createPipeline } from '${source('resilience/pipeline.ts')}';
      const { MeterProvider, MetricReader } = await import('@opentelemetry/sdk-metrics');
      const { metrics } = await import('@opentelemetry/api');
      class Reader extends MetricReader { async onForceFlush() {} async onShutdown() {} }
      metrics.setGlobalMeterProvider(new MeterProvider({ readers: [new Reader()] }));

      const pipeline = createPipeline('db', {
        deadline: 60_000, timeout: 10_000, bulkhead: { limit: 100 },
        rateLimit: { limit: 1_000_000, interval: 1, maxKeys: 100 },
        breaker: { window: 'time', failureRate: 1, slowCallDuration: 1_000 },
        retry: { maxRetries: 1, baseDelay: 0, budget: { ratio: 0.001, floor: 0 } },
        cache: { ttl: 60_000, maxEntries: 100 },
      });
      const { signal } = new AbortController();
      const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      // Answers and failures, with and without a key, a signal that lives on, and a read signal.
      const call = (i) => pipeline.outcome(
        async (context) => {
          if (i % 50 === 0) void context.signal;
          if (i % 10 === 0) throw reset;
          return i;
        },
        {
          rateLimitKey: String(i % 1_000),
          ...(i % 4 === 0 ? { signal } : {}),
          ...(i % 5 === 0 ? { cacheKey: String(i), fallback: () => 0 } : {}),
        },
      );
      const run = async (calls) => {
        for (let i = 0; i < calls; i += 100) {
          await Promise.all(Array.from({ length: 100 }, (_, j) => call(i + j)));
        }
      };
      const megabytes = () => { gc(); gc(); return process.memoryUsage().heapUsed / 2 ** 20; };
      await run(50_000);
      const before = megabytes();
      await run(${MILLION});
      const after = megabytes();
      console.log(JSON.stringify({
        before, after, active: pipeline.bulkhead.stats().active, entries: pipeline.cache.size,
        resources: process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
      }));
    `,
        {},
        ['--expose-gc'],
      );
      expect([code, stderr]).toEqual([0, '']);
      const { before, after, active, entries, resources } = JSON.parse(stdout) as Record<
        string,
        number
      >;
      console.error(
        `heap before ${before?.toFixed(1)} MB, after a million calls ${after?.toFixed(1)} MB`,
      );
      expect([active, resources]).toEqual([0, 0]);
      expect(entries).toBeLessThanOrEqual(100);
      // A single object kept per call would be 50 MB and more.
      expect((after ?? 0) - (before ?? 0)).toBeLessThan(2);
    },
    120_000,
  );
});
