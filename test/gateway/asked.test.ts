import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/gateway/types.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { OtlpReceiver, type ReceivedSpan } from '../fixtures/otlp-receiver.ts';
import { verifies } from '../fixtures/verifies.ts';
import { connectCommand, serveCommand, writtenConfig } from './support/command.ts';
import { eventually } from './support/gateway.ts';
import { rawClient } from './support/raw-client.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

const SERVER = 2;
const CLIENT = 3;
const PARENT = 'b7ad6b7169203331';

/** A gateway as a process, in front of `servers`, that tells a collector everything. */
const traced = async (servers: object) => {
  const collector = await OtlpReceiver.start();
  onTestFinished(() => collector.stop());
  const { file } = writtenConfig(servers);
  const served = await serveCommand(['gateway', '--config', file], {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  });
  return {
    ...served,
    collector,
    /** Ends it, and gives the MCP spans of a trace. */
    spansOf: async (
      { transport }: Awaited<ReturnType<typeof rawClient>>,
      traceId?: string,
    ): Promise<ReceivedSpan[]> => {
      await transport.terminateSession();
      await transport.close();
      served.child.kill('SIGTERM');
      await served.ended;
      return collector
        .spans()
        .filter((span) => span.scope === 'mcp-resilience')
        .filter((span) => traceId === undefined || span.traceId === traceId);
    },
  };
};

const find = (spans: readonly ReceivedSpan[], kind: number, name: string): ReceivedSpan => {
  const found = spans.filter((span) => span.kind === kind && span.name === name);
  expect([name, kind, found.length]).toEqual([name, kind, 1]);
  return found[0] as ReceivedSpan;
};

const metaOf = (params: unknown): Json => ((params as Json)._meta ?? {}) as Json;

describe('what servers ask clients, through the gateway', () => {
  verifies('relay.asks-traced', async () => {
    const upstream = await startHttpUpstream();
    onTestFinished(() => upstream.close());
    const gateway = await traced({ stdio: stdioUpstream(), http: { url: upstream.url } });
    const client = await rawClient(gateway.url, { capabilities: { sampling: {}, roots: {} } });
    const asked: Json[] = [];
    client.replies['sampling/createMessage'] = (params) => {
      asked.push(params);
      return { result: { model: 'm', role: 'assistant', content: { type: 'text', text: 'hi' } } };
    };
    client.replies['roots/list'] = () => ({ error: { code: -1, message: 'not to you' } });
    const calls = [
      ['stdio', '0af7651916cd43dd8448eb211c80319c', 'pipe'],
      ['http', '1af7651916cd43dd8448eb211c80319c', 'tcp'],
    ] as const;
    for (const [name, trace] of calls) {
      const meta = { traceparent: `00-${trace}-${PARENT}-01` };
      const { result } = await client.call(1, `${name}__sample`, {}, meta);
      expect(JSON.stringify(result)).toContain('"model":"m"');
      await client.call(2, `${name}__roots`, {}, meta);
    }
    const { sessionId } = client.transport;
    const spans = await gateway.spansOf(client);
    for (const [index, [name, trace, network]] of calls.entries()) {
      const own = spans.filter(({ traceId }) => traceId === trace);
      const call = find(own, CLIENT, 'tools/call sample');
      const received = find(own, SERVER, 'sampling/createMessage');
      const passedOn = find(own, CLIENT, 'sampling/createMessage');
      expect(received).toMatchObject({
        parentSpanId: call.spanId,
        attributes: {
          'mcp.method.name': 'sampling/createMessage',
          'mcp.upstream.name': name,
          'jsonrpc.request.id': 'u-1',
          'network.transport': network,
          'mcp.protocol.version': '2025-11-25',
          ...(name === 'http' && { 'client.address': '127.0.0.1' }),
        },
      });
      expect(passedOn).toMatchObject({
        parentSpanId: received.spanId,
        attributes: { 'network.transport': 'tcp', 'mcp.session.id': sessionId },
      });
      // The client goes on with it.
      const { traceparent } = metaOf(asked[index]);
      expect(traceparent).toBe(`00-${trace}-${passedOn.spanId}-01`);
      expect(find(own, CLIENT, 'roots/list').attributes).toMatchObject({ 'error.type': '-1' });
      // We have answered, and as asked: with what the client said.
      const told = find(own, SERVER, 'roots/list').attributes;
      expect(told).toMatchObject({ 'error.type': '-1', 'rpc.response.status_code': '-1' });
    }
    const methods = (metric: string) =>
      gateway.collector
        .metrics()
        .findLast(({ name }) => name === metric)
        ?.points.filter(
          ({ attributes }) => !/list$|call|init/.test(`${attributes['mcp.method.name']}`),
        )
        .map(({ attributes, value }) => [
          attributes['mcp.method.name'],
          attributes['network.transport'],
          value,
        ])
        .sort();
    expect(methods('mcp.client.operation.duration')).toEqual([
      ['sampling/createMessage', 'tcp', 2],
    ]);
    expect(methods('mcp.server.operation.duration')).toEqual([
      ['sampling/createMessage', 'pipe', 1],
      ['sampling/createMessage', 'tcp', 1],
    ]);
  });

  test('a server that names its own span is its parent, and the call is linked', async () => {
    const gateway = await traced({ only: stdioUpstream() });
    const client = await rawClient(gateway.url, { capabilities: { sampling: {} } });
    let meta: Json = {};
    client.replies['vendor/ask'] = (params) => {
      meta = metaOf(params);
      return { result: {} };
    };
    const trace = '2af7651916cd43dd8448eb211c80319c';
    const params = {
      _meta: { traceparent: `00-${trace}-${PARENT}-01`, baggage: 'user=anna', kept: true },
    };
    await client.call(1, 'ask', { method: 'vendor/ask', params });
    const spans = await gateway.spansOf(client, trace);
    const received = find(spans, SERVER, '_other');
    expect(received.parentSpanId).toBe(PARENT);
    const passedOn = find(spans, CLIENT, '_other');
    expect(passedOn.parentSpanId).toBe(received.spanId);
    expect(meta).toEqual({ traceparent: `00-${trace}-${passedOn.spanId}-01`, kept: true });
  });

  test('one that a client cannot be asked, or that is given up, ends as well', async () => {
    const gateway = await traced({ only: stdioUpstream() });
    const client = await rawClient(gateway.url, { capabilities: { elicitation: {} } });
    const { result } = await client.call(1, 'sample');
    expect(JSON.stringify(result)).toContain('-32601');
    let asked = false;
    client.replies['elicitation/create'] = () => {
      asked = true;
      return undefined;
    };
    await client.send({ id: 2, method: 'tools/call', params: { name: 'elicit', arguments: {} } });
    await eventually(() => asked);
    await client.send({ method: 'notifications/cancelled', params: { requestId: 2 } });
    await eventually(() =>
      client.received.some(({ method }) => method === 'notifications/cancelled'),
    );
    const spans = await gateway.spansOf(client);
    const refused = find(spans, SERVER, 'sampling/createMessage');
    expect(refused.attributes).toMatchObject({ 'rpc.response.status_code': '-32601' });
    expect(refused.attributes).not.toHaveProperty('error.type');
    expect(spans.some(({ kind, name }) => kind === CLIENT && name.startsWith('sampling'))).toBe(
      false,
    );
    for (const kind of [SERVER, CLIENT]) {
      expect(find(spans, kind, 'elicitation/create').attributes).not.toHaveProperty('error.type');
    }
  });

  verifies('real.asks-traced', async () => {
    const require = createRequire(import.meta.url);
    const name = 'server-everything';
    const manifest = require.resolve(`@modelcontextprotocol/${name}/package.json`);
    const [file = ''] = Object.values<string>(require(manifest).bin);
    const collector = await OtlpReceiver.start();
    onTestFinished(() => collector.stop());
    const metas: unknown[] = [];
    const { client, call } = await connectCommand(
      ['wrap', '--', process.execPath, join(dirname(manifest), file), 'stdio'],
      {
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
        capabilities: { sampling: {}, elicitation: {} },
        before: (each) => {
          each.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
            metas.push(params._meta);
            return {
              model: 'test',
              role: 'assistant',
              content: { type: 'text', text: 'sampled' },
            };
          });
          each.setRequestHandler(ElicitRequestSchema, ({ params }) => {
            metas.push(params._meta);
            return { action: 'decline' };
          });
        },
      },
    );
    const sampled = await call('trigger-sampling-request', { prompt: 'x', maxTokens: 5 });
    expect(JSON.stringify(sampled)).toContain('sampled');
    await call('trigger-elicitation-request');
    await client.close();
    await collector.waitFor(() => collector.metrics().length > 0, 'metrics');
    const spans = collector.spans();
    for (const [index, [tool, method]] of [
      ['trigger-sampling-request', 'sampling/createMessage'],
      ['trigger-elicitation-request', 'elicitation/create'],
    ].entries()) {
      const served = find(spans, SERVER, `tools/call ${tool}`);
      const called = find(spans, CLIENT, `tools/call ${tool}`);
      const received = find(spans, SERVER, `${method}`);
      const passedOn = find(spans, CLIENT, `${method}`);
      expect([called, received, passedOn].map(({ parentSpanId }) => parentSpanId)).toEqual([
        served.spanId,
        called.spanId,
        received.spanId,
      ]);
      expect(metas[index]).toMatchObject({
        traceparent: `00-${served.traceId}-${passedOn.spanId}-01`,
      });
    }
  });
});

describe('notifications, through the gateway', () => {
  verifies('relay.notices-traced', async () => {
    const journal = join(temporaryFolder(), 'journal');
    const gateway = await traced({ only: stdioUpstream({ journal }) });
    const client = await rawClient(gateway.url);
    const trace = '3af7651916cd43dd8448eb211c80319c';
    const traceparent = `00-${trace}-${PARENT}-01`;
    await client.call(1, 'progress', { n: 20, ms: 1 }, { traceparent, progressToken: 'p' });
    await client.call(2, 'log', { n: 20 }, { traceparent });
    await client.call(3, 'changed', { what: 'tools' }, { traceparent });
    const names = () => client.received.map(({ method }) => method);
    await eventually(() => names().includes('notifications/tools/list_changed'));
    const params = { name: 'hang', arguments: {}, _meta: { traceparent } };
    // The answer to the POST begins with the first message in it: there is none.
    void client.send({ id: 4, method: 'tools/call', params });
    const told = (): Json[] =>
      readFileSync(journal, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    await eventually(() => told().some(({ params: sent }) => (sent as Json)?.name === 'hang'));
    await client.send({ method: 'notifications/cancelled', params: { requestId: 4 } });
    await eventually(() => told().some(({ method }) => method === 'notifications/cancelled'));
    const spans = await gateway.spansOf(client);
    const notices = spans.filter(({ name }) => name.startsWith('notifications/'));
    expect(notices.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual([
      '2 notifications/cancelled',
      '2 notifications/tools/list_changed',
      '3 notifications/cancelled',
      '3 notifications/tools/list_changed',
    ]);
    // The list changed in the course of a call; the client was told because the server said so.
    const heard = find(notices, SERVER, 'notifications/tools/list_changed');
    expect(heard.attributes).toMatchObject({ 'mcp.upstream.name': 'only' });
    const passedOn = find(notices, CLIENT, 'notifications/tools/list_changed');
    expect(passedOn.parentSpanId).toBe(heard.spanId);
    const changed = client.received.find(
      ({ method }) => method === 'notifications/tools/list_changed',
    );
    expect(metaOf(changed?.params).traceparent).toBe(
      `00-${passedOn.traceId}-${passedOn.spanId}-01`,
    );
    // The client's word ends the call, and the server is told of it: all in the trace of the call.
    const own = spans.filter(({ traceId }) => traceId === trace);
    const cancelled = find(own, SERVER, 'notifications/cancelled');
    expect(cancelled.parentSpanId).toBe(find(own, SERVER, 'tools/call hang').spanId);
    const sent = find(own, CLIENT, 'notifications/cancelled');
    expect(sent.parentSpanId).toBe(find(own, CLIENT, 'tools/call hang').spanId);
    const arrived = told().find(({ method }) => method === 'notifications/cancelled');
    expect(metaOf(arrived?.params).traceparent).toBe(`00-${trace}-${sent.spanId}-01`);
  });
});
