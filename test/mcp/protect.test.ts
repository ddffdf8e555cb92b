import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createFailure,
  createPipeline,
  failureResult,
  type PolicySettings,
  protect,
  type ToolAnnotations,
  type ToolResult,
  throttledResult,
} from '../../src/index.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

/** A tool on the SDK's own server, behind protect(), called by the SDK's own client. */
const setUp = async (
  settings: PolicySettings,
  annotations: ToolAnnotations,
  work: (attempt: number, signal: AbortSignal) => Promise<ReturnType<typeof text>>,
) => {
  const clock = new ManualClock();
  const pipeline = createPipeline('crm', settings, { clock, random: () => 0 });
  const server = new McpServer({ name: 'own', version: '1.0.0' });
  let calls = 0;
  const handler = protect(
    {
      name: 'lookup',
      pipeline,
      annotations,
      ...(annotations.destructiveHint === false && {
        fallback: (input: { id: string }) => ({
          content: [{ type: 'text', text: `no ${input.id}` }],
        }),
      }),
    },
    async ({ id }: { id: string }, extra: { signal: AbortSignal }) => {
      expect(id).toBe('7');
      return work(++calls, extra.signal);
    },
  );
  server.registerTool('lookup', { inputSchema: { id: z.string() }, annotations }, handler);
  const client = new Client({ name: 'test', version: '1.0.0' });
  const [left, right] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(left), client.connect(right)]);
  const call = (options: { signal?: AbortSignal } = {}) =>
    client.callTool(
      { name: 'lookup', arguments: { id: '7' } },
      undefined,
      options,
    ) as Promise<unknown> as Promise<ToolResult>;
  return { clock, pipeline, call, calls: () => calls };
};

const readOnly = { readOnlyHint: true };

describe('protect', () => {
  verifies('protect.sdk-server', async () => {
    const recording = startRecording();
    try {
      const settings: PolicySettings = {
        breaker: { threshold: 1 },
        cache: { ttl: 1_000, staleIfError: 1_000 },
      };
      let down = false;
      const { clock, call, calls } = await setUp(
        settings,
        { ...readOnly, destructiveHint: false },
        async () => {
          if (down) throw reset();
          return text('up');
        },
      );
      expect((await call())._meta).toMatchObject({ from_cache: false });
      const cached = await call();
      expect(cached.content).toEqual([{ type: 'text', text: 'up' }]);
      expect(cached._meta).toMatchObject({
        from_cache: true,
        age_seconds: 0,
        'mcp-resilience/outcome': 'cached',
      });
      down = true;
      await clock.advance(1_500);
      const stale = await call();
      expect(stale._meta).toMatchObject({
        degraded: true,
        age_seconds: 2,
        'mcp-resilience/outcome': 'degraded',
        'mcp-resilience/failure': { code: 'CONNECTION_RESET' },
      });
      expect(stale.content[1]?.text).toMatch(/^Note: this answer is 2 s old/);
      await clock.advance(1_000);
      const substitute = await call();
      expect(substitute._meta).toMatchObject({
        degraded: true,
        reason: expect.stringMatching(/^CIRCUIT_OPEN: /),
      });
      expect(substitute.content).toEqual([
        { type: 'text', text: 'no 7' },
        {
          type: 'text',
          text: expect.stringMatching(/^Note: this is a substitute, not a live answer/),
        },
      ]);
      expect(calls()).toBe(2);
      const outcomes = (await recording.points('tool.duration')).map(({ attributes, value }) => [
        attributes['gen_ai.tool.name'],
        attributes['tool.outcome'],
        value,
      ]);
      expect(outcomes).toEqual([
        ['lookup', 'success', 1],
        ['lookup', 'cached', 1],
        ['lookup', 'degraded', 2],
      ]);
    } finally {
      recording.stop();
    }
  });

  verifies('protect.annotations', async () => {
    const settings: PolicySettings = {
      retry: { maxRetries: 2, baseDelay: 0, budget: false },
      cache: { ttl: 1_000 },
    };
    const flaky = async (attempt: number) => {
      if (attempt % 3 !== 0) throw reset();
      return text('up');
    };
    const twice = async (annotations: ToolAnnotations) => {
      const { clock, call, calls } = await setUp(settings, annotations, flaky);
      const results: ToolResult[] = [];
      for (let i = 0; i < 2; i++) {
        const result = call();
        await clock.advance(10);
        results.push(await result);
      }
      const codes = results.map(
        (result) =>
          (result._meta?.['mcp-resilience/failure'] as { code: string } | undefined)?.code,
      );
      return [calls(), ...codes];
    };
    expect(await twice({ readOnlyHint: true })).toEqual([3, undefined, undefined]); // retried and cached
    expect(await twice({ idempotentHint: true })).toEqual([6, undefined, undefined]); // retried only
    expect(await twice({})).toEqual([2, 'OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN']); // neither
  });

  test('a result with isError is the tool speaking: no retry, no breaker, no cache', async () => {
    const settings: PolicySettings = {
      retry: {},
      breaker: { threshold: 1 },
      cache: { ttl: 1_000 },
    };
    const { pipeline, call, calls } = await setUp(settings, readOnly, async (attempt) => ({
      ...text(`no such id (${attempt})`),
      isError: true,
    }));
    for (let i = 1; i <= 3; i++) {
      expect(await call()).toMatchObject({
        isError: true,
        content: [{ text: `no such id (${i})` }],
      });
    }
    expect([calls(), pipeline.breaker?.state, pipeline.cache?.size]).toEqual([3, 'closed', 0]);
  });

  test("the client's cancellation reaches the handler, and is no failure", async () => {
    const aborted = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const { pipeline, call } = await setUp(
      { breaker: { threshold: 1 } },
      readOnly,
      async (_, signal) => {
        signal.addEventListener('abort', () => aborted.resolve());
        started.resolve();
        return new Promise(() => {});
      },
    );
    const controller = new AbortController();
    const result = call({ signal: controller.signal });
    await started.promise;
    controller.abort('user');
    await expect(result).rejects.toThrow();
    await aborted.promise;
    expect(pipeline.breaker?.toJSON()).toMatchObject({ state: 'closed', failureCount: 0 });
  });

  verifies('T01', async () => {
    const clock = new ManualClock();
    const pipeline = createPipeline('crm', { timeout: 300, deadline: 2_000 }, { clock });
    const sent: number[] = [];
    const context = { progress: (value: number) => void sent.push(value) };
    const work = (steps: number) =>
      protect({ name: 'long', pipeline }, async ({ progress }: typeof context) => {
        for (let step = 1; step <= steps; step++) {
          await new Promise<void>((resolve) => clock.setTimer(100, resolve));
          progress(step);
        }
        return text('done');
      })(context);
    const long = work(10);
    await clock.advance(1_000);
    expect([(await long).isError, sent.length]).toEqual([undefined, 10]);
    const endless = work(1_000);
    await clock.advance(2_000);
    expect(await endless).toMatchObject({
      isError: true,
      _meta: { 'mcp-resilience/failure': { code: 'OUTCOME_UNKNOWN' } },
    });
    // Silence is what the limit is for.
    const silent = protect(
      { name: 'long', pipeline, annotations: readOnly },
      () => new Promise<never>(() => {}),
    );
    const timedOut = silent(context as never);
    await clock.advance(300);
    expect(await timedOut).toMatchObject({
      _meta: { 'mcp-resilience/failure': { code: 'TIMEOUT' } },
    });
    // The SDK's own way to send progress.
    const steps = protect(
      { name: 'long', pipeline },
      async (extra: { sendNotification: (n: { method: string }) => Promise<void> }) => {
        for (let step = 0; step < 5; step++) {
          await new Promise<void>((resolve) => clock.setTimer(200, resolve));
          await extra.sendNotification({ method: 'notifications/progress' });
        }
        return text('done');
      },
    );
    const viaSdk = steps({ sendNotification: async () => {} });
    await clock.advance(1_000);
    expect((await viaSdk).isError).toBeUndefined();
  });

  test("a classifier of one's own does not make errors of the tool answers to keep", async () => {
    const pipeline = createPipeline('crm', { cache: { ttl: 1_000 } });
    let calls = 0;
    const handler = protect(
      { name: 'lookup', pipeline, annotations: readOnly, classifyResult: throttledResult },
      async (_context: object) => ({ ...text(`no such id (${++calls})`), isError: true }),
    );
    await handler({});
    expect((await handler({})).content[0]?.text).toBe('no such id (2)');
    expect(pipeline.cache?.size).toBe(0);
  });

  test('an abort that is not of the client is a failure, for the client still waits', async () => {
    const recording = startRecording();
    try {
      const pipeline = createPipeline('crm', {});
      const client = new AbortController();
      const handler = protect(
        { name: 'lookup', pipeline, annotations: readOnly },
        async (_context: { signal: AbortSignal }) => {
          throw new DOMException('an abort of its own', 'AbortError');
        },
      );
      expect(await handler({ signal: client.signal })).toMatchObject({
        isError: true,
        _meta: { 'mcp-resilience/failure': { code: 'CANCELLED' } },
      });
      client.abort('user');
      await expect(handler({ signal: client.signal })).rejects.toBe('user');
      const outcomes = (await recording.points('tool.duration')).map(
        ({ attributes }) => attributes['tool.outcome'],
      );
      expect(outcomes).toEqual(['error', 'cancelled']);
    } finally {
      recording.stop();
    }
  });

  test('the error of a result that tells of one is named as the conventions name it', async () => {
    const recording = startRecording();
    try {
      const pipeline = createPipeline('crm', {});
      const results: ToolResult[] = [
        { ...text('no such id'), isError: true },
        failureResult(createFailure('NOT_FOUND')),
      ];
      const options = { name: 'lookup', pipeline, annotations: readOnly };
      const handler = protect(options, async (_context: object) => results.shift() as ToolResult);
      await handler({});
      await handler({});
      const types = (await recording.points('tool.duration')).map(
        ({ attributes }) => attributes['error.type'],
      );
      expect(types).toEqual(['tool_error', 'NOT_FOUND']);
    } finally {
      recording.stop();
    }
  });

  test('a stale answer without content is served with its note', async () => {
    const clock = new ManualClock();
    const settings = { cache: { ttl: 1_000, staleIfError: 1_000 } };
    const pipeline = createPipeline('crm', settings, { clock });
    let down = false;
    const handler = protect(
      { name: 'lookup', pipeline, annotations: readOnly },
      async (_context: object) => {
        if (down) throw reset();
        return { structuredContent: { id: 7 } };
      },
    );
    await handler({});
    down = true;
    await clock.advance(1_500);
    expect(await handler({})).toMatchObject({
      structuredContent: { id: 7 },
      content: [{ text: expect.stringMatching(/^Note: this answer is 2 s old/) }],
    });
  });

  test("the pipeline's own classifyResult holds under protect, and one that throws hides no isError", async () => {
    const clock = new ManualClock();
    const throttled = createFailure('RATE_LIMITED', { retryAfter: 1 });
    const limited = { ...text('quota exceeded'), quota: true };
    const pipeline = createPipeline(
      'crm',
      { retry: { maxRetries: 1 }, cache: { ttl: 1_000 } },
      {
        clock,
        classifyResult: (result) => ((result as { quota?: true }).quota ? throttled : undefined),
      },
    );
    let calls = 0;
    const handler = protect(
      { name: 'me', pipeline, annotations: readOnly },
      async (_context: object) => (++calls === 1 ? limited : text('up')),
    );
    const answer = handler({});
    await clock.advance(1_500);
    expect([(await answer).content[0]?.text, calls]).toEqual(['up', 2]);

    const broken = createPipeline('crm 2', { cache: { ttl: 1_000 } });
    let failures = 0;
    const options = {
      name: 'me',
      pipeline: broken,
      annotations: readOnly,
      classifyResult: () => {
        throw new Error('classifier broke');
      },
    };
    const failing = protect(options, async (_context: object) => {
      failures++;
      return { ...text('no'), isError: true };
    });
    await failing({});
    await failing({});
    expect(failures).toBe(2);
  });

  test('users of one OAuth client do not share answers', async () => {
    const pipeline = createPipeline('crm', { cache: { ttl: 1_000 } });
    let calls = 0;
    interface Extra {
      authInfo: { token: string; clientId: string; extra?: Record<string, unknown> };
    }
    const handler = protect(
      { name: 'me', pipeline, annotations: readOnly },
      async (_extra: Extra) => text(`answer ${++calls}`),
    );
    const as = async (token: string, principal?: string) => {
      const authInfo = { token, clientId: 'the app', ...(principal && { extra: { principal } }) };
      return (await handler({ authInfo })).content[0]?.text;
    };
    expect([await as('a'), await as('b'), await as('a')]).toEqual([
      'answer 1',
      'answer 2',
      'answer 1',
    ]);
    // One principal with two tokens is one.
    expect([await as('c', 'alice'), await as('d', 'alice')]).toEqual(['answer 3', 'answer 3']);
  });

  test('principals do not share answers', async () => {
    const pipeline = createPipeline('crm', { cache: { ttl: 1_000 } });
    let calls = 0;
    const handler = protect(
      { name: 'me', pipeline, annotations: readOnly },
      async (_context: { principal?: string }) => text(`answer ${++calls}`),
    );
    const answers: unknown[] = [];
    for (const principal of ['a', 'b', 'a']) {
      answers.push((await handler({ principal })).content[0]?.text);
    }
    expect(answers).toEqual(['answer 1', 'answer 2', 'answer 1']);
  });
});
