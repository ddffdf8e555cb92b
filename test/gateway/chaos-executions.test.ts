import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished } from 'vitest';
import { FAULT_KINDS, type FaultInput, HTTP_KINDS } from '../../src/chaos/fault.ts';
import { META_FAILURE } from '../../src/mcp/meta.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { arm, clearAll, faultsOf } from './support/chaos.ts';
import { serveCommand, writtenConfig } from './support/command.ts';
import { type Anything, eventually } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

/** Kinds that a server can have; one of 64 MiB takes too long to have often. */
const KINDS = {
  stdio: FAULT_KINDS.filter(
    (kind) => !HTTP_KINDS.includes(kind as never) && kind !== 'session_loss',
  ),
  web: FAULT_KINDS.filter((kind) => kind !== 'upstream_exit' && kind !== 'oversized_body'),
} as const;

type Server = keyof typeof KINDS;

const anyFault = (server: Server): fc.Arbitrary<FaultInput> =>
  fc
    .record({
      kind: fc.constantFrom(...KINDS[server]),
      byTool: fc.boolean(),
      delayMs: fc.integer({ min: 0, max: 400 }),
      status: fc.constantFrom(429, 500, 502, 503, 504),
      dose: fc.record(
        {
          maxCount: fc.integer({ min: 1, max: 4 }),
          firstAttempts: fc.integer({ min: 1, max: 2 }),
          every: fc.integer({ min: 1, max: 3 }),
          percent: fc.integer({ min: 20, max: 100 }),
          seed: fc.nat(1_000),
        },
        { requiredKeys: [] },
      ),
    })
    .map(({ kind, byTool, delayMs, status, dose }) => {
      const needsUpstream = kind === 'upstream_exit' || kind === 'session_loss';
      return {
        kind,
        target: byTool && !needsUpstream ? { tool: `${server}__write` } : { upstream: server },
        ...dose,
        ...(kind === 'latency' && { latency: { delayMs } }),
        ...(kind === 'status' && { status: status as 429 }),
      };
    });

const mixOn = (server: Server) =>
  fc.record({
    server: fc.constant(server),
    faults: fc.array(anyFault(server), { minLength: 1, maxLength: 5 }),
    // Executed first, then answered late, or never: what is lost then must not be asked again.
    calls: fc.array(
      fc.record({
        ms: fc.integer({ min: 0, max: 60 }),
        after: fc.constantFrom('answer', 'answer', 'answer', 'hang', 'die'),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    together: fc.boolean(),
  });

/** Whether a failed call may be repeated without a second thought. */
const saysNotExecuted = ({ isError, _meta }: Anything): boolean =>
  isError === true && _meta?.[META_FAILURE] !== undefined
    ? _meta[META_FAILURE].delivery !== 'lost'
    : isError === true;

describe('a write tool behind a gateway', () => {
  verifies(
    'chaos.gateway-executions',
    async () => {
      const writes = join(temporaryFolder(), 'writes');
      const http = await startHttpUpstream();
      onTestFinished(() => http.close());
      const resilience = {
        timeout: 300,
        deadline: 2_000,
        retry: { maxRetries: 2, baseDelay: 5, maxDelay: 20, budget: false },
        breaker: { threshold: 8, openDuration: 50, maxOpenDuration: 50 },
        restart: { initialDelay: 5, maxDelay: 20 },
      };
      const { file } = writtenConfig({
        stdio: { ...stdioUpstream({ writes }), resilience },
        web: { url: http.url, resilience },
      });
      const { connect } = await serveCommand(['gateway', '--chaos', '--config', file]);
      const { call, request } = await connect();
      await request('tools/list');
      const counted = () => ({
        stdio: existsSync(writes) ? readFileSync(writes, 'utf8').split('\n') : [],
        web: http.record.writes,
      });
      let keys = 0;
      const told: { server: Server; key: string; answer: Anything }[] = [];
      let struck = 0;
      await fc.assert(
        fc.asyncProperty(fc.oneof(mixOn('stdio'), mixOn('web')), async (mix) => {
          const { server, faults, calls, together } = mix;
          for (const fault of faults) await arm(call, fault);
          const write = async (args: object) => {
            keys += 1;
            const key = String(keys);
            const asked = call(`${server}__write`, { key, ...args });
            // An error that the server itself answers with is injected where it is not asked.
            const answer = await asked.catch(() => ({ isError: true }));
            told.push({ server, key, answer });
          };
          if (together) await Promise.all(calls.map(write));
          else for (const args of calls) await write(args);
          const { faults: active, recent } = await faultsOf(call);
          const mine = [...active, ...recent].slice(0, faults.length);
          struck += mine.reduce((sum, { injected }) => sum + injected, 0);
          await clearAll(call);
          const now = counted();
          for (const one of told.slice(-calls.length)) {
            const count = now[one.server].filter((line) => line === `write ${one.key}`).length;
            expect(count).toBeLessThanOrEqual(1);
            if (one.answer.isError !== true) expect(count).toBe(1);
            if (saysNotExecuted(one.answer)) expect([one.answer, count]).toEqual([one.answer, 0]);
          }
        }),
        { numRuns: 60 },
      );
      // What was given up must not be executed afterwards either: servers take one after the other.
      for (const server of ['stdio', 'web'] as const) {
        await eventually(async () => (await call(`${server}__ok`)).isError !== true);
      }
      const now = counted();
      for (const { server, key, answer } of told) {
        const count = now[server].filter((line) => line === `write ${key}`).length;
        expect(count).toBeLessThanOrEqual(saysNotExecuted(answer) ? 0 : 1);
      }
      expect(struck).toBeGreaterThan(20);
      expect(told.some(({ answer }) => answer.isError !== true)).toBe(true);
    },
    240_000,
  );
});
