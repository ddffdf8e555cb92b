/**
 * Fault injection in somebody's server: an `McpServer` of the SDK, a real client of it, and a real
 * upstream.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { type ChaosOptions, createChaos } from '../../src/chaos/index.ts';
import { protect } from '../../src/mcp/protect.ts';
import type { ToolResult } from '../../src/mcp/tool.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { METRIC } from '../../src/telemetry/signals.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { answer } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { codeOf, textOf, upstreamForTest } from '../tools/support.ts';

const open = (options: Partial<ChaosOptions> = {}) => {
  const targets = [{ tool: 'headlines', dependency: 'news-api' }, { tool: 'clock' }];
  const chaos = createChaos({ targets, ...options });
  onTestFinished(() => chaos.close());
  return chaos;
};

/** A server of somebody who uses the library, and a client that is connected to it. */
const serve = async (
  options: Partial<ChaosOptions> & { agrees?: boolean; policy?: PolicySettings } = {},
) => {
  const { agrees, policy = { timeout: 5_000, retry: false }, ...rest } = options;
  const chaos = open(rest);
  const news = await upstreamForTest();
  news.on('*', answer(200, 'all is well'));
  const pipeline = createPipeline('news-api', policy, { inject: chaos.inject });
  onTestFinished(() => pipeline.destroy());
  const headlines = protect(
    { name: 'headlines', pipeline },
    async ({ day }: { day: string }, extra: { signal: AbortSignal }) => {
      const response = await fetch(`${news.url}/${day}`, { signal: extra.signal });
      if (!response.ok) throw response;
      return { content: [{ type: 'text' as const, text: await response.text() }] };
    },
  );
  const server = new McpServer({ name: 'news', version: '1.0.0' });
  server.registerTool(
    'headlines',
    { inputSchema: { day: z.string() } },
    chaos.watch('headlines', headlines),
  );
  server.registerTool(
    'clock',
    {},
    chaos.watch('clock', () => ({ content: [{ type: 'text' as const, text: 'noon' }] })),
  );
  const broken = { isError: true, content: [{ type: 'text' as const, text: 'it broke' }] };
  server.registerTool(
    'bystander',
    {},
    chaos.watch('bystander', () => broken),
  );
  chaos.register(server);
  const client = new Client(
    { name: 'console', version: '2.0' },
    agrees === undefined ? {} : { capabilities: { elicitation: {} } },
  );
  if (agrees !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, () =>
      agrees ? { action: 'accept', content: { confirm: true } } : { action: 'decline' },
    );
  }
  const [near, far] = InMemoryTransport.createLinkedPair();
  far.sessionId = 'session-1';
  await server.connect(far);
  await client.connect(near);
  onTestFinished(() => client.close());
  const call = async (name: string, args: object = {}): Promise<ToolResult> =>
    (await client.callTool({ name, arguments: { ...args } })) as ToolResult;
  return { chaos, news, server, client, call };
};

const REFUSING = { kind: 'status', status: 503, target: { dependency: 'news-api' } } as const;

describe('a server of one’s own', () => {
  verifies('chaos.own-server', async () => {
    const recording = startRecording();
    onTestFinished(() => recording.stop());
    const { news, client, call } = await serve();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'headlines',
      'clock',
      'bystander',
      'inject_fault',
      'list_faults',
      'clear_fault',
      'halt_chaos',
    ]);
    const armed = await call('inject_fault', { ...REFUSING, reason: 'a drill' });
    const { fault } = armed.structuredContent as { fault: { id: string; by: string } };
    expect(fault.by).toBe('console 2.0');
    const struck = await call('headlines', { day: 'monday' });
    expect(codeOf(struck)).toBe('UPSTREAM_UNAVAILABLE');
    expect(news.requests).toHaveLength(0);
    expect(textOf(await call('list_faults'))).toContain(
      `${fault.id}: status on dependency news-api`,
    );
    await call('clear_fault', { id: fault.id });
    expect(textOf(await call('headlines', { day: 'monday' }))).toBe('all is well');
    expect(news.requests).toHaveLength(1);
    const durations = await recording.points(METRIC.toolDuration.name);
    expect(
      durations.map(({ attributes }) => [attributes['tool.outcome'], attributes['fault.id']]),
    ).toEqual([
      ['error', fault.id],
      ['success', undefined],
    ]);
  });

  test('a tool without a pipeline is struck where it is called', async () => {
    const { call } = await serve();
    await call('inject_fault', { kind: 'tool_error', target: { tool: 'clock' }, maxCount: 1 });
    expect(await call('clock')).toMatchObject({ isError: true });
    expect(textOf(await call('clock'))).toBe('noon');
  });

  test('has the playbook of its own targets, and the prompt', async () => {
    const { client } = await serve();
    const { contents } = await client.readResource({ uri: 'chaos://playbook' });
    expect(contents[0]).toMatchObject({ uri: 'chaos://playbook', mimeType: 'text/markdown' });
    expect(JSON.stringify(contents)).toContain('- Dependencies: `news-api`');
    const { prompts } = await client.listPrompts();
    expect(prompts).toMatchObject([
      { name: 'run_drill', arguments: [{ name: 'drill', required: true }, { name: 'tool' }] },
    ]);
    const { messages } = await client.getPrompt({
      name: 'run_drill',
      arguments: { drill: 'hang' },
    });
    expect(JSON.stringify(messages)).toContain('Run the drill \\"hang\\" on the tool headlines');
    await expect(
      client.getPrompt({ name: 'run_drill', arguments: { drill: 'hagn' } }),
    ).rejects.toThrow('drill must be one of burst-503');
  });

  test.each([true, false])('a person is asked where the client can ask one: %s', async (agrees) => {
    const { chaos, call } = await serve({ agrees });
    const result = await call('inject_fault', REFUSING);
    expect(result.isError ?? false).toBe(!agrees);
    expect(chaos.list().faults).toHaveLength(agrees ? 1 : 0);
  });

  test('a fault ends with the session that armed it', async () => {
    const { chaos, client, call } = await serve();
    await call('inject_fault', REFUSING);
    chaos.arm(REFUSING);
    await client.close();
    const { faults, recent } = chaos.list();
    expect(faults.map(({ by }) => by)).toEqual(['code']);
    expect(recent).toMatchObject([{ by: 'console 2.0', endReason: 'session_ended' }]);
  });

  test('what is told when its connection closes is still told, and it can be connected again', async () => {
    const chaos = open();
    const server = new McpServer({ name: 'news', version: '1.0.0' });
    let closed = 0;
    server.server.onclose = () => {
      closed += 1;
    };
    chaos.register(server);
    for (const session of ['first', 'second']) {
      const client = new Client({ name: session, version: '1' });
      const [near, far] = InMemoryTransport.createLinkedPair();
      far.sessionId = session;
      await Promise.all([server.connect(far), client.connect(near)]);
      const armed = await client.callTool({ name: 'inject_fault', arguments: { ...REFUSING } });
      expect(armed.isError ?? false).toBe(false);
      await client.close();
    }
    expect(closed).toBe(2);
    expect(chaos.list().faults).toEqual([]);
  });

  test('stops by itself when bystanders fail', async () => {
    const { chaos, call } = await serve({
      autoStop: { errorRate: 0.5, minimumCalls: 4, windowSeconds: 60 },
    });
    await call('inject_fault', REFUSING);
    for (let n = 0; n < 4; n += 1) await call('bystander');
    expect(chaos.list()).toMatchObject({ faults: [], halted: true });
    expect(() => chaos.arm(REFUSING)).toThrow('chaos is halted');
    expect([chaos.lift(), chaos.lift()]).toEqual([true, false]);
    expect(chaos.arm(REFUSING).by).toBe('code');
  });

  test('a tool of that name is not replaced', () => {
    const server = new McpServer({ name: 'news', version: '1.0.0' });
    server.registerTool('halt_chaos', {}, () => ({ content: [] }));
    expect(() => open().register(server)).toThrow('halt_chaos');
  });
});

describe('from code', () => {
  test('faults are armed, listed and cleared', async () => {
    const { chaos, call } = await serve();
    const first = chaos.arm(REFUSING, 'a test');
    expect(first).toMatchObject({ by: 'a test', kind: 'status', settings: { ttlSeconds: 60 } });
    chaos.arm({ kind: 'tool_error', target: { tool: 'clock' } });
    expect(codeOf(await call('headlines', { day: 'x' }))).toBe('UPSTREAM_UNAVAILABLE');
    expect(chaos.list().faults.map(({ injected }) => injected)).toEqual([1, 0]);
    expect([chaos.clear(first.id), chaos.clear(first.id)]).toEqual([1, 0]);
    expect([chaos.clear(), chaos.clear()]).toEqual([1, 0]);
    expect(textOf(await call('headlines', { day: 'x' }))).toBe('all is well');
  });

  test('what is no fault is refused in words', () => {
    const chaos = open();
    expect(() => chaos.arm({ kind: 'latency', target: {} })).toThrow(
      /^target: must name a tool.*; latency: is needed/,
    );
    expect(() => chaos.arm({ kind: 'hang', target: { tool: 'headlnies' } })).toThrow(
      'target.tool: there is no tool "headlnies"; there are headlines, clock',
    );
  });

  test('a handler that is called without a context is watched all the same', async () => {
    const chaos = open();
    const handler = chaos.watch('clock', (text: string) => text);
    chaos.arm({ kind: 'protocol_error', target: { tool: 'clock' }, maxCount: 1 });
    await expect(handler('x')).rejects.toThrow('Internal error');
    expect(await handler('x')).toBe('x');
  });
});

verifies('chaos.own-server-production', () => {
  const options = { targets: [{ tool: 'clock' }] };
  const message =
    'fault injection is refused where NODE_ENV is production; set MCP_CHAOS_IN_PRODUCTION=1 as well if it is meant';
  expect(() => createChaos(options, { NODE_ENV: 'production' })).toThrow(message);
  const chaos = createChaos(options, { NODE_ENV: 'production', MCP_CHAOS_IN_PRODUCTION: '1' });
  return chaos.close();
});
