import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type InstrumentOptions,
  instrumentTransport,
  type ServedExtra,
} from '../../src/mcp/instrument.ts';
import { verifies } from '../fixtures/verifies.ts';
import { openDoor, openSession, post, rpc } from './support/door.ts';
import { type EndedSpan, startTelemetry } from './support/telemetry.ts';
import { text } from './support/tools.ts';
import { until } from './support/wait.ts';

const telemetry = startTelemetry();
afterAll(() => telemetry.shutdown());
beforeEach(() => {
  telemetry.spans.length = 0;
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const traceparent = `00-${TRACE}-${SPAN}-01`;

/** An instrumented transport between the hands of the test: `deliver` plays the client, `reply` the server. */
const between = async (options: Partial<InstrumentOptions> = {}) => {
  const sent: JSONRPCMessage[] = [];
  const inner: Transport = {
    sessionId: 'session-1',
    start: async () => {},
    send: async (message) => void sent.push(message),
    close: async () => inner.onclose?.(),
  };
  const received: { message: JSONRPCMessage; span: string | undefined; baggage: number }[] = [];
  const transport = instrumentTransport(inner, {
    network: 'pipe',
    known: { tools: new Set(['search']), prompts: new Set(['greet']) },
    ...options,
  });
  transport.onmessage = (message) =>
    void received.push({
      message,
      span: trace.getActiveSpan()?.spanContext().spanId,
      baggage: propagation.getActiveBaggage()?.getAllEntries().length ?? 0,
    });
  await transport.start();
  const deliver = (message: object, extra?: ServedExtra) =>
    inner.onmessage?.(message as JSONRPCMessage, extra);
  const call = (id: string | number, params: object, extra?: ServedExtra) =>
    deliver(rpc(id, 'tools/call', params), extra);
  const reply = (id: string | number, result: object) =>
    transport.send({ jsonrpc: '2.0', id, result } as JSONRPCMessage);
  const fail = (id: string | number, code: number, message = 'no', data?: unknown) =>
    transport.send({ jsonrpc: '2.0', id, error: { code, message, data } } as JSONRPCMessage);
  return { inner, transport, received, sent, deliver, call, reply, fail };
};

const only = (): EndedSpan => {
  expect(telemetry.spans).toHaveLength(1);
  return telemetry.spans[0] as EndedSpan;
};

describe('spans', () => {
  verifies('instrument.span', async () => {
    const { call, reply, received } = await between();
    call(
      7,
      {
        name: 'search',
        arguments: { q: 'secret' },
        _meta: { traceparent, tracestate: 'vendor=1' },
      },
      { client: { address: '10.0.0.1', port: 5 } },
    );
    await reply(7, text('secret answer'));
    const span = only();
    expect(span.name).toBe('tools/call search');
    expect(span.kind).toBe(SpanKind.SERVER);
    expect(span.spanContext().traceId).toBe(TRACE);
    expect(span.parentSpanContext?.spanId).toBe(SPAN);
    expect(span.parentSpanContext?.traceState?.serialize()).toBe('vendor=1');
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
    expect(span.attributes).toEqual({
      'mcp.method.name': 'tools/call',
      'mcp.session.id': 'session-1',
      'gen_ai.tool.name': 'search',
      'gen_ai.operation.name': 'execute_tool',
      'jsonrpc.request.id': '7',
      'network.transport': 'pipe',
      'client.address': '10.0.0.1',
      'client.port': 5,
      'tool.outcome': 'success',
    });
    expect(received[0]?.span).toBe(span.spanContext().spanId);
  });

  test('what a client sends fills no span: its texts are cut', async () => {
    const { call, reply, deliver, fail } = await between();
    const long = 'x'.repeat(100_000);
    call(long, { name: 'search' });
    await reply(long, text(''));
    deliver(rpc(1, 'resources/read', { uri: `file:///${long}` }));
    await fail(1, -32603, `cannot read ${long}`);
    for (const { attributes, status } of telemetry.spans) {
      expect(JSON.stringify({ attributes, status }).length).toBeLessThan(4_000);
    }
    const [first, second] = telemetry.spans;
    expect(first?.attributes['jsonrpc.request.id']).toMatch(/^x+…$/);
    expect(second?.attributes['mcp.resource.uri']).toMatch(/^file:\/\/\/x+…$/);
    expect(second?.status.message).toMatch(/^cannot read x+…$/);
  });

  verifies('instrument.parent', async () => {
    const { call, reply } = await between();
    const ambient = trace.getTracer('http').startSpan('POST');
    const during = async (id: number, meta: object, extra?: ServedExtra) => {
      call(id, { name: 'search', _meta: meta }, extra);
      await reply(id, text(''));
      return telemetry.named('tools/call search').at(-1) as EndedSpan;
    };
    await context.with(trace.setSpan(context.active(), ambient), async () => {
      const remote = await during(1, { traceparent });
      expect(remote.parentSpanContext?.spanId).toBe(SPAN);
      expect(remote.links.map((link) => link.context.spanId)).toEqual([
        ambient.spanContext().spanId,
      ]);
      // Malformed, of the wrong type or absent: the ambient span is the parent.
      for (const meta of [
        { traceparent: `${traceparent}-x-` },
        { traceparent: 7, tracestate: {} },
        { traceparent: [] },
        {},
      ]) {
        const local = await during(2, meta);
        expect(local.parentSpanContext?.spanId).toBe(ambient.spanContext().spanId);
        expect(local.links).toEqual([]);
      }
    });
    const fromHeader = await during(3, {}, { requestInfo: { headers: { traceparent } } });
    expect(fromHeader.parentSpanContext?.spanId).toBe(SPAN);
    const root = await during(4, { traceparent: 'nonsense' });
    expect(root.parentSpanContext).toBeUndefined();
    ambient.end();
  });

  verifies('instrument.baggage', async () => {
    const meta = { traceparent, baggage: 'user=anna,plan=free' };
    const closed = await between();
    closed.call(1, { name: 'search', _meta: meta });
    const open = await between({ baggage: true });
    open.call(1, { name: 'search', _meta: meta });
    expect([closed.received[0]?.baggage, open.received[0]?.baggage]).toEqual([0, 2]);
    await open.reply(1, text(''));
    expect(Object.keys(only().attributes).filter((key) => /user|plan|baggage/.test(key))).toEqual(
      [],
    );
    // What the handler passes on itself is still there.
    expect(closed.received[0]?.message).toMatchObject({ params: { _meta: meta } });
  });

  verifies('instrument.bounded-names', async () => {
    const { call, deliver, reply, fail } = await between();
    call(1, { name: 'made up by the peer' });
    call(2, { name: { not: 'a name' } });
    deliver(rpc(3, 'prompts/get', { name: 'greet' }));
    deliver(rpc(4, 'prompts/get', { name: 'unknown' }));
    deliver(rpc(5, 'x/made-up'));
    deliver(rpc(6, 'resources/read', { uri: 'file:///a' }));
    for (const id of [1, 2]) await fail(id, -32602);
    for (const id of [3, 4, 6]) await reply(id, {});
    await fail(5, -32601);
    expect(telemetry.spans.map(({ name }) => name)).toEqual([
      'tools/call _other',
      'tools/call _other',
      'prompts/get greet',
      'prompts/get _other',
      'resources/read',
      '_other',
    ]);
    expect(telemetry.spans[4]?.attributes['mcp.resource.uri']).toBe('file:///a');
    expect(telemetry.spans[2]?.attributes['gen_ai.operation.name']).toBeUndefined();
  });

  verifies('instrument.errors', async () => {
    const { call, deliver, reply, fail } = await between();
    const end = async (finish: (id: number) => Promise<void>) => {
      telemetry.spans.length = 0;
      call(1, { name: 'search' });
      await finish(1);
      const { status, attributes } = only();
      const {
        'error.type': type,
        'rpc.response.status_code': rpcStatus,
        'tool.outcome': outcome,
        'resilience.failure.code': code,
      } = attributes;
      return {
        error: status.code === SpanStatusCode.ERROR,
        message: status.message,
        type,
        rpcStatus,
        outcome,
        code,
      };
    };
    const none = {
      error: false,
      message: undefined,
      type: undefined,
      rpcStatus: undefined,
      code: undefined,
    };
    const failure = { 'mcp-resilience/failure': { code: 'CIRCUIT_OPEN' } };
    const said = (outcome: string, rest: object = {}) => ({
      ...rest,
      _meta: { ...failure, 'mcp-resilience/outcome': outcome },
    });

    expect(await end((id) => reply(id, { isError: true }))).toEqual({
      ...none,
      error: true,
      type: 'tool_error',
      outcome: 'error',
    });
    expect(await end((id) => reply(id, said('rejected', { isError: true })))).toEqual({
      ...none,
      error: true,
      type: 'tool_error',
      outcome: 'rejected',
      code: 'CIRCUIT_OPEN',
    });
    expect(await end((id) => reply(id, said('degraded', { isError: true })))).toEqual({
      ...none,
      outcome: 'degraded',
      code: 'CIRCUIT_OPEN',
    });
    expect(await end((id) => reply(id, said('cached')))).toEqual({
      ...none,
      outcome: 'cached',
      code: 'CIRCUIT_OPEN',
    });
    expect(await end((id) => reply(id, said('invented')))).toEqual({
      ...none,
      outcome: 'success',
      code: 'CIRCUIT_OPEN',
    });

    for (const code of [-32700, -32600, -32601, -32602, -32002, -32042]) {
      expect(await end((id) => fail(id, code))).toEqual({
        ...none,
        rpcStatus: String(code),
        outcome: 'error',
      });
    }
    for (const code of [-32603, -32000, -32001, 1234]) {
      expect(await end((id) => fail(id, code, 'broken'))).toEqual({
        ...none,
        error: true,
        message: 'broken',
        type: String(code),
        rpcStatus: String(code),
        outcome: 'error',
      });
    }
    telemetry.spans.length = 0;
    deliver(rpc(9, 'tools/list'));
    await fail(9, -32603, 'broken', failure);
    expect(only().attributes).toMatchObject({
      'error.type': '-32603',
      'resilience.failure.code': 'CIRCUIT_OPEN',
    });
    expect(only().attributes['tool.outcome']).toBeUndefined();
  });

  test('a late or second answer changes nothing', async () => {
    const { call, deliver, reply, sent } = await between();
    call(1, { name: 'search' });
    deliver({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await reply(1, text('late'));
    call(2, { name: 'search' });
    await reply(2, text(''));
    await reply(2, text(''));
    const calls = telemetry.named('tools/call search');
    expect(calls.map(({ attributes }) => attributes['tool.outcome'])).toEqual([
      'cancelled',
      'success',
    ]);
    expect(sent).toHaveLength(3);
  });

  test('ids that the SDK could not cancel get another form inside, and their own outside', async () => {
    const { call, deliver, received, reply, sent, transport } = await between();
    for (const id of [0, '', '#number:0', 1]) call(id, { name: 'search' });
    const inner = received.map(({ message }) => (message as { id: string | number }).id);
    expect(new Set(inner).size).toBe(4);
    expect(inner.every(Boolean)).toBe(true);
    for (const id of inner) await reply(id, {});
    expect(sent.map((message) => (message as { id: unknown }).id)).toEqual([0, '', '#number:0', 1]);
    expect(telemetry.spans.map(({ attributes }) => attributes['jsonrpc.request.id'])).toEqual([
      '0',
      '',
      '#number:0',
      '1',
    ]);
    call(0, { name: 'search' });
    deliver({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 0, reason: 'r' },
    });
    expect(received.at(-1)?.message).toMatchObject({
      params: { requestId: inner[0], reason: 'r' },
    });
    await transport.close();
  });
});

describe('metrics', () => {
  verifies('instrument.metrics', async () => {
    const { deliver, call, reply, fail, transport } = await between({ network: 'tcp' });
    deliver(rpc(1, 'initialize'));
    await reply(1, { protocolVersion: '2025-06-18' });
    call(2, { name: 'search' });
    await reply(2, text(''));
    call(3, { name: 'search' });
    await reply(3, {
      isError: true,
      _meta: {
        'mcp-resilience/outcome': 'rejected',
        'mcp-resilience/failure': { code: 'BULKHEAD_FULL' },
      },
    });
    call(4, { name: 'search' });
    await reply(4, { isError: true });
    call(5, { name: 'nobody' });
    await fail(5, -32602);
    call(6, { name: 'search' });
    await transport.close();
    await transport.close();

    const attributes = async (name: string) =>
      (await telemetry.points(name)).map((point) => point.attributes);
    const tools = await attributes('tool.duration');
    for (const expected of [
      { 'gen_ai.tool.name': 'search', 'tool.outcome': 'success' },
      { 'gen_ai.tool.name': 'search', 'tool.outcome': 'rejected', 'error.type': 'BULKHEAD_FULL' },
      { 'gen_ai.tool.name': 'search', 'tool.outcome': 'error', 'error.type': 'tool_error' },
      { 'gen_ai.tool.name': '_other', 'tool.outcome': 'error', 'error.type': '-32602' },
      { 'gen_ai.tool.name': 'search', 'tool.outcome': 'cancelled', 'error.type': 'cancelled' },
    ]) {
      expect(tools).toContainEqual(expected);
    }
    const common = {
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
      'mcp.protocol.version': '2025-06-18',
    };
    const operations = await attributes('mcp.server.operation.duration');
    expect(operations).toContainEqual({ ...common, 'mcp.method.name': 'initialize' });
    expect(operations).toContainEqual({
      ...common,
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'search',
      'gen_ai.operation.name': 'execute_tool',
      'error.type': 'tool_error',
    });
    expect(operations).toContainEqual({
      ...common,
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': '_other',
      'gen_ai.operation.name': 'execute_tool',
      'rpc.response.status_code': '-32602',
    });
    expect(operations.some((point) => 'mcp.session.id' in point)).toBe(false);
    expect(await telemetry.points('mcp.server.session.duration')).toEqual([
      {
        attributes: { 'mcp.protocol.version': '2025-06-18', 'network.protocol.name': 'http' },
        count: 1,
      },
    ]);
  });

  test('failure codes that a peer makes up are bounded', async () => {
    const { call, reply } = await between();
    for (let id = 1; id <= 300; id += 1) {
      call(id, { name: 'search' });
      await reply(id, {
        isError: true,
        _meta: { 'mcp-resilience/failure': { code: `MADE_UP_${id}` } },
      });
    }
    const types = (await telemetry.points('tool.duration')).map(
      ({ attributes }) => attributes['error.type'],
    );
    expect(new Set(types).size).toBeLessThan(120);
    expect(types).toContain('_other');
  });
});

describe('over HTTP', () => {
  verifies('O09', async () => {
    const { door, calls } = await openDoor();
    const session = await openSession(door);
    const before = (await telemetry.points('tool.duration')).filter(
      ({ attributes }) => attributes['gen_ai.tool.name'] === 'hold',
    );
    expect(before).toEqual([]);
    telemetry.spans.length = 0;

    const abort = new AbortController();
    const lost = post(door, rpc(1, 'tools/call', { name: 'hold', arguments: {} }), session, {
      signal: abort.signal,
    });
    await until(() => calls.length === 1);
    abort.abort();
    await expect(lost).rejects.toThrow();
    await until(() => telemetry.spans.length === 1);
    const span = only();
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
    expect(span.attributes).toMatchObject({
      'tool.outcome': 'cancelled',
      'mcp.protocol.version': '2025-11-25',
      'mcp.session.id': session['mcp-session-id'],
      'client.address': '127.0.0.1',
      'network.transport': 'tcp',
    });
    expect(span.attributes['error.type']).toBeUndefined();
    expect(
      (await telemetry.points('tool.duration')).filter(
        ({ attributes }) => attributes['gen_ai.tool.name'] === 'hold',
      ),
    ).toEqual([
      {
        attributes: {
          'gen_ai.tool.name': 'hold',
          'tool.outcome': 'cancelled',
          'error.type': 'cancelled',
        },
        count: 1,
      },
    ]);
    const operations = await telemetry.points('mcp.server.operation.duration');
    expect(
      operations.filter(
        ({ attributes }) => attributes['gen_ai.tool.name'] === 'hold' && 'error.type' in attributes,
      ),
    ).toEqual([]);
    // The handler is aborted, and its late answer makes no second point.
    expect(calls[0]?.context.signal.aborted).toBe(true);
    calls[0]?.answer(text('late'));
    await post(door, rpc(2, 'ping'), session);
    expect(telemetry.named('tools/call hold')).toHaveLength(1);
  });

  verifies('instrument.always-ends', async () => {
    const alone = await between();
    alone.call(1, { name: 'search' });
    await alone.transport.close();
    expect(only().attributes['tool.outcome']).toBe('cancelled');

    const { door, calls, clock } = await openDoor();
    const session = await openSession(door);
    const other = await openSession(door);
    const call = (id: number, headers: Record<string, string>) =>
      post(door, rpc(id, 'tools/call', { name: 'hold', arguments: {} }), headers);
    const running = [call(1, session), call(2, session), call(1, other)];
    await until(() => calls.length === 3);
    await post(
      door,
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
      session,
    );
    await fetch(door.url, { method: 'DELETE', headers: session });
    const closed = door.close();
    await clock.advance(5_000);
    await closed;
    await Promise.all(running);
    expect(
      telemetry.named('tools/call hold').map(({ attributes }) => attributes['tool.outcome']),
    ).toEqual(['cancelled', 'cancelled', 'cancelled']);
  });

  test('the handler sees the trace of its client, without HTTP instrumentation too', async () => {
    const { door } = await openDoor({ sessions: false });
    await post(
      door,
      rpc(1, 'tools/call', { name: 'echo', arguments: { say: 'x' }, _meta: { traceparent } }),
    );
    await post(door, rpc(1, 'tools/call', { name: 'echo', arguments: { say: 'x' } }), {
      traceparent,
      'mcp-protocol-version': '2025-06-18',
    });
    const spans = telemetry.named('tools/call echo');
    expect(spans.map((span) => span.spanContext().traceId)).toEqual([TRACE, TRACE]);
    expect(spans.map(({ attributes }) => attributes['mcp.protocol.version'])).toEqual([
      undefined,
      '2025-06-18',
    ]);
    expect(spans[0]?.attributes['mcp.session.id']).toBeUndefined();
  });
});
