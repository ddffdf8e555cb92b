import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { FAULT_KINDS, type FaultInput, injectSchema } from '../../src/chaos/fault.ts';
import { protectTool } from '../../src/mcp/protect.ts';
import { createPipeline, type Outcome } from '../../src/resilience/pipeline.ts';
import { closedPort } from '../fixtures/loopback.ts';
import {
  type Behaviour,
  halfClose,
  json,
  oversized,
  reset,
  startUpstream,
  truncatedJson,
} from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { upstreamForTest } from '../tools/support.ts';
import { CLIENTS } from './clients.ts';
import { AT_SEARCH, arm, openChaos, pipelineOf, until } from './support.ts';
import { searchTool } from './tools.ts';

const page = readFileSync(new URL('../../docs/chaos.md', import.meta.url), 'utf8');
const section = page.split(/^## /m).find((part) => part.startsWith('Kinds\n')) ?? '';

/** Rows of the table of kinds. */
const ROWS = [
  ...section.matchAll(/^\| `(\w+)`( 429)? +\| ([^|]+?) +\|[^|]*\| ([^|]*?) +\| (\w*) +\|$/gm),
].map(([, kind = '', throttled, enters = '', code = '', counts = '']) => ({
  kind: kind as FaultInput['kind'],
  settings: {
    ...(throttled && { status: 429 as const }),
    ...(kind === 'latency' && { latency: { delayMs: 300 } }),
  },
  enters,
  code: code.replaceAll('`', ''),
  counts: counts === 'yes',
}));

const struckOrMissed = (faults: ReturnType<typeof openChaos>['chaos']['faults']) => {
  const [fault] = faults.list().faults;
  return (fault?.injected ?? 0) + (fault?.missed ?? 0) > 0;
};

const codeOf = (outcome: Outcome<unknown>): string => (outcome.ok ? 'none' : outcome.failure.code);

describe('the kinds of faults', () => {
  test('all stand in the table of the documentation', () => {
    expect(new Set(ROWS.map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
  });

  test('of its examples are faults as inject_fault takes them', () => {
    const examples = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => text);
    expect(examples).toHaveLength(3);
    for (const example of examples) {
      expect(injectSchema.safeParse(JSON.parse(example)).error?.issues).toBeUndefined();
    }
  });

  verifies('chaos.kinds', async () => {
    for (const makeClient of Object.values(CLIENTS)) {
      const upstream = await startUpstream();
      upstream.on('*', json({ ok: true }));
      const { chaos, clock } = openChaos();
      const client = makeClient(chaos);
      const url = `${upstream.url}/a`;
      for (const { kind, settings, enters, code, counts } of ROWS) {
        if (enters !== 'HTTP' && enters !== 'the attempt') continue;
        const pipeline = pipelineOf(chaos, clock, { timeout: 1_000, breaker: { threshold: 1 } });
        // A healthy call first: its connection is kept, and must not let the next one slip by.
        await pipeline.execute(({ signal }) => client(url, signal));
        const { connections } = upstream;
        const requests = upstream.count();
        arm(chaos, { kind, target: AT_SEARCH, ...settings });
        const asked = pipeline.outcome(({ signal }) => client(url, signal));
        await until(() => struckOrMissed(chaos.faults));
        if (kind === 'latency') await clock.advance(300);
        if (code === 'TIMEOUT') await clock.advance(1_000);
        const outcome = await asked;
        expect([kind, codeOf(outcome), pipeline.breaker?.state]).toEqual([
          kind,
          code,
          counts ? 'open' : 'closed',
        ]);
        // What is struck never reaches the upstream; what is late does, over the kept connection.
        expect([kind, upstream.count() - requests]).toEqual([kind, kind === 'latency' ? 1 : 0]);
        expect(upstream.connections).toBe(connections);
        expect(chaos.faults.list().faults[0]).toMatchObject({ injected: 1, missed: 0 });
        chaos.faults.clearAll();
        const after = pipelineOf(chaos, clock, {});
        expect(await after.execute(({ signal }) => client(url, signal))).toEqual({ ok: true });
      }
      await upstream.close();
    }
  });

  test('of the tool answer in its place', async () => {
    const { chaos, clock } = openChaos();
    for (const { kind, code, counts } of ROWS.filter(({ enters }) => enters === 'the tool')) {
      const pipeline = pipelineOf(chaos, clock, { breaker: { threshold: 1 } });
      let executions = 0;
      const tool = chaos.watch(
        protectTool(
          searchTool(() => (executions += 1)),
          { pipeline },
        ),
      );
      arm(chaos, { kind, target: { tool: 'search' } });
      const signal = new AbortController().signal;
      const result = await tool.handler({ query: 'x' }, { signal, progress() {} });
      expect(result.isError).toBe(true);
      const failure = result._meta?.['mcp-resilience/failure'] as { code: string } | undefined;
      // A tool that speaks of an error says so in its own words, and in no code of ours.
      expect(failure?.code ?? 'TOOL_ERROR').toBe(code);
      expect(pipeline.breaker?.state).toBe(counts ? 'open' : 'closed');
      expect(executions).toBe(0);
      chaos.faults.clearAll();
    }
  });

  verifies('chaos.like-the-real-thing', async () => {
    const body = JSON.stringify({ status: 'ok' });
    const real: readonly (readonly [FaultInput['kind'], Behaviour])[] = [
      ['connection_reset', reset()],
      ['half_closed_body', halfClose(body)],
      ['truncated_body', truncatedJson({ status: 'ok' })],
      ['oversized_body', oversized(3 * 1024 * 1024)],
      ['empty_body', json('')],
    ];
    for (const makeClient of Object.values(CLIENTS)) {
      const { chaos, clock } = openChaos();
      const client = makeClient(chaos);
      const upstream = await upstreamForTest();
      const closed = `http://127.0.0.1:${await closedPort()}`;
      const failureOf = async (url: string) => {
        const outcome = await pipelineOf(chaos, clock, {}).outcome(({ signal }) =>
          client(url, signal),
        );
        if (outcome.ok) throw new Error('expected a failure');
        const { code, weight, delivery, retryable, severity } = outcome.failure;
        return { code, weight, delivery, retryable, severity };
      };
      for (const [kind, behaviour] of real) {
        upstream.on('*', behaviour);
        const genuine = await failureOf(`${upstream.url}/a`);
        arm(chaos, { kind, target: AT_SEARCH });
        expect([kind, await failureOf(`${upstream.url}/a`)]).toEqual([kind, genuine]);
        chaos.faults.clearAll();
      }
      const genuine = await failureOf(closed);
      arm(chaos, { kind: 'connection_refused', target: AT_SEARCH });
      expect(await failureOf(`${upstream.url}/a`)).toEqual(genuine);
      chaos.faults.clearAll();
      // A name that cannot exist (RFC 6761), against one that could.
      const unknown = await failureOf('http://nowhere.invalid/');
      arm(chaos, { kind: 'dns', target: AT_SEARCH });
      expect(await failureOf('http://api.example/')).toEqual(unknown);
    }
  });

  test('HTTPS is struck below TLS, with the name that was asked for', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    arm(chaos, { kind: 'status', status: 502, target: AT_SEARCH });
    const response = await pipeline.execute(() => fetch('https://api.example/v1?q=1'));
    expect([response.status, response.url]).toEqual([502, 'https://api.example/v1?q=1']);
    chaos.faults.clearAll();
    arm(chaos, { kind: 'dns', dnsCode: 'EAI_AGAIN', target: AT_SEARCH });
    const error = await pipeline.execute(() => fetch('https://api.example/')).catch((e) => e);
    const { code, syscall, hostname } = error.cause;
    expect([code, syscall, hostname]).toEqual(['EAI_AGAIN', 'getaddrinfo', 'api.example']);
  });

  test('requests outside of a struck call are left alone', async () => {
    const upstream = await upstreamForTest();
    upstream.on('*', json({ ok: true }));
    const { chaos } = openChaos();
    arm(chaos, { kind: 'connection_refused', target: AT_SEARCH });
    const other = createPipeline('other', {}, { inject: chaos.inject });
    const [plain, elsewhere] = await Promise.all([
      fetch(upstream.url),
      other.execute(() => fetch(upstream.url)),
    ]);
    expect([plain.status, elsewhere.status, upstream.count()]).toEqual([200, 200, 2]);
  });

  test('work that makes no request is done, and counts as missed', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    arm(chaos, { kind: 'connection_reset', target: AT_SEARCH });
    expect(await pipeline.execute(() => 'from memory')).toBe('from memory');
    arm(chaos, { kind: 'tool_error', target: AT_SEARCH });
    chaos.faults.clear(chaos.faults.list().faults[0]?.id ?? '');
    expect(await pipeline.execute(() => 'no tool')).toBe('no tool');
    const { faults, recent } = chaos.faults.list();
    expect([...faults, ...recent].map(({ injected, missed }) => [injected, missed])).toEqual([
      [0, 1],
      [0, 1],
    ]);
  });

  test('Retry-After comes as seconds, date, absurd, malformed or as written', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    const sent: (string | null)[] = [];
    for (const retryAfter of [7, 'date:30', 'absurd', 'malformed', '-1', undefined]) {
      arm(chaos, {
        kind: 'status',
        target: AT_SEARCH,
        ...(retryAfter !== undefined && { retryAfter }),
      });
      const response = await pipeline.execute(() => fetch('http://api.example/'));
      sent.push(response.headers.get('retry-after'));
      chaos.faults.clearAll();
    }
    expect(sent).toEqual(['7', 'Thu, 01 Jan 2026 00:00:30 GMT', '31536000000', 'soon', '-1', null]);
  });

  test('a POST is struck after its body has arrived', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    arm(chaos, { kind: 'status', target: AT_SEARCH });
    const bodies: RequestInit[] = [
      { body: 'x'.repeat(200_000) },
      { body: new Blob(['y'.repeat(200_000)]).stream(), duplex: 'half' } as RequestInit,
    ];
    for (const init of bodies) {
      const response = await pipeline.execute(() =>
        fetch('http://api.example/', { method: 'POST', ...init }),
      );
      expect(response.status).toBe(503);
    }
  });
});
