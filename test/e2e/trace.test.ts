import { describe, expect } from 'vitest';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { startServer } from '../fixtures/server.ts';
import { answer, json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { report, upstreamForTest } from '../tools/support.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('the whole trace at a real OTLP/HTTP receiver', () => {
  verifies('e2e.trace-and-metrics', async () => {
    const upstream = await upstreamForTest();
    upstream.on('/Tokyo', json(report()));
    upstream.on('/Nowhere', answer(404, 'Unknown location'));
    upstream.on('/Utopia', answer(503), json(report()));
    const collector = await OtlpReceiver.start();
    const server = await startServer(
      { WEATHER_API_URL: upstream.url, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
      { tools: { get_weather: { retry: { baseDelay: 1 } } } },
    );
    const client = await server.connect();
    const weather = (city: string, _meta?: Record<string, unknown>) =>
      client.callTool({ name: 'get_weather', arguments: { city }, ...(_meta && { _meta }) });
    await weather('Tokyo', { traceparent: `00-${TRACE}-${SPAN}-01` });
    await weather('Tokyo');
    await weather('Nowhere');
    await weather('Utopia');
    await weather('../etc/passwd');
    await client.callTool({ name: 'health_check', arguments: {} });
    expect(await server.stop()).toBe(0);

    // client _meta -> SERVER -> GET -> the upstream's header: one trace.
    const trace = collector.spans().filter((span) => span.traceId === TRACE);
    const [call] = trace.filter((span) => span.name === 'tools/call get_weather');
    const [get] = trace.filter((span) => span.kind === 3);
    expect(call).toMatchObject({ kind: 2, parentSpanId: SPAN });
    expect(get).toMatchObject({ name: 'GET', parentSpanId: call?.spanId });
    expect(upstream.requests[0]?.headers.traceparent).toBe(`00-${TRACE}-${get?.spanId}-01`);
    expect(call?.attributes).toMatchObject({
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'get_weather',
      'gen_ai.operation.name': 'execute_tool',
      'network.transport': 'tcp',
    });
    expect(JSON.stringify(trace.map((span) => span.attributes))).not.toContain('command');
    // Nowhere an argument, though this upstream takes it in the path.
    expect(get?.attributes).toMatchObject({ 'url.path': '/REDACTED' });
    expect(JSON.stringify(collector.spans())).not.toMatch(/Tokyo|Nowhere|Utopia|passwd/);

    // The metrics of a known sequence of calls, as the last export told them.
    const values = (name: string, key: string) => {
      const last = collector.metrics().findLast((metric) => metric.name === name);
      const entries = last?.points.map(({ attributes, value }) => [attributes[key], value]) ?? [];
      return Object.fromEntries(entries) as Record<string, number>;
    };
    const tool = collector.metrics().findLast((metric) => metric.name === 'tool.duration');
    expect(tool).toMatchObject({ unit: 's', type: 'histogram' });
    const outcomes = tool?.points.map(({ attributes, value }) =>
      [
        attributes['gen_ai.tool.name'],
        attributes['tool.outcome'],
        attributes['error.type'],
        value,
      ].join(' '),
    );
    expect(outcomes?.sort()).toEqual([
      'get_weather cached  1',
      'get_weather error INVALID_INPUT 1',
      'get_weather error NOT_FOUND 1',
      'get_weather success  2',
      'health_check success  1',
    ]);
    expect(values('resilience.circuit_breaker.calls', 'outcome')).toEqual({
      success: 2,
      ignored: 1,
    });
    expect(values('resilience.retry.attempts', 'outcome')).toEqual({ success: 1 });
    expect(values('resilience.rate_limiter.decisions', 'outcome')).toMatchObject({ accepted: 3 });
    expect(values('resilience.cache.requests', 'outcome')).toEqual({ hit: 1, miss: 3 });
    expect(values('mcp.server.operation.duration', 'gen_ai.tool.name')).toMatchObject({
      health_check: 1,
    });
    await collector.stop();
  });
});
