import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { FAULT_KINDS, type FaultInput } from '../../src/chaos/fault.ts';
import { protectTool } from '../../src/mcp/protect.ts';
import { json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { upstreamForTest } from '../tools/support.ts';
import { arm, openChaos, pipelineOf } from './support.ts';
import { searchTool } from './tools.ts';

/** Any fault that can be aimed at a tool of this process. */
const anyFault: fc.Arbitrary<FaultInput> = fc
  .record({
    kind: fc.constantFrom(...FAULT_KINDS.filter((kind) => !/^(upstream|session)/.test(kind))),
    target: fc.constantFrom({ tool: 'search' }, { dependency: 'search-api' }),
    delayMs: fc.integer({ min: 0, max: 2_000 }),
    status: fc.constantFrom(429, 500, 502, 503, 504),
    retryAfter: fc.constantFrom<FaultInput['retryAfter']>(0, 1, 'date:1', 'absurd', 'malformed'),
    dose: fc.record(
      {
        maxCount: fc.integer({ min: 1, max: 4 }),
        firstAttempts: fc.integer({ min: 1, max: 3 }),
        every: fc.integer({ min: 1, max: 3 }),
        percent: fc.integer({ min: 1, max: 100 }),
        seed: fc.nat(1_000),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ kind, target, delayMs, status, retryAfter, dose }) => ({
    kind,
    target,
    ...dose,
    ...(kind === 'latency' && { latency: { delayMs } }),
    ...(kind === 'status' && { status: status as 429, retryAfter }),
  }));

const mixes = fc.record({
  faults: fc.array(anyFault, { minLength: 1, maxLength: 5 }),
  calls: fc.integer({ min: 1, max: 4 }),
  hedged: fc.boolean(),
  /** Call after which all faults are cleared, if it comes to that. */
  clearedAfter: fc.integer({ min: 0, max: 6 }),
});

describe('a tool that is not idempotent', () => {
  verifies(
    'chaos.executions',
    async () => {
      const upstream = await upstreamForTest();
      upstream.on('*', json({ ok: true }));
      let struck = 0;
      await fc.assert(
        fc.asyncProperty(mixes, async ({ faults, calls, hedged, clearedAfter }) => {
          const { chaos, clock } = openChaos();
          const pipeline = pipelineOf(chaos, clock, {
            timeout: 1_000,
            deadline: 5_000,
            retry: { maxRetries: 3, baseDelay: 50, budget: false },
            breaker: { threshold: 3, openDuration: 500 },
            bulkhead: { limit: 2, queue: 10 },
            ...(hedged && { hedge: { delay: 100 } }),
          });
          const before = upstream.count();
          const write = searchTool(async (signal) => {
            // Small: an upstream that has answered has executed, whoever still listens.
            const response = await fetch(upstream.url, { method: 'POST', body: '1', signal });
            if (!response.ok) throw response;
            return JSON.stringify(await response.json());
          });
          const tool = chaos.watch(protectTool(write, { pipeline }));
          for (const fault of faults) arm(chaos, fault);
          const { signal } = new AbortController();
          let ended = 0;
          const asked = Array.from({ length: calls }, async () => {
            await tool.handler({ query: 'x' }, { signal, progress() {} });
            ended += 1;
            if (ended === clearedAfter) chaos.faults.clearAll();
          });
          while (ended < calls) await clock.advance(50);
          await Promise.all(asked);
          const executions = upstream.count() - before;
          const { faults: active, recent } = chaos.faults.list();
          for (const { injected } of [...active, ...recent]) struck += injected;
          await chaos.close();
          pipeline.destroy();
          expect(executions).toBeLessThanOrEqual(calls);
        }),
        { numRuns: 150 },
      );
      // Neither all of them were struck, nor none.
      expect(struck).toBeGreaterThan(100);
      expect(upstream.count()).toBeGreaterThan(50);
    },
    120_000,
  );
});
