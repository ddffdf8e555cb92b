import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Json, UpstreamAddress, UpstreamConfig } from '../../src/gateway/types.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';
import { upstreamConfig } from './support/link-config.ts';
import { call, client, failed, openManager, reading } from './support/manager.ts';
import { type Fate, MemoryUpstream } from './support/memory-upstream.ts';

let telemetry: ReturnType<typeof startRecording>;
beforeEach(() => {
  telemetry = startRecording();
});
afterEach(() => telemetry.stop());

const stdio: UpstreamAddress = { kind: 'stdio', command: 'none', args: [], env: {} };
const http: UpstreamAddress = {
  kind: 'http',
  url: 'https://files.example/mcp?key=s3cr3t',
  headers: {},
};

const open = async (config: Partial<UpstreamConfig> = {}, address: UpstreamAddress = stdio) => {
  const clock = new ManualClock();
  const upstream = new MemoryUpstream();
  const { createLink } = upstream;
  const whole = upstreamConfig(address, { name: 'files', ...config });
  const { manager } = openManager([whole], { clock, createLink, random: () => 1 });
  const session = manager.open('files', client);
  await session.ready();
  return { clock, upstream, manager, session };
};

const spansOf = (name: string): ReadableSpan[] =>
  telemetry.spans().filter((span) => span.name === name);
const spanOf = (name: string): ReadableSpan =>
  spansOf(name).at(-1) ??
  expect.fail(`no span ${name} among ${telemetry.spans().map((s) => s.name)}`);
const parentOf = (message: Json | undefined): string | undefined => {
  const meta = (message?.params as Json | undefined)?._meta as Json | undefined;
  return String(meta?.traceparent).split('-')[2];
};

describe('a request to an upstream', () => {
  verifies('client-operation.conventions', async () => {
    const { session, upstream } = await open({}, http);
    const [link] = upstream.links;
    await session.request({ method: 'tools/list' });
    const parent = trace.getTracer('test').startSpan('SERVER', {}, ROOT_CONTEXT);
    await context.with(trace.setSpan(ROOT_CONTEXT, parent), () =>
      call(session, 'ok', { text: 'secret argument' }),
    );
    parent.end();
    const span = spanOf('tools/call ok');
    expect(span.kind).toBe(SpanKind.CLIENT);
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
    expect(span.parentSpanContext?.spanId).toBe(parent.spanContext().spanId);
    expect(span.attributes).toEqual({
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'ok',
      'gen_ai.operation.name': 'execute_tool',
      'mcp.protocol.version': '2025-11-25',
      'jsonrpc.request.id': String(link?.sent.at(-1)?.id),
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
      'server.address': 'files.example',
      'server.port': 443,
      'mcp.upstream.name': 'files',
      'resilience.answered_by': 'upstream',
    });
    // The upstream's own spans are children of this one.
    expect(parentOf(link?.sent.at(-1))).toBe(span.spanContext().spanId);
    expect(JSON.stringify(telemetry.spans().map(({ attributes }) => attributes))).not.toMatch(
      /secret argument|s3cr3t/,
    );
    const points = await telemetry.points('mcp.client.operation.duration');
    expect(points.find(({ attributes }) => attributes['gen_ai.tool.name'] === 'ok')).toEqual({
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': 'ok',
        'gen_ai.operation.name': 'execute_tool',
        'mcp.protocol.version': '2025-11-25',
        'network.transport': 'tcp',
        'network.protocol.name': 'http',
        'server.address': 'files.example',
        'server.port': 443,
      },
      value: 1,
      sum: expect.any(Number),
    });
  });

  test('prompts and resources are named as the conventions say, initialize is one too', async () => {
    const { session } = await open();
    const initialize = spanOf('initialize');
    expect(initialize.attributes).toMatchObject({
      'mcp.protocol.version': '2025-11-25',
      'network.transport': 'pipe',
      'jsonrpc.request.id': '1',
    });
    await session.request({ method: 'prompts/list' });
    await session.request({ method: 'prompts/get', params: { name: 'greet' } });
    expect(spanOf('prompts/get greet').attributes['gen_ai.prompt.name']).toBe('greet');
    const uri = `test://one/${'x'.repeat(2_000)}`;
    await session.request({ method: 'resources/read', params: { uri } });
    const { attributes } = spanOf('resources/read');
    expect(String(attributes['mcp.resource.uri']).length).toBe(1_001);
  });

  verifies('client-operation.bounded', async () => {
    const { session } = await open();
    // Before there is a list: a name that was answered to exists, one that was refused may not.
    await call(session, 'ok');
    await call(session, 'err');
    for (let n = 0; n < 5; n += 1) {
      await failed(call(session, `made-up-${n}`));
      await failed(session.request({ method: 'prompts/get', params: { name: n } })).catch(() => {});
      await failed(session.request({ method: `made/up-${n}` }));
    }
    await session.request({ method: 'tools/list' });
    await call(session, 'err');
    const names = new Set(telemetry.spans().map(({ name }) => name));
    expect([...names].sort()).toEqual([
      '_other',
      'initialize',
      'prompts/get _other',
      'tools/call _other',
      'tools/call err',
      'tools/call ok',
      'tools/list',
    ]);
    const first = telemetry.spans().find(({ name }) => name === 'tools/call ok');
    expect(first?.attributes['gen_ai.tool.name']).toBe('ok');
    const points = await telemetry.points('mcp.client.operation.duration');
    expect(JSON.stringify(points)).not.toContain('made');
  });

  verifies('client-operation.outcomes', async () => {
    const policy = {
      timeout: 1_000,
      deadline: 5_000,
      bulkhead: { limit: 1 },
      rateLimit: { limit: 9, interval: 60_000 },
      breaker: { threshold: 2, openDuration: 1_000 },
    };
    const toolBreaker = { threshold: 2, openDuration: 60_000 };
    const { clock, session, upstream } = await open({ policy, toolGuard: 2, toolBreaker });
    await session.request({ method: 'tools/list' });
    const seen = () => {
      const { attributes, status } = telemetry.spans().at(-1) ?? expect.fail('a span');
      return [
        attributes['resilience.answered_by'],
        attributes['error.type'],
        attributes['resilience.failure.code'],
        status.code === SpanStatusCode.ERROR,
      ];
    };
    await call(session, 'err', { n: 1 });
    expect(seen()).toEqual(['upstream', 'tool_error', undefined, true]);
    await call(session, 'err', { n: 1 });
    await failed(call(session, 'err', { n: 1 }));
    expect(seen()).toEqual(['tool_guard', 'TOOL_ERROR', 'TOOL_ERROR', true]);
    await failed(call(session, 'err', { n: 2 }));
    expect(seen()).toEqual(['tool_breaker', 'CIRCUIT_OPEN', 'CIRCUIT_OPEN', true]);
    await failed(call(session, 'rpcerr', { code: -32042, message: 'open it' }));
    expect(seen()).toEqual(['upstream', '-32042', undefined, true]);
    expect(telemetry.spans().at(-1)).toMatchObject({
      attributes: { 'rpc.response.status_code': '-32042' },
      status: { message: 'open it' },
    });
    // Cancelled: nobody's error.
    const controller = new AbortController();
    const cancelled = call(session, 'hang', {}, { signal: controller.signal }).catch(() => {});
    await flush();
    controller.abort();
    await cancelled;
    expect(seen()).toEqual([undefined, undefined, undefined, false]);
    const hung = failed(call(session, 'hang'));
    await flush();
    await failed(call(session, 'ok'));
    expect(seen()).toEqual(['bulkhead', 'BULKHEAD_FULL', 'BULKHEAD_FULL', true]);
    await clock.advance(1_000);
    await hung;
    expect(seen()).toEqual(['timeout', 'OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN', true]);
    upstream.links[0]?.end({ kind: 'exited', reason: 'exited with code 1' });
    upstream.accepts = () => false;
    const unsent = failed(call(session, 'ok'));
    await clock.advance(100);
    await unsent;
    expect(seen()).toEqual(['connection', 'CONNECTION_REFUSED', 'CONNECTION_REFUSED', true]);
    await failed(call(session, 'ok'));
    expect(seen()).toEqual(['circuit_breaker', 'CIRCUIT_OPEN', 'CIRCUIT_OPEN', true]);
    for (let n = 0; n < 3; n += 1) await failed(call(session, 'ok'));
    expect(seen()).toEqual(['rate_limiter', 'RATE_LIMIT_EXCEEDED', 'RATE_LIMIT_EXCEEDED', true]);
  });

  test('a cached answer says so', async () => {
    const policy = { cache: { ttl: 1_000, staleIfError: 60_000 } };
    const restart = { initialDelay: 1_000, maxDelay: 8_000 };
    const { clock, session, upstream } = await open({ policy, restart });
    const by = () => telemetry.spans().at(-1)?.attributes['resilience.answered_by'];
    await call(session, 'ok', {}, reading('ok'));
    expect(by()).toBe('upstream');
    await call(session, 'ok', {}, reading('ok'));
    expect(by()).toBe('cache');
    upstream.accepts = () => false;
    upstream.links[0]?.end({ kind: 'exited', reason: 'exited with code 1' });
    await clock.advance(3_500);
    await call(session, 'ok', {}, reading('ok'));
    expect(by()).toBe('stale_cache');
  });

  verifies('client-operation.attempts', async () => {
    const policy = { retry: { maxRetries: 2, baseDelay: 10, jitter: 'none' as const } };
    const { clock, session, upstream } = await open({ policy });
    await session.request({ method: 'tools/list' });
    const fates: Fate[] = ['lost', 'lost'];
    upstream.fate = () => fates.pop() ?? 'arrives';
    const answer = call(session, 'read', {}, reading('read'));
    await clock.advance(10);
    await clock.advance(20);
    await answer;
    const [span, ...more] = spansOf('tools/call read');
    expect(more).toEqual([]);
    // It was mended: the call is no error, and what happened stands on it.
    expect(span?.status.code).toBe(SpanStatusCode.UNSET);
    expect(span?.events.map(({ name }) => name)).toEqual([
      'resilience.retry.scheduled',
      'resilience.retry.scheduled',
    ]);
    const children = telemetry.spans().filter(({ name }) => name.startsWith('attempt '));
    expect(children.map(({ name }) => name)).toEqual(['attempt 2', 'attempt 3']);
    const sent = upstream.links[0]?.sent.slice(-3) ?? [];
    expect(sent.map(parentOf)).toEqual([span, ...children].map((one) => one?.spanContext().spanId));
    expect(span?.attributes['jsonrpc.request.id']).toBe(String(sent.at(-1)?.id));
  });
});

describe('an upstream', () => {
  verifies('upstream.telemetry', async () => {
    const { clock, manager, session, upstream } = await open({}, http);
    const stateOf = async () =>
      (await telemetry.points('mcp.upstream.state'))
        .filter(({ value }) => value === 1)
        .map(({ attributes }) => attributes);
    expect(await stateOf()).toEqual([{ 'mcp.upstream.name': 'files', state: 'ready' }]);
    upstream.links[0]?.end({ kind: 'lost', reason: 'reset by peer' });
    await clock.advance(50);
    expect(await stateOf()).toEqual([{ 'mcp.upstream.name': 'files', state: 'down' }]);
    await clock.advance(50);
    await call(session, 'ok');
    expect(await stateOf()).toEqual([{ 'mcp.upstream.name': 'files', state: 'ready' }]);
    expect(await telemetry.points('mcp.upstream.restarts')).toEqual([
      { attributes: { 'mcp.upstream.name': 'files' }, value: 1 },
    ]);
    const changes = telemetry
      .events()
      .filter(({ eventName }) => eventName === 'mcp.upstream.state_changed')
      .map(({ attributes }) => attributes);
    expect(changes).toEqual([
      { 'mcp.upstream.name': 'files', from: 'connecting', to: 'ready' },
      {
        'mcp.upstream.name': 'files',
        from: 'ready',
        to: 'down',
        reason: expect.stringContaining('lost the connection (reset by peer)'),
      },
      expect.objectContaining({ from: 'down', to: 'connecting' }),
      expect.objectContaining({ from: 'connecting', to: 'degraded' }),
      { 'mcp.upstream.name': 'files', from: 'degraded', to: 'ready' },
    ]);
    // The second `initialize` was nobody's call.
    const [first, second] = spansOf('initialize');
    expect(second?.parentSpanContext).toBeUndefined();
    expect(second?.spanContext().traceId).not.toBe(first?.spanContext().traceId);
    await manager.close();
    expect(await telemetry.points('mcp.client.session.duration')).toEqual([
      {
        attributes: {
          'mcp.protocol.version': '2025-11-25',
          'network.protocol.name': 'http',
          'error.type': 'lost',
        },
        value: 1,
        sum: 0,
      },
      {
        attributes: { 'mcp.protocol.version': '2025-11-25', 'network.protocol.name': 'http' },
        value: 1,
        sum: 0,
      },
    ]);
  });
});
