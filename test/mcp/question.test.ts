import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  ElicitRequestSchema,
  ElicitResultSchema,
  type JSONRPCMessage,
} from '@modelcontextprotocol/sdk/types.js';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { instrumentTransport } from '../../src/mcp/instrument.ts';
import { cancellation } from '../../src/mcp/jsonrpc.ts';
import type { AskOptions } from '../../src/mcp/question.ts';
import { createServer } from '../../src/mcp/server.ts';
import { defineTool } from '../../src/mcp/tool.ts';
import { verifies } from '../fixtures/verifies.ts';
import { openDoor, rpc } from './support/door.ts';
import { type EndedSpan, startTelemetry } from './support/telemetry.ts';
import { text } from './support/tools.ts';

const telemetry = startTelemetry();
afterAll(() => telemetry.shutdown());
beforeEach(() => {
  telemetry.spans.length = 0;
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const theirs = `00-${TRACE}-b7ad6b7169203331-01`;

type Message = Record<string, unknown> & { params?: Record<string, unknown> };

/** An instrumented transport in the hands of the test: `deliver` plays the client. */
const between = async () => {
  const sent: { message: Message; options: unknown }[] = [];
  const fails: Error[] = [];
  const inner: Transport = {
    sessionId: 'session-1',
    start: async () => {},
    send: async (message, options) => {
      const failure = fails.shift();
      if (failure) throw failure;
      sent.push({ message: message as Message, options });
    },
    close: async () => inner.onclose?.(),
  };
  const known = { tools: new Set(['search']) };
  const transport = instrumentTransport(inner, { network: 'tcp', known });
  /** Runs in the context of the call that was received last. */
  let within = context.active();
  transport.onmessage = () => {
    within = context.active();
  };
  await transport.start();
  const deliver = (message: object) => inner.onmessage?.(message as JSONRPCMessage);
  const send = (message: object, options?: AskOptions) =>
    transport.send(message as JSONRPCMessage, options);
  const ask = (id: number, params?: object, options?: AskOptions) =>
    context.with(within, () => send(rpc(id, 'sampling/createMessage', params), options));
  const answer = (id: number | string, result: object = {}) =>
    deliver({ jsonrpc: '2.0', id, result });
  return { transport, sent, fails, deliver, send, ask, answer, active: () => within };
};

const only = (name: string): EndedSpan => {
  const spans = telemetry.named(name);
  expect([name, spans.length]).toEqual([name, 1]);
  return spans[0] as EndedSpan;
};

const idOf = (span: EndedSpan) => span.spanContext().spanId;
const errorsOf = ({ attributes, status }: EndedSpan) => [
  attributes['error.type'],
  attributes['rpc.response.status_code'],
  status.code === SpanStatusCode.ERROR,
  status.message,
];
const traceparentOf = (message: Message | undefined) =>
  (message?.params?._meta as Record<string, unknown> | undefined)?.traceparent;

describe('what a server asks its client', () => {
  verifies('question.span', async () => {
    const { deliver, ask, answer, send, sent } = await between();
    deliver(rpc(7, 'tools/call', { name: 'search' }));
    const params = {
      messages: ['secret'],
      _meta: { traceparent: theirs, tracestate: 'v=1', baggage: 'user=anna', kept: 1 },
    };
    await ask(0, params);
    answer(0, { content: 'secret answer' });
    await send({ jsonrpc: '2.0', id: 7, result: text('') });
    const span = only('sampling/createMessage');
    const call = only('tools/call search');
    expect(span.kind).toBe(SpanKind.CLIENT);
    expect(span.parentSpanContext?.spanId).toBe(idOf(call));
    expect(errorsOf(span)).toEqual([undefined, undefined, false, undefined]);
    expect(span.attributes).toEqual({
      'mcp.method.name': 'sampling/createMessage',
      'mcp.session.id': 'session-1',
      'jsonrpc.request.id': '0',
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
    });
    // Whoever answers goes on with our trace, and not with that of whoever asked us to ask.
    const { traceId, spanId } = span.spanContext();
    expect(sent[0]?.message.params).toEqual({
      messages: ['secret'],
      _meta: { traceparent: `00-${traceId}-${spanId}-01`, kept: 1 },
    });
    expect(params._meta.traceparent).toBe(theirs);
    const points = await telemetry.points('mcp.client.operation.duration');
    expect(points).toEqual([
      {
        attributes: {
          'mcp.method.name': 'sampling/createMessage',
          'network.transport': 'tcp',
          'network.protocol.name': 'http',
        },
        count: 1,
      },
    ]);
  });

  test('belongs to the request that it names, where no span is active', async () => {
    const { deliver, send, answer } = await between();
    deliver(rpc(7, 'tools/call', { name: 'search' }));
    await send(rpc(1, 'roots/list'), { relatedRequestId: 7 });
    answer(1);
    await send(rpc(2, 'vendor/ask'));
    answer(2);
    await send({ jsonrpc: '2.0', id: 7, result: text('') });
    const call = only('tools/call search');
    expect(only('roots/list').parentSpanContext?.spanId).toBe(idOf(call));
    expect(only('_other').parentSpanContext).toBeUndefined();
  });

  verifies('question.ends', async () => {
    const { ask, answer, deliver, send, fails, transport } = await between();
    const open = telemetry.open();
    const last = () => errorsOf(telemetry.spans.at(-1) as EndedSpan);
    // The client refuses.
    await ask(1);
    deliver({ jsonrpc: '2.0', id: 1, error: { code: -1, message: 'User rejected' } });
    expect(last()).toEqual(['-1', '-1', true, 'User rejected']);
    // It gives the id back as text, and says it twice.
    await ask(2);
    answer('2');
    answer(2);
    expect([telemetry.spans.length, ...last()]).toEqual([
      2,
      undefined,
      undefined,
      false,
      undefined,
    ]);
    // Whoever asked no longer wants to know.
    const cancel = (requestId: number, reason: string) =>
      send({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId, reason },
      });
    await ask(3);
    await cancel(3, 'not needed');
    expect(errorsOf(telemetry.spans[2] as EndedSpan)[2]).toBe(false);
    // There is no way to the client.
    fails.push(new Error('no stream'));
    await expect(ask(4)).rejects.toThrow('no stream');
    expect(last()).toEqual([
      'UNKNOWN_ERROR',
      undefined,
      true,
      expect.stringContaining('no stream'),
    ]);
    // There is one at the second try: one question, which has not failed.
    const before = telemetry.spans.length;
    fails.push(new Error('no stream'));
    await expect(ask(5, {}, { again: true })).rejects.toThrow('no stream');
    await ask(5, {}, { again: true });
    answer(5);
    expect([telemetry.spans.length - before, ...last()]).toEqual([
      1,
      undefined,
      undefined,
      false,
      undefined,
    ]);
    // The client goes.
    await ask(6);
    await transport.close();
    expect(last()).toEqual([undefined, undefined, false, undefined]);
    // As many as were cleared away before, and none of these.
    expect(telemetry.open() - open).toBe(0);
  });

  test('one that nobody answers in time is a timeout', async () => {
    const createAsking = () => {
      const server = new Server({ name: 'a', version: '1' }, { capabilities: { tools: {} } });
      server.fallbackRequestHandler = async (_request, extra) => {
        const params = { message: '?', requestedSchema: { type: 'object', properties: {} } };
        const request = { method: 'elicitation/create', params } as never;
        await extra.sendRequest(request, ElicitResultSchema, { timeout: 20 });
        return {};
      };
      return server;
    };
    const { door } = await openDoor({ createServer: createAsking });
    const client = new Client({ name: 't', version: '1' }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, () => new Promise<never>(() => {}));
    await client.connect(new StreamableHTTPClientTransport(new URL(door.url)) as never);
    onTestFinished(() => client.close());
    const call = client.request({ method: 'tools/call', params: { name: 'x' } }, z.looseObject({}));
    await expect(call).rejects.toThrow(/timed out/);
    const span = only('elicitation/create');
    expect(errorsOf(span).slice(0, 3)).toEqual(['TIMEOUT', undefined, true]);
    // And that the client was told so is a part of the same trace.
    const told = telemetry
      .named('notifications/cancelled')
      .map((each) => [each.kind, each.spanContext().traceId]);
    expect(told).toEqual([[SpanKind.CLIENT, span.spanContext().traceId]]);
  });

  verifies('question.tools', async () => {
    const tool = defineTool({
      name: 'greet',
      description: 'asks who is there',
      inputSchema: z.object({}),
      handler: async (_input, { elicit }) => {
        const schema = { type: 'object', properties: { name: { type: 'string' } } };
        const said = await elicit?.('Your name?', schema);
        return text(`hello ${said?.content?.name}`);
      },
    });
    const server = createServer({ name: 'a', version: '1', tools: [tool] });
    const { door } = await openDoor({ createServer: server });
    const client = new Client({ name: 't', version: '1' }, { capabilities: { elicitation: {} } });
    let meta: unknown;
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      meta = params._meta;
      return { action: 'accept', content: { name: 'Anna' } };
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(door.url)) as never);
    onTestFinished(() => client.close());
    const _meta = { traceparent: theirs };
    const { content } = await client.callTool({ name: 'greet', arguments: {}, _meta });
    expect(content).toEqual(text('hello Anna').content);
    const span = only('elicitation/create');
    expect(span.spanContext().traceId).toBe(TRACE);
    expect(span.parentSpanContext?.spanId).toBe(idOf(only('tools/call greet')));
    expect(meta).toMatchObject({ traceparent: `00-${TRACE}-${idOf(span)}-01` });
    expect(span.attributes).toMatchObject({ 'mcp.protocol.version': '2025-11-25' });
  });
});

describe('notifications', () => {
  verifies('notice.span', async () => {
    const { deliver, send, sent, active } = await between();
    const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    await send(changed);
    const told = only('notifications/tools/list_changed');
    expect([told.kind, told.parentSpanContext, told.attributes]).toEqual([
      SpanKind.CLIENT,
      undefined,
      {
        'mcp.method.name': 'notifications/tools/list_changed',
        'mcp.session.id': 'session-1',
        'network.transport': 'tcp',
        'network.protocol.name': 'http',
      },
    ]);
    const { traceId, spanId } = told.spanContext();
    expect(traceparentOf(sent[0]?.message)).toBe(`00-${traceId}-${spanId}-01`);
    expect(changed).not.toHaveProperty('params');
    // Received ones are active while they are handled, and go on with the sender's trace.
    const params = { _meta: { traceparent: theirs } };
    deliver({ jsonrpc: '2.0', method: 'notifications/roots/list_changed', params });
    const heard = only('notifications/roots/list_changed');
    expect([heard.kind, heard.spanContext().traceId]).toEqual([SpanKind.SERVER, TRACE]);
    expect(trace.getSpan(active())?.spanContext().spanId).toBe(idOf(heard));
  });

  test('a cancellation belongs to the call that it ends, unless it names another trace', async () => {
    const { deliver } = await between();
    const cancel = (requestId: number, meta?: object) =>
      deliver({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId, ...(meta && { _meta: meta }) },
      });
    deliver(rpc(1, 'tools/call', { name: 'search' }));
    cancel(1);
    deliver(rpc(2, 'tools/call', { name: 'search' }));
    cancel(2, { traceparent: theirs });
    // Of a call that nobody knows.
    cancel(3);
    const calls = telemetry.named('tools/call search');
    const [first, second, third] = telemetry.named('notifications/cancelled');
    expect(first?.parentSpanContext?.spanId).toBe(idOf(calls[0] as EndedSpan));
    expect(second?.spanContext().traceId).toBe(TRACE);
    expect(second?.links.map((link) => link.context.spanId)).toEqual([idOf(calls[1] as EndedSpan)]);
    expect(third?.parentSpanContext).toBeUndefined();
    // One that no client has sent is none.
    telemetry.spans.length = 0;
    deliver(rpc(4, 'tools/call', { name: 'search' }));
    deliver(cancellation(4, 'the client disconnected'));
    expect(telemetry.spans.map(({ name }) => name)).toEqual(['tools/call search']);
  });

  verifies('notice.few', async () => {
    const { deliver, send, sent } = await between();
    const bulk = ['progress', 'message', 'resources/updated', 'initialized', 'made/up'];
    for (const name of bulk) {
      const message = { jsonrpc: '2.0', method: `notifications/${name}`, params: { a: 1 } };
      deliver(message);
      await send(message);
      expect(sent.at(-1)?.message).toBe(message);
    }
    await send({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed' });
    expect(telemetry.spans.map(({ name }) => name)).toEqual(['notifications/prompts/list_changed']);
    // None of them has a duration: it would stand among those of requests.
    for (const metric of ['mcp.client.operation.duration', 'mcp.server.operation.duration']) {
      expect(JSON.stringify(await telemetry.points(metric))).not.toContain('notifications');
    }
  });
});
