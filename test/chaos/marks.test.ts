import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { ToolContext } from '../../src/mcp/tool.ts';
import { faultMarks, instruments } from '../../src/telemetry/instruments.ts';
import { EVENT, METRIC } from '../../src/telemetry/signals.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';
import { codeOf } from '../tools/support.ts';
import { AT_SEARCH, arm, callTool, marked, openChaos, pipelineOf, serve } from './support.ts';

let recording: ReturnType<typeof startRecording>;
beforeEach(() => {
  recording = startRecording();
});
afterEach(() => recording.stop());

/** What happened, and by which fault. */
const eventMarks = () =>
  recording
    .events()
    .filter(({ eventName }) => !eventName?.startsWith('chaos.'))
    .map(({ eventName, attributes }) => [eventName, marked(attributes as never)]);

const pointMarks = async (metric: string) =>
  (await recording.points(metric)).map(({ attributes, value }) => [
    attributes.outcome ?? attributes.to ?? attributes.reason,
    marked(attributes),
    value,
  ]);

describe('what a fault caused', () => {
  verifies('chaos.marks', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {
      timeout: 1_000,
      retry: { maxRetries: 1, baseDelay: 100 },
    });
    const { id } = arm(chaos, {
      kind: 'protocol_error',
      target: { tool: 'search' },
      firstAttempts: 1,
    });
    const tool = chaos.watch({
      name: 'search',
      description: 'x',
      inputSchema: z.undefined(),
      handler: async (_input: unknown, _context: ToolContext) => {
        await pipeline.execute(() => 'real');
        return { content: [] };
      },
    });
    const { signal } = new AbortController();
    const call = serve('struck', async () => tool.handler(undefined, { signal, progress() {} }));
    await clock.advance(1_000);
    await call;
    // The same pipeline, by another tool: no fault is aimed at it.
    const other = serve('spared', () =>
      pipeline.execute(({ attempt }) => {
        if (attempt === 1) throw new Response(null, { status: 503 });
      }),
    );
    await clock.advance(1_000);
    await other;

    expect(eventMarks()).toEqual([
      [EVENT.retryScheduled, id],
      [EVENT.retryScheduled, undefined],
    ]);
    expect(await pointMarks(METRIC.retryAttempts.name)).toEqual([
      ['success', id, 1],
      ['success', undefined, 1],
    ]);
    expect(recording.spans().map(({ name, attributes }) => [name, marked(attributes)])).toEqual([
      ['attempt 2', id],
      ['struck', id],
      ['attempt 2', undefined],
      ['spared', undefined],
    ]);
    const [, struck] = recording.spans();
    expect(struck?.events.map(({ name, attributes }) => [name, marked(attributes ?? {})])).toEqual([
      [EVENT.faultInjected, id],
      [EVENT.retryScheduled, id],
    ]);
    expect(faultMarks()).toBeUndefined();
  });

  test('is marked when the time is up, which no call is running for', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, { timeout: 1_000 });
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1 });
    const outcomes = Promise.all([
      serve('struck', () => pipeline.outcome(() => 'x')),
      serve('late by itself', () => pipeline.outcome(() => new Promise(() => {}))),
    ]);
    await clock.advance(1_000);
    await outcomes;
    expect(eventMarks()).toEqual([
      [EVENT.timeoutExceeded, id],
      [EVENT.timeoutExceeded, undefined],
    ]);
    expect(await pointMarks(METRIC.timeouts.name)).toEqual([
      ['attempt', id, 1],
      ['attempt', undefined, 1],
    ]);
  });

  test('is marked for those who share the flight of a struck call', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, { timeout: 1_000, cache: { ttl: 1_000 } });
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1 });
    const ask = (name: string) =>
      serve(name, async () => {
        await pipeline.outcome(() => 'x', { cacheKey: 'k' });
        return marked(faultMarks() ?? {});
      });
    const both = Promise.all([ask('first'), ask('second')]);
    await clock.advance(1_000);
    expect(await both).toEqual([id, id]);
    expect(await ask('later')).toBeUndefined();
    const spans = recording.spans().map(({ name, attributes }) => [name, marked(attributes)]);
    expect(spans).toEqual([
      ['first', id],
      ['second', id],
      ['later', undefined],
    ]);
  });

  verifies('chaos.marks-breaker', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, { breaker: { threshold: 1, openDuration: 5_000 } });
    const call = (name: string, work: () => unknown = () => 'x') =>
      serve(name, () => pipeline.outcome(work));
    const fails = () => {
      throw new Response(null, { status: 503 });
    };
    const { id } = arm(chaos, { kind: 'connection_reset', target: AT_SEARCH, maxCount: 1 });
    await call('struck', () => fetch('http://api.example/'));
    expect(pipeline.breaker?.state).toBe('open');
    await call('shut out');
    await clock.advance(5_000);
    await call('probe');
    expect(pipeline.breaker?.state).toBe('closed');
    // The next time it is the dependency itself.
    await call('fails');
    await call('really fails', fails);
    await call('really shut out');
    await clock.advance(5_000);
    await call('real probe');

    const changes = recording
      .events()
      .filter(({ eventName }) => eventName === EVENT.breakerStateChanged)
      .map(({ attributes }) => [attributes?.to, marked(attributes as never)]);
    expect(changes).toEqual([
      ['open', id],
      ['half-open', id],
      ['closed', id],
      ['open', undefined],
      ['half-open', undefined],
      ['closed', undefined],
    ]);
    expect(await pointMarks(METRIC.breakerTransitions.name)).toEqual([
      ['open', id, 1],
      ['half-open', id, 1],
      ['closed', id, 1],
      ['open', undefined, 1],
      ['half-open', undefined, 1],
      ['closed', undefined, 1],
    ]);
    expect(await pointMarks(METRIC.breakerRecoveryDuration.name)).toEqual([
      [undefined, id, 1],
      [undefined, undefined, 1],
    ]);
    const calls = await pointMarks(METRIC.breakerCalls.name);
    expect(calls).toContainEqual(['failure', id, 1]);
    expect(calls).toContainEqual(['rejected', id, 1]);
    expect(calls).toContainEqual(['failure', undefined, 1]);
    expect(calls).toContainEqual(['rejected', undefined, 1]);
    const spans = recording.spans().map(({ name, attributes }) => [name, marked(attributes)]);
    expect(spans).toEqual([
      ['struck', id],
      ['shut out', id],
      ['probe', undefined],
      ['fails', undefined],
      ['really fails', undefined],
      ['really shut out', undefined],
      ['real probe', undefined],
    ]);
  });

  test('a breaker that a real failure opens again has lost the mark', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, { breaker: { threshold: 1, openDuration: 5_000 } });
    arm(chaos, { kind: 'connection_refused', target: AT_SEARCH, maxCount: 1 });
    await serve('struck', () => pipeline.outcome(() => fetch('http://api.example/')));
    await clock.advance(5_000);
    await serve('probe', () =>
      pipeline.outcome(() => {
        throw new Response(null, { status: 503 });
      }),
    );
    await serve('shut out', () => pipeline.outcome(() => 'x'));
    const [last] = recording.spans().slice(-1);
    expect([last?.name, marked(last?.attributes ?? {})]).toEqual(['shut out', undefined]);
  });

  test('metrics tell a bounded number of faults apart', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, { retry: { maxRetries: 0 }, timeout: 1 });
    for (let n = 0; n < 130; n += 1) {
      arm(chaos, { kind: 'hang', target: AT_SEARCH });
      const call = serve('struck', () => pipeline.outcome(() => 'x'));
      await clock.advance(1);
      await call;
      chaos.faults.clearAll();
    }
    const points = await pointMarks(METRIC.timeouts.name);
    expect(points.length).toBeLessThanOrEqual(101);
    const others = points.filter(([, id]) => id === '_other').map(([, , value]) => value);
    expect(others.length).toBe(1);
    expect(others[0]).toBeGreaterThanOrEqual(30);
  });

  test('instruments of a provider that comes later are marked, too', async () => {
    const { chaos, clock } = openChaos();
    recording.stop();
    recording = startRecording();
    const pipeline = pipelineOf(chaos, clock, { timeout: 1 });
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH });
    const call = serve('struck', () => pipeline.outcome(() => 'x'));
    await clock.advance(1);
    await call;
    instruments().hedges.add(1, { outcome: 'outside' });
    expect(await pointMarks(METRIC.timeouts.name)).toEqual([['attempt', id, 1]]);
    expect(await pointMarks(METRIC.hedges.name)).toEqual([['outside', undefined, 1]]);
  });
});

describe('the audit', () => {
  verifies('chaos.audit', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    const inject = (args: object) =>
      callTool(
        chaos,
        'inject_fault',
        { kind: 'connection_refused', target: AT_SEARCH, seed: 9, reason: 'a drill', ...args },
        { principal: 'alice' },
      );
    await inject({ maxCount: 2 });
    for (let n = 0; n < 2; n += 1) await pipeline.outcome(() => fetch('http://api.example/'));
    await inject({ ttlSeconds: 3 });
    const gauge = async () =>
      (await recording.points(METRIC.faultsActive.name)).map(({ value }) => value);
    expect(await gauge()).toEqual([1]);
    await clock.advance(3_000);
    expect(await gauge()).toEqual([0]);

    const named = {
      'fault.kind': 'connection_refused',
      'fault.target': 'dependency:search-api',
      'fault.id': expect.stringMatching(/^fault-[0-9a-f]{8}$/),
    };
    const armed = { ...named, 'fault.actor': 'alice', 'fault.reason': 'a drill', 'fault.seed': 9 };
    const cleared = { ...named, 'fault.actor': 'alice', 'fault.seed': 9 };
    expect(recording.events().filter(({ eventName }) => eventName?.startsWith('chaos.'))).toEqual([
      { eventName: EVENT.faultArmed, attributes: { ...armed, 'fault.ttl': 60 } },
      {
        eventName: EVENT.faultInjected,
        attributes: { ...named, 'fault.injected': true, 'fault.count': 1 },
      },
      {
        eventName: EVENT.faultInjected,
        attributes: { ...named, 'fault.injected': true, 'fault.count': 2 },
      },
      {
        eventName: EVENT.faultCleared,
        attributes: { ...cleared, reason: 'max_count', 'fault.count': 2 },
      },
      { eventName: EVENT.faultArmed, attributes: { ...armed, 'fault.ttl': 3 } },
      {
        eventName: EVENT.faultCleared,
        attributes: { ...cleared, reason: 'ttl', 'fault.count': 0 },
      },
    ]);
    expect(await recording.points(METRIC.faultsInjected.name)).toEqual([
      {
        attributes: { 'fault.kind': 'connection_refused', 'fault.target': 'dependency:search-api' },
        value: 2,
      },
    ]);
  });

  verifies('chaos.secrets', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    const secret = 'sk-live-0123456789abcdef';
    const reason = `check api_key=${secret} and https://me:${secret}@api.example/?key=${secret}`;
    const client = { name: `client Bearer ${secret}`, version: '1' };
    const asked: string[] = [];
    const elicit = async (message: string) => {
      asked.push(message);
      return { action: 'accept' } as const;
    };
    const context = { client, elicit };
    const args = { kind: 'connection_refused', target: AT_SEARCH, reason };
    const answers = [await callTool(chaos, 'inject_fault', args, context)];
    await serve('struck', () => pipeline.outcome(() => fetch('http://api.example/')));
    answers.push(await callTool(chaos, 'list_faults'));
    answers.push(await callTool(chaos, 'halt_chaos', { reason }, context));
    answers.push(await callTool(chaos, 'list_faults'));
    const refused = await callTool(chaos, 'inject_fault', args, context);
    expect(codeOf(refused)).toBe('REQUEST_REJECTED');
    const spans = recording.spans().map(({ attributes, events }) => ({ attributes, events }));
    const everything = JSON.stringify([recording.events(), spans, answers, asked, refused]);
    expect(everything).toContain('api_key=***');
    expect(everything).not.toContain(secret);
  });
});
