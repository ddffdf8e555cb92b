import { describe, expect, test } from 'vitest';
import type { FaultReport } from '../../src/chaos/active-fault.ts';
import { chaosRefusal, createChaos } from '../../src/chaos/chaos.ts';
import type { ToolContext, ToolResult } from '../../src/mcp/tool.ts';
import { describeTool } from '../../src/mcp/tool-schema.ts';
import { verifies } from '../fixtures/verifies.ts';
import { codeOf, textOf } from '../tools/support.ts';
import { callTool, openChaos, pipelineOf, structured } from './support.ts';
import { searchTool } from './tools.ts';

const FAULT = { kind: 'hang', target: { tool: 'search' } } as const;

type Answer = Awaited<ReturnType<NonNullable<ToolContext['elicit']>>>;

const faultOf = (result: ToolResult): FaultReport =>
  structured<{ fault: FaultReport }>(result).fault;

describe('inject_fault', () => {
  test('arms what it is told and shows it', async () => {
    const { chaos } = openChaos();
    const client = { name: 'console', version: '2.0' };
    const result = await callTool(
      chaos,
      'inject_fault',
      { ...FAULT, percent: 50, seed: 7, maxCount: 3, reason: 'a drill' },
      { client },
    );
    expect(faultOf(result)).toMatchObject({
      kind: 'hang',
      target: { tool: 'search' },
      armedAt: '2026-01-01T00:00:00.000Z',
      expiresAt: '2026-01-01T00:01:00.000Z',
      injected: 0,
      missed: 0,
      seed: 7,
      by: 'console 2.0',
      reason: 'a drill',
      settings: { ttlSeconds: 60, percent: 50, maxCount: 3 },
    });
    expect(textOf(result)).toContain('hang on tool search, until 2026-01-01T00:01:00.000Z');
    expect(structured<object>(result)).toMatchObject({ dryRun: false });
    const named = await callTool(chaos, 'inject_fault', FAULT, { client, principal: 'alice' });
    expect(faultOf(named).by).toBe('alice');
  });

  test('draws a seed where none is given, and tells it', async () => {
    const { chaos } = openChaos({ random: () => 0.5 });
    expect(faultOf(await callTool(chaos, 'inject_fault', FAULT)).seed).toBe(2 ** 31);
  });

  test('refuses in words what cannot be', async () => {
    const { chaos } = openChaos();
    const refused = await callTool(chaos, 'inject_fault', {
      ...FAULT,
      target: { tool: 'health_check' },
    });
    expect(codeOf(refused)).toBe('REQUEST_REJECTED');
    expect(textOf(refused)).toContain('nothing was armed: health_check is never a target');
    const invalid = await callTool(chaos, 'inject_fault', { kind: 'latency', target: {}, ttl: 5 });
    expect(codeOf(invalid)).toBe('INVALID_INPUT');
    expect(textOf(invalid)).toMatch(/target: must name a tool.*ttl/s);
  });

  verifies('chaos.dry-run', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, { retry: { maxRetries: 2, baseDelay: 1 } });
    const tool = chaos.watch({
      ...searchTool(() => 'x'),
      handler: async (_input: unknown, _context: ToolContext) => {
        await pipeline.execute(() => 'x');
        return { content: [] };
      },
    });
    const call = () =>
      tool.handler({ query: 'x' }, { signal: new AbortController().signal, progress() {} });
    const wouldHit = async (target: object) => {
      const result = await callTool(chaos, 'inject_fault', { ...FAULT, target, dryRun: true });
      return structured<{ wouldHit: object; dryRun: boolean; fault?: object }>(result);
    };
    await call();
    await clock.advance(120_000);
    for (let n = 0; n < 3; n += 1) await call();
    await pipeline.execute(() => 'not by the tool');
    expect(await wouldHit({ tool: 'search' })).toEqual({
      dryRun: true,
      wouldHit: {
        callsInLast5Minutes: 4,
        routes: [{ tool: 'search', dependency: 'search-api', calls: 4 }],
      },
    });
    expect(await wouldHit({ dependency: 'search-api' })).toMatchObject({
      wouldHit: { callsInLast5Minutes: 5, routes: [{ calls: 4 }, { calls: 1 }] },
    });
    // The first one is more than five minutes ago, the others are not.
    await clock.advance(190_000);
    expect(await wouldHit({ tool: 'search' })).toMatchObject({
      wouldHit: { callsInLast5Minutes: 3 },
    });
    await clock.advance(300_000);
    expect(await wouldHit({ tool: 'search' })).toMatchObject({
      wouldHit: { callsInLast5Minutes: 0 },
    });
    expect(chaos.faults.active).toBe(false);
  });

  verifies('chaos.asks', async () => {
    const { chaos } = openChaos();
    const asked: string[] = [];
    const inject = (answer: Answer | Error, extra: object = {}) =>
      callTool(
        chaos,
        'inject_fault',
        { ...FAULT, ttlSeconds: 30, reason: 'why not', ...extra },
        {
          elicit: async (message) => {
            asked.push(message);
            if (answer instanceof Error) throw answer;
            return answer;
          },
        },
      );
    const refusals: readonly (readonly [Answer | Error, string])[] = [
      [{ action: 'decline' }, 'the person who was asked declined'],
      [{ action: 'cancel' }, 'nobody agreed'],
      [{ action: 'accept', content: { confirm: false } }, 'the person who was asked declined'],
      [new Error('Request timed out'), 'nobody could be asked (Request timed out)'],
    ];
    for (const [answer, why] of refusals) {
      const result = await inject(answer);
      expect(codeOf(result)).toBe('REQUEST_REJECTED');
      expect(textOf(result)).toContain(`nothing was armed: ${why}`);
      expect(chaos.faults.active).toBe(false);
    }
    expect(asked[0]).toBe(
      'Arm the fault hang on tool:search for 30 s? Calls of it will fail or be slow. Reason: why not',
    );
    // A dry run, or what is refused anyway, is nobody's to decide.
    asked.length = 0;
    await inject({ action: 'accept' }, { dryRun: true });
    await inject({ action: 'accept' }, { target: { tool: 'nobody' } });
    expect(asked).toEqual([]);
    await inject({ action: 'accept', content: { confirm: true } });
    await inject({ action: 'accept' });
    expect(chaos.faults.list().faults).toHaveLength(2);
  });

  test('says before it arms that it destroys', () => {
    const { chaos } = openChaos();
    const listed = chaos.tools.map(describeTool);
    expect(listed.map(({ name, annotations }) => [name, annotations?.destructiveHint])).toEqual([
      ['inject_fault', true],
      ['list_faults', undefined],
      ['clear_fault', false],
      ['halt_chaos', true],
    ]);
    const schema = JSON.stringify(listed[0]?.inputSchema);
    for (const field of ['ttlSeconds', 'firstAttempts', 'dnsCode', 'dryRun'])
      expect(schema).toContain(field);
  });
});

describe('the tools that end faults', () => {
  test('list, clear and halt', async () => {
    const { chaos } = openChaos();
    const { id } = faultOf(await callTool(chaos, 'inject_fault', FAULT));
    await callTool(chaos, 'inject_fault', FAULT);
    const listed = structured<{ faults: FaultReport[] }>(await callTool(chaos, 'list_faults'));
    expect(listed).toMatchObject({ faults: [{ id }, {}], halted: false, recent: [] });

    const clear = async (args: object) => structured(await callTool(chaos, 'clear_fault', args));
    expect(await clear({ id })).toEqual({ cleared: 1 });
    expect(await clear({ id })).toEqual({ cleared: 0 });
    expect(await clear({ all: true })).toEqual({ cleared: 1 });
    expect(await clear({ all: true })).toEqual({ cleared: 0 });
    expect(textOf(await callTool(chaos, 'clear_fault', {}))).toContain(
      'give either id, or all: true',
    );
    expect(codeOf(await callTool(chaos, 'clear_fault', { id, all: true }))).toBe('INVALID_INPUT');

    await callTool(chaos, 'inject_fault', FAULT);
    const halted = await callTool(chaos, 'halt_chaos', { reason: 'token=hunter2secret' });
    expect(structured(halted)).toEqual({
      halted: true,
      cleared: 1,
      haltReason: 'by unknown client: token=***',
    });
    expect(textOf(await callTool(chaos, 'inject_fault', FAULT))).toContain('chaos is halted');
    expect(textOf(await callTool(chaos, 'list_faults'))).toContain('Halted: by unknown client');
    expect(structured(await callTool(chaos, 'halt_chaos', { lift: true }))).toEqual({
      halted: false,
      cleared: 0,
    });
    expect((await callTool(chaos, 'inject_fault', FAULT)).isError).toBeUndefined();
  });
});

describe('the automatic stop', () => {
  verifies('chaos.auto-stop', async () => {
    const { chaos, clock } = openChaos();
    let broken = false;
    const bystander = chaos.watch(
      searchTool(
        () => {
          if (broken) throw new Error('down');
        },
        { name: 'get_weather' },
      ),
    );
    const target = chaos.watch(
      searchTool(() => {
        throw new Error('down');
      }),
    );
    const { signal } = new AbortController();
    const call = (tool: typeof target, count: number) =>
      Promise.all(
        Array.from({ length: count }, () =>
          Promise.resolve(tool.handler({ query: 'x' }, { signal, progress() {} })).catch(() => {}),
        ),
      );
    const arm = () => callTool(chaos, 'inject_fault', { ...FAULT, ttlSeconds: 900 });

    await arm();
    // Failures of the target are what was asked for.
    await call(target, 100);
    await call(bystander, 10);
    broken = true;
    await call(bystander, 9);
    expect(chaos.faults.active).toBe(true);
    await call(bystander, 1);
    expect(chaos.faults.list()).toMatchObject({
      faults: [],
      halted: true,
      haltReason: '10 of 20 calls that no fault is aimed at failed within 60 s (limit 50 %)',
      recent: [{ endReason: 'error_rate' }],
    });

    // What happened before the fault, or long ago, is not held against it.
    chaos.faults.lift();
    await call(bystander, 30);
    await arm();
    await call(bystander, 15);
    await clock.advance(61_000);
    await call(bystander, 15);
    expect(chaos.faults.active).toBe(true);
    // A call that its client gave up has not failed.
    const gone = AbortSignal.abort();
    for (let n = 0; n < 20; n += 1)
      await Promise.resolve(
        bystander.handler({ query: 'x' }, { signal: gone, progress() {} }),
      ).catch(() => {});
    expect(chaos.faults.active).toBe(true);
    await call(bystander, 5);
    expect(chaos.faults.active).toBe(false);
  });
});

describe('in production', () => {
  verifies('chaos.production', () => {
    expect(chaosRefusal({})).toBeUndefined();
    expect(chaosRefusal({ NODE_ENV: 'test' })).toBeUndefined();
    expect(chaosRefusal({ NODE_ENV: ' Production ' })).toContain('MCP_CHAOS_IN_PRODUCTION=1');
    const both = { NODE_ENV: 'production', MCP_CHAOS_IN_PRODUCTION: '1' };
    expect(chaosRefusal(both)).toBeUndefined();
    expect(chaosRefusal({ ...both, MCP_CHAOS_IN_PRODUCTION: '0' })).toContain('refused');
  });
});

describe('the playbook', () => {
  verifies('chaos.playbook', async () => {
    const { chaos } = openChaos();
    const [playbook] = chaos.resources;
    const text = (await playbook?.read()) ?? '';
    for (const name of ['`search`', '`search-api`', '`dripping_body`', 'halt_chaos', 'dryRun'])
      expect(text).toContain(name);
    const [prompt] = chaos.prompts;
    const drills = [...text.matchAll(/^- \*\*([a-z0-9-]+)\*\*: .*?`(\{.*?\})`/gm)];
    expect(drills.length).toBeGreaterThan(4);
    for (const [, drill = '', json = ''] of drills) {
      const filled = prompt?.text({ drill, tool: 'search' }) ?? '';
      const [, args = '{}'] = /\(arguments of inject_fault\): (\{.*\})/.exec(filled) ?? [];
      expect(JSON.parse(args)).toMatchObject(JSON.parse(json));
      // What an agent is told to call works.
      const result = await callTool(chaos, 'inject_fault', JSON.parse(args));
      expect([drill, result.isError]).toEqual([drill, undefined]);
      chaos.faults.clearAll();
    }
    expect(() => prompt?.text({ drill: 'nothing' })).toThrow(
      'drill must be one of burst-503, hang',
    );
    expect(() => prompt?.text({ drill: 'hang', tool: 'health_check' })).toThrow(
      'tool must be one of',
    );
    expect(prompt?.text({ drill: 'hang' })).toContain('on the tool search of this server');
  });
});

describe('switched off', () => {
  test('leaves the dispatcher and the telemetry as they were', async () => {
    const key = Symbol.for('undici.globalDispatcher.1');
    const globals = globalThis as unknown as Record<symbol, unknown>;
    await fetch('data:,x');
    const before = globals[key];
    const chaos = createChaos({ targets: [{ tool: 'search' }] });
    expect(globals[key]).not.toBe(before);
    const again = createChaos({ targets: [{ tool: 'search' }] });
    await again.close();
    await chaos.close();
    await chaos.close();
    expect(globals[key]).toBe(before);
  });

  test('a tool without a pipeline is struck in its place', async () => {
    const { chaos } = openChaos();
    let executions = 0;
    const plain = chaos.watch(searchTool(() => (executions += 1), { name: 'plain' }));
    const call = () =>
      plain.handler({ query: 'x' }, { signal: new AbortController().signal, progress() {} });
    await callTool(chaos, 'inject_fault', {
      kind: 'tool_error',
      target: { tool: 'plain' },
      maxCount: 1,
    });
    expect((await call()).isError).toBe(true);
    expect((await call()).isError).toBeUndefined();
    expect(executions).toBe(1);
  });
});
