import { getEventListeners } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { connectHttp } from '../../src/mcp/client.ts';
import { servePlain } from '../../src/mcp/plain-server.ts';
import { createServer } from '../../src/mcp/server.ts';
import { defineTool, type ToolResult } from '../../src/mcp/tool.ts';
import { serveHttp } from '../../src/mcp/transports/http.ts';
import { closedPort } from '../fixtures/otlp-receiver.ts';

const toolOf = (handler: (signal: AbortSignal, input: { text: string }) => Promise<ToolResult>) =>
  defineTool({
    name: 'work',
    description: 'work',
    inputSchema: z.object({ text: z.string() }),
    handler: (input, { signal }) => handler(signal, input),
  });

/** The URL of a server of ours with that tool, until the test ends. */
const serve = async (tool: ReturnType<typeof toolOf>): Promise<string> => {
  const door = await serveHttp({
    createServer: createServer({ name: 'test', version: '1', tools: [tool] }),
    port: 0,
  });
  onTestFinished(() => door.close());
  return door.url;
};

const connect = async (url: string) => {
  const client = await connectHttp(url, 'test');
  onTestFinished(() => client.close());
  return client;
};

describe('client', () => {
  test('gives results as they came, whatever is in them', async () => {
    const result = {
      content: [{ type: 'hologram', depth: 3 }],
      structuredContent: { a: { b: 1 } },
      _meta: { 'x/y': [1] },
      vendor: true,
    };
    const client = await connect(await serve(toolOf(async () => result)));
    expect(await client.call('work', { text: 'a' })).toEqual(result);
    const refused = await client.call('work', {});
    expect(refused.isError).toBe(true);
    await expect(client.call('none', {})).rejects.toThrow(/Unknown tool: none/);
  });

  test('gives up after its timeout, and when its signal aborts, and cancels the work', async () => {
    const aborted: string[] = [];
    const waits = (signal: AbortSignal, { text }: { text: string }): Promise<ToolResult> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted.push(text);
          reject(signal.reason);
        });
      });
    const client = await connect(await serve(toolOf(waits)));
    await expect(client.call('work', { text: 'slow' }, { timeout: 30 })).rejects.toThrow(
      /timed out/,
    );
    const controller = new AbortController();
    const given = client.call('work', { text: 'given up' }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 30);
    await expect(given).rejects.toThrow();
    while (aborted.length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(aborted).toEqual(['slow', 'given up']);
  });

  test('leaves nothing on a signal that outlives the call, and takes one that has aborted', async () => {
    const client = await connect(await serve(toolOf(async () => ({ content: [] }))));
    const { signal } = new AbortController();
    for (let count = 0; count < 3; count += 1) await client.call('work', { text: 'a' }, { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const aborted = client.call('work', { text: 'a' }, { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toThrow();
  });

  test('cannot be opened where nobody serves, and closes quietly where nobody serves any more', async () => {
    await expect(connectHttp(`${await closedPort()}/mcp`, 'test')).rejects.toThrow();
    const door = await serveHttp({
      createServer: createServer({ name: 'test', version: '1', tools: [] }),
      port: 0,
    });
    const client = await connectHttp(door.url, 'test');
    await door.close();
    await client.close();
  });
});

describe('plain server', () => {
  test('serves tools of ours through the SDK alone, to several clients', async () => {
    const tool = toolOf(async (_signal, { text }) => {
      if (text === 'bad') throw new Error('broken');
      return { content: [{ type: 'text', text }] };
    });
    const server = await servePlain({ name: 'plain', tools: [tool] });
    onTestFinished(() => server.close());
    const [one, two] = [await connect(server.url), await connect(server.url)];
    const answers = await Promise.all([
      one.call('work', { text: 'a' }),
      two.call('work', { text: 'b' }),
      one.call('work', { text: 'bad' }),
    ]);
    expect(answers).toEqual([
      { content: [{ type: 'text', text: 'a' }] },
      { content: [{ type: 'text', text: 'b' }] },
      { isError: true, content: [{ type: 'text', text: 'broken' }] },
    ]);
    await one.close();
    expect(await two.call('work', { text: 'c' })).toMatchObject({ content: [{ text: 'c' }] });
    await expect(fetch(server.url, { method: 'DELETE' })).resolves.toMatchObject({ ok: false });
  });
});
