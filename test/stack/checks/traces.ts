/**
 * @module
 * What Jaeger knows of the calls that were made.
 */
import { expect } from 'vitest';
import type { JaegerSpan } from '../jaeger.ts';
import { until } from '../processes.ts';
import { CLIENT_SERVICE, type ClientTrace, clientTrace, startOnStdio } from '../server.ts';
import type { Stack } from '../stack.ts';
import type { Scene, Traces } from '../traffic.ts';

/** A trace once it holds a span of that name from our side. */
const traceWith = (stack: Stack, { traceId }: ClientTrace, name: string) =>
  until(`${name} of trace ${traceId}`, async () => {
    const spans = await stack.jaeger.trace(traceId);
    return spans.some((span) => span.name === name) && spans;
  });

const named = (spans: readonly JaegerSpan[], name: string): readonly JaegerSpan[] =>
  spans.filter((span) => span.name === name);

const childrenOf = (spans: readonly JaegerSpan[], parent: JaegerSpan | undefined) =>
  spans.filter(({ parentId }) => parentId === parent?.spanId);

/** Client, server, attempts and requests to the dependency: one tree. */
export const parentChain = async (stack: Stack, traces: Traces): Promise<void> => {
  const spans = await traceWith(stack, traces.retried, 'attempt 3');
  const [client] = named(spans, 'retried');
  const [call, ...others] = named(spans, 'tools/call get_weather');
  expect(others).toEqual([]);
  expect(client).toMatchObject({ service: CLIENT_SERVICE, parentId: undefined });
  expect(call).toMatchObject({ service: 'mcp-resilience', parentId: client?.spanId });
  expect(call?.tags).toMatchObject({
    'span.kind': 'server',
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'get_weather',
    'tool.outcome': 'success',
  });
  // The first attempt has no span of its own, the others have.
  expect(
    childrenOf(spans, call)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(['GET', 'attempt 2', 'attempt 3']);
  const requests = named(spans, 'GET');
  expect(requests).toHaveLength(3);
  expect(requests.map(({ tags }) => tags['http.response.status_code']).sort()).toEqual([
    200, 503, 503,
  ]);
  for (const attempt of ['attempt 2', 'attempt 3']) {
    expect(childrenOf(spans, named(spans, attempt)[0])).toMatchObject([
      { name: 'GET', tags: { 'span.kind': 'client' } },
    ]);
  }
};

/** Client, gateway, server and dependency: one trace over three processes. */
export const gatewayChain = async (stack: Stack, trace: ClientTrace): Promise<void> => {
  const call = 'tools/call get_weather';
  const spans = await until('the calls of gateway and server', async () => {
    const found = await stack.jaeger.trace(trace.traceId);
    return named(found, call).length === 3 && found;
  });
  const only = (service: string, kind: string) => {
    const found = named(spans, call).filter(
      (span) => span.service === service && span.tags['span.kind'] === kind,
    );
    expect(found, `${kind} spans of ${service}`).toHaveLength(1);
    return found[0];
  };
  const served = only('gateway', 'server');
  const sent = only('gateway', 'client');
  const reached = only('deserted', 'server');
  const parent = (span: JaegerSpan | undefined) =>
    spans.find(({ spanId }) => spanId === span?.parentId);
  const above = (span: JaegerSpan | undefined): (string | undefined)[] =>
    span === undefined ? [] : [span.spanId, ...above(parent(span))];
  expect(above(reached)).toContain(sent?.spanId);
  expect(above(sent)).toContain(served?.spanId);
  expect(served?.parentId).toBe(trace.spanId);
  expect(childrenOf(spans, reached)).toMatchObject([{ name: 'GET', service: 'deserted' }]);
};

/** The same over stdio; and what a client must not be able to do to it. */
export const stdioChain = async (stack: Stack, env: Readonly<Record<string, string>>) => {
  const service = 'stdio-server';
  const caller = await startOnStdio(stack, service, env);
  const trace = clientTrace('over stdio');
  const malformed = clientTrace('malformed');
  const ask = (city: string, meta?: ClientTrace, extra?: object) =>
    caller.call('get_weather', { city, use_cache: false }, meta, extra);
  try {
    await ask('Nowhere', trace, { baggage: 'user=secret-of-the-client' });
    await ask('Nowhere', malformed, { traceparent: '00-this-is-no-trace-01' });
  } finally {
    await caller.close();
  }
  const spans = await traceWith(stack, trace, 'tools/call get_weather');
  const [call] = named(spans, 'tools/call get_weather');
  expect(call).toMatchObject({ service, parentId: trace.spanId });
  expect(childrenOf(spans, call).map(({ name }) => name)).toContain('GET');
  expect(JSON.stringify(spans)).not.toContain('secret-of-the-client');
  const found = await until('both calls', async () => {
    const traces = await stack.jaeger.find(service, { operation: 'tools/call get_weather' });
    return traces.length === 2 && traces;
  });
  // Not understood, so that the call began a trace of its own.
  expect(found.map(({ traceId }) => traceId)).toContain(trace.traceId);
  expect(found.map(({ traceId }) => traceId)).not.toContain(malformed.traceId);
};

const EVENTS: readonly (readonly [Scene, string, Readonly<Record<string, unknown>>])[] = [
  ['retried', 'resilience.retry.scheduled', { 'resilience.failure.code': 'UPSTREAM_UNAVAILABLE' }],
  ['retryAfter', 'resilience.retry.scheduled', { 'resilience.failure.code': 'RATE_LIMITED' }],
  ['timeout', 'resilience.timeout.exceeded', { reason: 'attempt' }],
  ['opening', 'resilience.circuit_breaker.state_changed', { from: 'closed', to: 'open' }],
  ['refused', 'resilience.circuit_breaker.rejected', { outcome: 'rejected' }],
  ['fallback', 'resilience.fallback.used', { reason: 'CIRCUIT_OPEN' }],
  ['stale', 'resilience.cache.stale_served', { 'resilience.dependency': 'weather-api' }],
  ['recovery', 'resilience.circuit_breaker.state_changed', { from: 'half-open', to: 'closed' }],
  ['limited', 'resilience.rate_limiter.rejected', { 'resilience.dependency': 'search-api' }],
];

/** What the policies did stands on the span of the call. */
export const eventsOnSpans = async (stack: Stack, traces: Traces): Promise<void> => {
  for (const [scene, name, tags] of EVENTS) {
    const tool = scene === 'limited' ? 'search' : 'get_weather';
    const spans = await traceWith(stack, traces[scene], `tools/call ${tool}`);
    const [call] = named(spans, `tools/call ${tool}`);
    expect(call?.events, scene).toContainEqual({ name, tags: expect.objectContaining(tags) });
  }
  const [refused] = named(
    await stack.jaeger.trace(traces.refused.traceId),
    'tools/call get_weather',
  );
  expect(refused?.tags).toMatchObject({ error: true, 'resilience.failure.code': 'CIRCUIT_OPEN' });
  // Retry-After said one second; nothing was sent before.
  const [waited] = named(
    await stack.jaeger.trace(traces.retryAfter.traceId),
    'tools/call get_weather',
  );
  expect(waited?.events[0]?.tags['resilience.delay']).toBeGreaterThanOrEqual(1);
};

/** Events are log records too: each by its name in the log of the Collector. */
export const eventsInLog = async (stack: Stack): Promise<void> => {
  const expected = new Set(EVENTS.map(([, name]) => name));
  await until('events in the log of the Collector', async () => {
    const log = stack.log('otel-collector');
    return [...expected].every((name) => log.includes(`\n${name} `));
  });
};
