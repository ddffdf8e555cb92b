import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { instrumentTransport } from '../../src/mcp/instrument.ts';
import { createServer, type ServerDefinition } from '../../src/mcp/server.ts';
import { defineTool, type Tool, type ToolResult } from '../../src/mcp/tool.ts';
import { verifies } from '../fixtures/verifies.ts';
import { heldTools, text } from './support/tools.ts';
import { until } from './support/wait.ts';

const connect = async (tools: readonly Tool[], rest: Partial<ServerDefinition> = {}) => {
  const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
  const factory = createServer({ name: 'test', version: '1.2.3', tools, ...rest });
  const server = factory();
  const wire: unknown[] = [];
  const send = serverSide.send.bind(serverSide);
  serverSide.send = (message) => {
    wire.push(message);
    return send(message);
  };
  await server.connect(instrumentTransport(serverSide as never, { network: 'pipe' }));
  const client = new Client({ name: 'tester', version: '1' });
  await client.connect(clientSide);
  const call = (name: string, args?: unknown) =>
    client.request(
      { method: 'tools/call', params: { name, arguments: args } } as never,
      ResultSchema,
    ) as Promise<unknown> as Promise<ToolResult>;
  return { client, server, call, wire };
};

const weather = defineTool({
  name: 'get_weather',
  title: 'Weather',
  description: 'Tells the weather',
  inputSchema: z.object({ city: z.string(), days: z.int().min(1).max(7).default(1) }),
  outputSchema: z.object({ celsius: z.number() }),
  annotations: { readOnlyHint: true },
  _meta: { 'example/kind': 'demo' },
  handler: ({ city, days }) => ({
    content: [{ type: 'text', text: `${city} ${days}` }],
    structuredContent: { celsius: 20 },
  }),
});

const returning = (name: string, result: unknown, outputSchema?: z.ZodType): Tool => ({
  name,
  description: name,
  inputSchema: z.object({}),
  ...(outputSchema && { outputSchema }),
  handler: () => result as ToolResult,
});

const failureOf = (result: ToolResult) =>
  result._meta?.['mcp-resilience/failure'] as Record<string, unknown> | undefined;

describe('tools/list', () => {
  verifies('server.list', async () => {
    const { client } = await connect([weather, returning('b', text('')), returning('a', text(''))]);
    const { tools } = (await client.request({ method: 'tools/list' }, ResultSchema)) as unknown as {
      tools: Record<string, unknown>[];
    };
    expect(tools.map(({ name }) => name)).toEqual(['get_weather', 'b', 'a']);
    expect(tools[0]).toEqual({
      name: 'get_weather',
      title: 'Weather',
      description: 'Tells the weather',
      inputSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          city: { type: 'string' },
          days: { default: 1, type: 'integer', minimum: 1, maximum: 7 },
        },
        required: ['city'],
      },
      outputSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { celsius: { type: 'number' } },
        required: ['celsius'],
      },
      annotations: { readOnlyHint: true },
      _meta: { 'example/kind': 'demo' },
    });
  });

  test('refuses a cursor that it never gave', async () => {
    const { client } = await connect([weather]);
    await expect(client.listTools({ cursor: 'x' })).rejects.toThrow(/-32602.*without a cursor/);
    const odd = client.request({ method: 'tools/list', params: { cursor: 5 } }, ResultSchema);
    await expect(odd).rejects.toThrow(/-32602.*without a cursor/);
  });

  test('a tool that the protocol cannot carry is refused when the server is made', () => {
    const make =
      (...tools: Tool[]) =>
      () =>
        createServer({ name: 'x', version: '1', tools });
    expect(make(weather, weather)).toThrow('two tools are called "get_weather"');
    expect(make({ ...returning('x', text('')), name: 'get weather' })).toThrow(
      /tool name "get weather"/,
    );
    expect(make({ ...returning('x', text('')), inputSchema: z.string() })).toThrow(
      /must be an object/,
    );
    expect(make({ ...returning('x', text('')), inputSchema: z.object({ at: z.date() }) })).toThrow(
      /JSON Schema cannot express its inputSchema/,
    );
  });
});

describe('tools/call', () => {
  verifies('server.invalid-input', async () => {
    const { call } = await connect([weather]);
    const result = await call('get_weather', { days: 99 });
    expect(result.isError).toBe(true);
    expect(result.content[0]?.text).toMatch(
      /^\[INVALID_INPUT\] invalid input for get_weather: city: .*string.*; days: .*7[\s\S]*Correct city, days and call get_weather again/,
    );
    expect(failureOf(result)).toMatchObject({
      code: 'INVALID_INPUT',
      source: 'validation',
      retryable: false,
    });
    expect((await call('get_weather')).isError).toBe(true);
    expect((await call('get_weather', { city: 'Oslo' })).content[0]?.text).toBe('Oslo 1');
  });

  test('an unknown tool is a protocol error that says where the names stand', async () => {
    const { call, wire } = await connect([weather]);
    await expect(call('get_wether')).rejects.toMatchObject({ code: -32602 });
    expect(wire.at(-1)).toMatchObject({
      error: {
        message: 'Unknown tool: get_wether; tools/list tells the names that exist',
        data: {
          'mcp-resilience/failure': {
            code: 'INVALID_INPUT',
            retryable: false,
            suggestion: 'Use a name that tools/list gives.',
          },
        },
      },
    });
    const { client } = await connect([weather]);
    await expect(client.request({ method: 'no/such' }, ResultSchema)).rejects.toMatchObject({
      code: -32601,
      data: { 'mcp-resilience/failure': { code: 'METHOD_NOT_FOUND' } },
    });
  });

  test('a name that nobody has is not sent back in all its length', async () => {
    const { client, call, wire } = await connect([weather]);
    await expect(call('x'.repeat(100_000))).rejects.toMatchObject({ code: -32602 });
    await expect(
      client.request({ method: 'y'.repeat(100_000) }, ResultSchema),
    ).rejects.toMatchObject({ code: -32601 });
    for (const message of wire.slice(-2)) {
      expect(JSON.stringify(message).length).toBeLessThan(2_000);
    }
  });

  test('a call that asks for a task is answered as any other, since there are none', async () => {
    const { client } = await connect([weather]);
    const params = { name: 'get_weather', arguments: { city: 'Oslo' }, task: { ttl: 60_000 } };
    await expect(
      client.request({ method: 'tools/call', params } as never, ResultSchema),
    ).resolves.toMatchObject({ content: [{ text: 'Oslo 1' }] });
  });

  test('a result that cannot be written as JSON is a fault of the tool, and is answered', async () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    for (const value of [cycle, 7n]) {
      const odd = defineTool({
        name: 'odd',
        description: 'odd',
        inputSchema: z.object({}),
        handler: () => ({ content: [{ type: 'text', text: 'x' }], value }),
      });
      const { call } = await connect([odd]);
      const result = await call('odd');
      expect(result.isError).toBe(true);
      expect(result.content[0]?.text).toContain('cannot be written as JSON');
    }
  });

  verifies('server.passes-through', async () => {
    const result = {
      content: [
        { type: 'hologram', beam: 7 },
        { type: 'text', text: 'x', 'x-vendor': { deep: [1] }, annotations: { audience: ['user'] } },
      ],
      structuredContent: { celsius: 1, extra: { kept: true } },
      _meta: { 'example/trace': 'abc' },
      'x-future': 1,
    };
    const { call, wire } = await connect([returning('all', result, weather.outputSchema)]);
    expect(await call('all')).toEqual(result);
    expect(wire.at(-1)).toMatchObject({ result });
  });

  verifies('server.output-schema', async () => {
    const { call } = await connect([
      returning(
        'wrong',
        { ...text('x'), structuredContent: { celsius: 'hot' } },
        weather.outputSchema,
      ),
      returning('missing', text('x'), weather.outputSchema),
      returning('nothing', undefined),
      returning('failed', { ...text('down'), isError: true }, weather.outputSchema),
    ]);
    for (const [name, problem] of [
      ['wrong', /does not match its outputSchema \(celsius: .*number/],
      ['missing', /returned no "structuredContent"/],
      ['nothing', /returned no result/],
    ] as const) {
      const result = await call(name);
      expect(result.content[0]?.text).toMatch(problem);
      expect(result.structuredContent).toBeUndefined();
      expect(failureOf(result)?.code).toBe('INTERNAL_ERROR');
    }
    expect(await call('failed')).toEqual({ ...text('down'), isError: true });
  });

  test('what a handler throws becomes a result', async () => {
    const boom: Tool = {
      name: 'boom',
      description: '',
      inputSchema: z.object({}),
      handler: () => {
        throw new Error('disk on fire');
      },
    };
    const { call } = await connect([boom]);
    const result = await call('boom');
    expect(result.isError).toBe(true);
    expect(result.content[0]?.text).toContain('disk on fire');

    const custom = await connect([boom], {
      toErrorResult: (error, tool) => text(`${tool.name}: ${(error as Error).message}`),
    });
    expect(await custom.call('boom')).toEqual(text('boom: disk on fire'));

    const broken = await connect([boom], {
      toErrorResult: () => {
        throw new Error('again');
      },
    });
    expect((await broken.call('boom')).isError).toBe(true);
  });

  verifies('server.cancel', async () => {
    const { tools, calls } = heldTools();
    const { client, wire } = await connect(tools);
    const abort = new AbortController();
    const pending = client.callTool({ name: 'hold', arguments: {} }, undefined, {
      signal: abort.signal,
    });
    await until(() => calls.length === 1);
    const sent = wire.length;
    abort.abort('enough');
    await expect(pending).rejects.toThrow(/enough/);
    await until(() => calls[0]?.context.signal.aborted === true);
    calls[0]?.answer(text('too late'));
    await client.ping();
    expect(wire.slice(sent)).toEqual([{ jsonrpc: '2.0', id: expect.anything(), result: {} }]);
  });

  test('progress goes forward only, and only while the client waits and asked for it', async () => {
    const { tools, calls } = heldTools();
    const { client, wire } = await connect(tools);
    const seen: unknown[] = [];
    const pending = client.callTool({ name: 'hold', arguments: {} }, undefined, {
      onprogress: (progress) => seen.push(progress),
    });
    await until(() => calls.length === 1);
    const progress = calls[0]?.context.progress;
    progress?.(1, 3, 'one');
    progress?.(1, 3, 'again');
    progress?.(2);
    calls[0]?.answer(text('done'));
    await pending;
    progress?.(3);
    const silent = client.callTool({ name: 'hold', arguments: {} });
    await until(() => calls.length === 2);
    calls[1]?.context.progress(1);
    calls[1]?.answer(text('done'));
    await silent;
    expect(seen).toEqual([{ progress: 1, total: 3, message: 'one' }, { progress: 2 }]);
    expect(JSON.stringify(wire).match(/notifications\/progress/g)).toHaveLength(2);
  });
});
