import { trace } from '@opentelemetry/api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createServer } from '../../src/mcp/server.ts';
import type { ToolContext } from '../../src/mcp/tool.ts';
import { flush } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';
import { connect, openDoor, openSession, post, rpc } from './support/door.ts';

const RESOURCES = [
  {
    uri: 'notes://one',
    name: 'one',
    title: 'The first note',
    description: 'A note.',
    mimeType: 'text/plain',
    read: () => 'text of one',
  },
  { uri: 'notes://two', name: 'two', mimeType: 'text/plain', read: async () => 'text of two' },
];

const PROMPTS = [
  {
    name: 'greet',
    title: 'Greeting',
    description: 'Says hello.',
    arguments: [
      { name: 'who', description: 'Whom.', required: true },
      { name: 'how', description: 'How.' },
    ],
    text: ({ who, how = 'Hello' }: Readonly<Record<string, string>>) => {
      if (who === 'nobody') throw new Error('who must be somebody');
      return `${how}, ${who}!`;
    },
  },
];

const definition = { resources: RESOURCES, prompts: PROMPTS };

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    (error: { code: number; message: string }) => `${error.code} ${error.message}`,
  );

let recording: ReturnType<typeof startRecording>;
beforeAll(() => {
  recording = startRecording();
});
afterAll(() => recording.stop());

describe('resources and prompts', () => {
  verifies('mcp.offer', async () => {
    const { door } = await openDoor({}, definition);
    const { client } = await connect(door);
    expect(client.getServerCapabilities()).toEqual({ tools: {}, resources: {}, prompts: {} });
    const { resources } = await client.listResources();
    expect(resources).toEqual(RESOURCES.map(({ read: _, ...listed }) => listed));
    expect(await client.listResourceTemplates()).toEqual({ resourceTemplates: [] });
    const { contents } = await client.readResource({ uri: 'notes://two' });
    expect(contents).toEqual([{ uri: 'notes://two', mimeType: 'text/plain', text: 'text of two' }]);
    const { prompts } = await client.listPrompts();
    expect(prompts).toEqual(PROMPTS.map(({ text: _, ...listed }) => listed));
    const { messages } = await client.getPrompt({ name: 'greet', arguments: { who: 'you' } });
    expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: 'Hello, you!' } }]);

    expect(await errorOf(client.readResource({ uri: 'notes://three' }))).toContain(
      '-32002 MCP error -32002: Resource not found: "notes://three"',
    );
    for (const [args, why] of [
      [{}, 'who is missing'],
      [{ who: 'nobody' }, 'who must be somebody'],
    ] as const) {
      expect(await errorOf(client.getPrompt({ name: 'greet', arguments: args }))).toContain(
        `-32602: invalid arguments for the prompt greet: ${why}`,
      );
    }
    expect(await errorOf(client.getPrompt({ name: 'x'.repeat(500) }))).toMatch(
      /-32602: Unknown prompt: "x{128}…"; prompts\/list/,
    );
    for (const list of ['listResources', 'listPrompts', 'listResourceTemplates'] as const)
      expect(await errorOf(client[list]({ cursor: 'x' }))).toContain('Invalid cursor');

    const names = recording.spans().map(({ name }) => name);
    expect(names).toContain('prompts/get greet');
    expect(names).toContain('prompts/get _other');
    expect(names).toContain('resources/read');
  });

  test('arguments that are no strings are refused', async () => {
    const { door } = await openDoor({}, definition);
    const session = await openSession(door);
    const params = { name: 'greet', arguments: { who: 7, how: null } };
    const response = await post(door, rpc(1, 'prompts/get', params), session);
    expect(await response.text()).toContain('who must be a string; how must be a string');
  });

  test('a server without them does not know the methods', async () => {
    const { door } = await openDoor();
    const { client } = await connect(door);
    expect(client.getServerCapabilities()).toEqual({ tools: {} });
    const session = await openSession(door);
    for (const method of ['resources/list', 'prompts/get', 'resources/read']) {
      const response = await post(door, rpc(1, method), session);
      expect(await response.text()).toContain(`Method not found: ${method}`);
    }
  });

  test('two of one name are refused at once', () => {
    const twice = (extra: object) => () =>
      createServer({ name: 'x', version: '1', tools: [], ...extra });
    expect(twice({ resources: [RESOURCES[0], RESOURCES[0]] })).toThrow(
      'two resources are called "notes://one"',
    );
    expect(twice({ prompts: [PROMPTS[0], PROMPTS[0]] })).toThrow('two prompts are called "greet"');
  });
});

describe('what a handler is told of its client', () => {
  const openTelling = async () => {
    const contexts: ToolContext[] = [];
    const tell = {
      name: 'tell',
      description: 'x',
      inputSchema: z.object({}),
      handler: (_input: unknown, context: ToolContext) => {
        contexts.push(context);
        return { content: [] };
      },
    };
    return { ...(await openDoor({}, { tools: [tell] })), contexts };
  };

  test('is its name, and when its session has ended', async () => {
    const { door, contexts } = await openTelling();
    const { client, transport } = await connect(door);
    await client.callTool({ name: 'tell' });
    const [context] = contexts;
    expect(context?.client).toEqual({ name: 'tester', version: '1' });
    expect(context?.elicit).toBeUndefined();
    expect(context?.sessionEnded?.aborted).toBe(false);
    await transport.terminateSession();
    expect(context?.sessionEnded?.aborted).toBe(true);
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  test('is that it has gone, when its stream broke off and nothing more came', async () => {
    const { door, contexts, clock } = await openTelling();
    const session = await openSession(door);
    const call = () => post(door, rpc(1, 'tools/call', { name: 'tell' }), session);
    const stream = async () => {
      const leave = new AbortController();
      const headers = { accept: 'text/event-stream', ...session };
      await fetch(door.url, { headers, signal: leave.signal });
      return async () => {
        leave.abort();
        // The server has seen it: it waits for the client to come back.
        while (clock.nextTimer !== 10_000) await flush();
      };
    };
    const ended = () => contexts.map(({ sessionEnded }) => sessionEnded?.aborted);

    await (await call()).text();
    await (await stream())();
    await clock.advance(9_999);
    expect(ended()).toEqual([false]);
    // It came back in time.
    await (await call()).text();
    await clock.advance(20_000);
    expect(ended()).toEqual([false, false]);

    await (await stream())();
    await clock.advance(10_000);
    expect(ended()).toEqual([true, true]);
    // It was not dead after all: what it does now is watched anew.
    await (await call()).text();
    expect(ended()).toEqual([true, true, false]);
  });
});
