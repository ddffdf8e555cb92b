import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { type CallRecord, inputOf, startLoad } from '../../src/chaos/drill-load.ts';
import { drillSchema, type Load } from '../../src/chaos/drill-schema.ts';
import { connectHttp } from '../../src/mcp/client.ts';
import { failureResult } from '../../src/mcp/protected-result.ts';
import { createServer } from '../../src/mcp/server.ts';
import { defineTool, type ToolResult } from '../../src/mcp/tool.ts';
import { serveHttp } from '../../src/mcp/transports/http.ts';
import { systemClock } from '../../src/resilience/clock.ts';
import { createFailure } from '../../src/resilience/failure.ts';
import { shortDrill } from './drill-support.ts';

const loadOf = (fields: Partial<Load>): Load => {
  const [load] = drillSchema.parse(
    shortDrill({ load: [{ tool: 'work', everyMs: 10, ...fields } as never] }),
  ).load;
  if (load === undefined) throw new Error('no load');
  return load;
};

/** A client of a real server with one tool, `work`. */
const clientOf = async (handler: (call: number, signal: AbortSignal) => Promise<ToolResult>) => {
  let calls = 0;
  const tool = defineTool({
    name: 'work',
    description: 'work',
    inputSchema: z.object({}),
    handler: (_input, { signal }) => {
      calls += 1;
      return handler(calls, signal);
    },
  });
  const door = await serveHttp({
    createServer: createServer({ name: 'test', version: '1', tools: [tool] }),
    port: 0,
    rateLimit: false,
  });
  const client = await connectHttp(door.url, 'test');
  onTestFinished(async () => {
    await client.close();
    await door.close();
  });
  return client;
};

const ok: ToolResult = { content: [] };

/** Runs the load until so many calls have ended. */
const callsOf = async (
  load: Load,
  count: number,
  handler: Parameters<typeof clientOf>[0],
): Promise<CallRecord[]> => {
  const client = await clientOf(handler);
  const calls: CallRecord[] = [];
  const enough = Promise.withResolvers<void>();
  const running = startLoad(load, {
    client,
    clock: systemClock,
    onCall: (call) => {
      calls.push(call);
      if (calls.length === count) enough.resolve();
    },
  });
  await enough.promise;
  await running.stop();
  const after = calls.length;
  await new Promise((resolve) => setImmediate(resolve));
  expect(calls.length).toBe(after);
  return calls;
};

describe('the load of a drill', () => {
  test('agents repeat at once what failed, as often as they are set to', async () => {
    const refused = failureResult(createFailure('CIRCUIT_OPEN', { retryAfter: 7 }));
    const calls = await callsOf(loadOf({ retries: 2 }), 6, async (call) =>
      call === 5 ? ok : refused,
    );
    expect(calls.slice(0, 6).map(({ repetition }) => repetition)).toEqual([0, 1, 2, 0, 1, 0]);
    expect(calls[0]).toMatchObject({
      load: 'work',
      tool: 'work',
      outcome: 'rejected',
      code: 'CIRCUIT_OPEN',
      retryAfter: 7,
    });
    expect(calls[4]).toMatchObject({ outcome: 'success', repetition: 1 });
    expect(calls[4]).not.toHaveProperty('code');
  });

  test('what an agent gives up on is lost, and the server is told so', async () => {
    const aborted = Promise.withResolvers<void>();
    const calls = await callsOf(
      loadOf({ timeoutMs: 20 }),
      1,
      (_call, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.resolve();
            reject(signal.reason);
          });
        }),
    );
    await aborted.promise;
    expect(calls[0]).toMatchObject({ outcome: 'lost' });
    expect(calls[0]?.code).toMatch(/TIMEOUT/);
  });

  test('agents work at the same time, each on its own', async () => {
    const started = new Set<number>();
    const all = Promise.withResolvers<void>();
    const calls = await callsOf(loadOf({ agents: 5, name: 'crowd' }), 5, async (call) => {
      started.add(call);
      // None of them is answered before all have asked.
      if (started.size === 5) all.resolve();
      await all.promise;
      return ok;
    });
    expect(calls.length).toBeGreaterThanOrEqual(5);
    expect(calls[0]).toMatchObject({ load: 'crowd', tool: 'work', outcome: 'success' });
  });

  test('arguments know the agent and the call', () => {
    const load = loadOf({
      arguments: { a: '{agent}/{call}', list: ['{call}', 1], inner: { b: 'x{agent}x{agent}' } },
    });
    expect(inputOf(load, 3, 8)).toEqual({ a: '3/8', list: ['8', 1], inner: { b: 'x3x3' } });
  });
});
