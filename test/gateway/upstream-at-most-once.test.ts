import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished } from 'vitest';
import type { UpstreamSession } from '../../src/gateway/types.ts';
import { createUpstreamManager } from '../../src/gateway/upstream-manager.ts';
import { JsonRpcError } from '../../src/mcp/jsonrpc.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';
import { child, upstreamConfig } from './support/link-config.ts';
import { call, client, openManager, reading, textOf } from './support/manager.ts';
import { type Fate, MemoryUpstream } from './support/memory-upstream.ts';

const TOOLS = ['write', 'write-idempotent', 'read'] as const;
const KNOWN = {
  write: {},
  'write-idempotent': {
    tool: { name: 'write-idempotent', annotations: { idempotentHint: true } },
  },
  read: reading('read'),
} as const;

/** What the caller is told: the answer, or the code of the failure. */
const tell = (session: UpstreamSession, tool: (typeof TOOLS)[number], key: string) =>
  call(session, tool, { key }, KNOWN[tool]).then(
    textOf,
    (error: { failure?: { code: string; delivery: string } }) => error.failure ?? error,
  );

/** Whether what was told is true of a call that was executed so many times. */
const isTrue = (
  tool: string,
  told: Awaited<ReturnType<typeof tell>>,
  executions: number,
): boolean => {
  if (tool === 'write' && executions > 1) return false;
  if (told === 'written') return executions > 0;
  if (typeof told === 'string') return false;
  if (tool !== 'write') return true;
  // The upstream itself has refused it.
  if (told instanceof JsonRpcError) return executions === 0;
  if (!('delivery' in told)) return false;
  // Who is not told that it may have been executed will repeat it.
  return told.delivery === 'lost' ? told.code === 'OUTCOME_UNKNOWN' : executions === 0;
};

interface Told {
  readonly tool: string;
  readonly key: string;
  readonly answer: Awaited<ReturnType<typeof tell>>;
}

const CALM: readonly Fate[] = Array.from({ length: 20 }, () => 'arrives');
const FATES: readonly Fate[] = [
  'arrives',
  'end',
  'refused',
  'forgotten',
  'terminated',
  'executed',
  'lost',
  'silent',
];

describe('a call', () => {
  let struck = 0;
  verifies(
    'upstream.at-most-once',
    async () => {
      const scenario = fc.record({
        fates: fc.array(fc.constantFrom(...FATES), { minLength: 60, maxLength: 60 }),
        // What befalls initialize and everything else; seldom, or no call is ever sent.
        others: fc.array(fc.constantFrom(...CALM, ...FATES), { maxLength: 60 }),
        refusals: fc.array(fc.constantFrom(false, false, false, true), { maxLength: 20 }),
        tools: fc.array(fc.constantFrom(...TOOLS), { minLength: 60, maxLength: 60 }),
        shared: fc.boolean(),
        stdio: fc.boolean(),
        retries: fc.integer({ min: 0, max: 3 }),
        clients: fc.integer({ min: 1, max: 4 }),
      });
      await fc.assert(
        fc.asyncProperty(scenario, async (given) => {
          const clock = new ManualClock();
          const upstream = new MemoryUpstream();
          const fates = [...given.fates];
          const others = [...given.others];
          const refusals = [...given.refusals];
          upstream.sessionful = !given.stdio;
          upstream.accepts = () => refusals.pop() !== true;
          upstream.fate = ({ method }) => {
            if (method !== 'tools/call') return others.pop() ?? 'arrives';
            const fate = fates.pop() ?? 'arrives';
            if (fate !== 'arrives') struck += 1;
            return fate;
          };
          const address = given.stdio
            ? ({ kind: 'stdio', command: 'none', args: [], env: {} } as const)
            : ({ kind: 'http', url: 'http://none/', headers: {} } as const);
          const manager = createUpstreamManager(
            [
              upstreamConfig(address, {
                shared: given.shared,
                policy: {
                  timeout: 500,
                  deadline: 60_000,
                  retry: { maxRetries: given.retries, baseDelay: 10, budget: false },
                },
                connectTimeout: 500,
                restart: { initialDelay: 10, maxDelay: 100 },
              }),
            ],
            { clock, createLink: upstream.createLink },
          );
          const sessions = Array.from({ length: given.clients }, () => manager.open('u', client));
          let left = sessions.length;
          const told = sessions.map(async (session, who) => {
            const answers: Told[] = [];
            for (let n = who; n < given.tools.length; n += sessions.length) {
              const tool = given.tools[n] ?? 'write';
              answers.push({ tool, key: `${n}`, answer: await tell(session, tool, `${n}`) });
            }
            left -= 1;
            return answers;
          });
          while (left > 0) await clock.advance(Math.max(1, clock.nextTimer ?? 1));
          for (const { tool, key, answer } of (await Promise.all(told)).flat()) {
            const entry = `${tool} ${key}`;
            const executions = upstream.record.writes.filter((write) => write === entry).length;
            expect(
              isTrue(tool, answer, executions),
              `${entry}: ${executions} executions, told ${JSON.stringify(answer)}`,
            ).toBe(true);
          }
          const closing = manager.close();
          while (upstream.open.length > 0) await clock.advance(100);
          await closing;
          expect(clock.pendingTimers).toBe(0);
        }),
        { numRuns: 300 },
      );
      expect(struck).toBeGreaterThan(10_000);
    },
    120_000,
  );

  verifies(
    'upstream.at-most-once.processes',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'mcp-resilience-'));
      onTestFinished(() => rm(folder, { recursive: true }));
      const writes = join(folder, 'writes');
      const { manager } = openManager([
        upstreamConfig(child({ writes }), {
          policy: { retry: { maxRetries: 1, baseDelay: 1 }, timeout: 20_000 },
          restart: { initialDelay: 1, maxDelay: 2 },
        }),
      ]);
      const sessions = Array.from({ length: 6 }, () => manager.open('u', client));
      let kills = 0;
      let running = true;
      // At any time, whoever is there.
      const killer = (async () => {
        while (running) {
          const pids = manager.health()[0]?.pids ?? [];
          const pid = pids[Math.floor(Math.random() * pids.length)];
          if (pid !== undefined) {
            try {
              process.kill(pid, 'SIGKILL');
              kills += 1;
            } catch {
              // Somebody was faster.
            }
          }
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
        }
      })();
      const told = sessions.map(async (session, who) => {
        const answers: Told[] = [];
        for (let n = 0; kills < 200; n += 1) {
          const tool = TOOLS[n % TOOLS.length] ?? 'write';
          const key = `${who}-${n}`;
          answers.push({ tool, key, answer: await tell(session, tool, key) });
        }
        return answers;
      });
      const all = (await Promise.all(told)).flat();
      running = false;
      await killer;
      const lines = readFileSync(writes, 'utf8').split('\n');
      const counts = new Map<string, number>();
      for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
      const wrong = all.filter(
        ({ tool, key, answer }) => !isTrue(tool, answer, counts.get(`${tool} ${key}`) ?? 0),
      );
      expect(wrong).toEqual([]);
      expect(kills).toBeGreaterThanOrEqual(200);
      expect(all.filter(({ answer }) => answer === 'written').length).toBeGreaterThan(50);
    },
    240_000,
  );
});
