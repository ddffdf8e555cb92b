import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { METRIC, type MetricSpec } from '../../src/telemetry/signals.ts';
import { closedPort, OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { runToEnd, sourceUrl } from '../fixtures/telemetry-child.ts';
import { verifies } from '../fixtures/verifies.ts';

const IMPORTS = `
  import { emitEvent, instruments, observeMetrics, tracer } from '${sourceUrl('telemetry/instruments.ts')}';
  import { EVENT, METRIC } from '${sourceUrl('telemetry/signals.ts')}';
  import { startTelemetry } from '${sourceUrl('telemetry/start.ts')}';
`;
const START = `${IMPORTS}
  const telemetry = startTelemetry();
`;

let receiver: OtlpReceiver;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  receiver = await OtlpReceiver.start();
  env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
});
afterEach(() => receiver.stop());

/** An HTTP server that is no collector, and what it was asked. */
const asked: { url: string; traceparent: unknown; baggage: unknown }[] = [];
const upstream = createServer(({ url = '', headers }, response) => {
  asked.push({ url, traceparent: headers.traceparent, baggage: headers.baggage });
  response.end('fine');
});
let upstreamUrl: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});
afterAll(() => upstream.close());
afterEach(() => asked.splice(0));

/** Calls the upstream both ways inside of an active span. */
const CALL_UPSTREAM = `
  import { get } from 'node:http';
  import { setTimeout } from 'node:timers/promises';
  const callUpstream = (url) => tracer().startActiveSpan('outer', async (span) => {
    await (await fetch(url + '/fetch?city=Paris&key=secret')).text();
    await new Promise((resolve) => get(url + '/get?city=Paris&key=secret', (response) => {
      response.resume().on('end', resolve);
    }));
    span.end();
    return span.spanContext().traceId;
  });
`;

describe('without an endpoint', () => {
  const record = `instruments().toolDuration.record(0.25, { 'gen_ai.tool.name': 'search' });`;

  verifies('telemetry.no-endpoint-silent', async () => {
    const end = await runToEnd(
      `${START}${record}
        tracer().startSpan('a span').end();
        emitEvent(EVENT.hedgeWon, 'info', {});
        import { createServer, Socket } from 'node:net';
        Socket.prototype.connect = () => { throw new Error('a connection is made'); };
        if (telemetry.exporting) throw new Error('it exports');
        if (!telemetry.destination.startsWith('nowhere')) throw new Error(telemetry.destination);
        await telemetry.flush();
        await telemetry.shutdown();
      `,
    );
    expect(end).toEqual({ code: 0, signal: null, stdout: '', stderr: '' });
  });

  verifies('telemetry.snapshot-without-endpoint', async () => {
    const end = await runToEnd(
      `${START}${record}
        const show = async () => {
          const { toolDuration, value } = await telemetry.snapshot();
          console.log(JSON.stringify([toolDuration.overall, [...toolDuration.tools.keys()], value('tool.duration')]));
        };
        await show();
        ${record}
        await telemetry.shutdown();
        await show();
      `,
    );
    const stats = { avg: 250, p50: 250, p95: 250, p99: 250 };
    expect(
      end.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      [{ count: 1, ...stats }, ['search'], 1],
      [{ count: 2, ...stats }, ['search'], 2],
    ]);
    expect(end.stderr).toBe('');
  });

  verifies('telemetry.disabled', async () => {
    const end = await runToEnd(
      `${START}${record}
        console.log(telemetry.exporting, instruments().enabled, telemetry.destination);
        console.log((await telemetry.snapshot()).toolDuration.overall);
        await telemetry.shutdown();
      `,
      { env: { ...env, OTEL_SDK_DISABLED: 'true' } },
    );
    expect(end.stdout).toBe('false false nowhere: OTEL_SDK_DISABLED is true\nundefined\n');
    expect(receiver.connections).toBe(0);
  });
});

describe('with a collector', () => {
  verifies('telemetry.contract-exported', async () => {
    const end = await runToEnd(
      `${START}
        const made = instruments();
        for (const [key, { instrument }] of Object.entries(METRIC)) {
          if (instrument === 'histogram') made[key].record(0.0055);
          if (instrument === 'counter') made[key].add(1);
        }
        const source = { observe(report) {
          for (const [key, { instrument }] of Object.entries(METRIC)) {
            if (instrument.startsWith('observable')) report(key, 1, { state: 'open' });
          }
        } };
        observeMetrics(source);
        await telemetry.shutdown();
      `,
      { env },
    );
    expect(end.stderr).toBe('');
    const received = receiver.metrics().filter(({ scope }) => scope === 'mcp-resilience');
    const seen = received.map(({ name, unit, description, type, monotonic, points }) => ({
      name,
      unit,
      description,
      type,
      monotonic,
      bounds: points[0]?.bounds,
    }));
    const types = {
      histogram: { type: 'histogram', monotonic: false },
      counter: { type: 'sum', monotonic: true },
      'observable up-down counter': { type: 'sum', monotonic: false },
      'observable gauge': { type: 'gauge', monotonic: false },
    };
    const promised = Object.values(METRIC).map((spec: MetricSpec) => ({
      name: spec.name,
      unit: spec.unit,
      description: spec.description,
      ...types[spec.instrument],
      bounds: [...(spec.buckets ?? [])],
    }));
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect(seen.sort(byName)).toEqual(promised.sort(byName));
  });

  verifies('telemetry.events-exported', async () => {
    await runToEnd(
      `${START}
        tracer().startActiveSpan('a call', (span) => {
          emitEvent(EVENT.retryScheduled, 'warn', { 'resilience.attempt': 2 });
          span.end();
        });
        await telemetry.shutdown();
      `,
      { env },
    );
    const [span] = receiver.spans();
    const event = { name: 'resilience.retry.scheduled', attributes: { 'resilience.attempt': 2 } };
    expect(span?.events).toEqual([event]);
    expect(receiver.logs()).toMatchObject([
      {
        eventName: event.name,
        attributes: event.attributes,
        severity: 13,
        traceId: span?.traceId,
        scope: 'mcp-resilience',
      },
    ]);
  });

  verifies('O03', async () => {
    const end = await runToEnd(
      `${CALL_UPSTREAM}${START}
        console.log(await callUpstream('${upstreamUrl}'));
        await telemetry.shutdown();
      `,
      { env },
    );
    const traceId = end.stdout.trim();
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    const clients = receiver.spans().filter(({ kind }) => kind === 3);
    expect(asked.map(({ traceparent }) => traceparent)).toEqual(
      clients.map(({ spanId }) => `00-${traceId}-${spanId}-01`),
    );
    const outer = receiver.spans().find(({ name }) => name === 'outer');
    expect(clients.map(({ parentSpanId }) => parentSpanId)).toEqual([outer?.spanId, outer?.spanId]);
  });

  verifies('telemetry.query-redacted', async () => {
    await runToEnd(
      `${CALL_UPSTREAM}${START}
        import { createServer } from 'node:http';
        const server = createServer((request, response) => response.end());
        await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
        await callUpstream('http://127.0.0.1:' + server.address().port);
        server.close();
        await telemetry.shutdown();
      `,
      { env },
    );
    const spans = receiver.spans();
    expect(spans.map(({ kind }) => kind).sort()).toEqual([1, 2, 2, 3, 3]);
    expect(JSON.stringify(spans)).toContain('city=REDACTED&key=REDACTED');
    expect(JSON.stringify(spans)).not.toMatch(/Paris|secret/);
  });

  verifies('telemetry.own-exports-invisible', async () => {
    await runToEnd(
      `${START}
        for (let round = 0; round < 3; round++) {
          tracer().startSpan('a span').end();
          emitEvent(EVENT.hedgeWon, 'info', {});
          await telemetry.flush();
        }
        await telemetry.shutdown();
      `,
      { env },
    );
    expect(receiver.spans().map(({ name }) => name)).toEqual(['a span', 'a span', 'a span']);
    expect(receiver.metrics().map(({ name }) => name)).not.toContain(
      'http.client.request.duration',
    );
    expect(receiver.requests.length).toBeGreaterThanOrEqual(9);
    for (const { headers } of receiver.requests) expect(headers.traceparent).toBeUndefined();
  });

  verifies('telemetry.baggage-stays', async () => {
    const call = `${CALL_UPSTREAM}${START}
      import { context, propagation } from '@opentelemetry/api';
      const baggage = propagation.createBaggage({ user: { value: 'alice' } });
      await context.with(propagation.setBaggage(context.active(), baggage), () =>
        callUpstream('${upstreamUrl}'));
      await telemetry.shutdown();
    `;
    await runToEnd(call, { env });
    expect(asked.map(({ baggage }) => baggage)).toEqual([undefined, undefined]);
    await runToEnd(call, { env: { ...env, OTEL_PROPAGATORS: 'tracecontext,baggage' } });
    expect(asked.slice(2).map(({ baggage }) => baggage)).toEqual(['user=alice', 'user=alice']);
  });

  verifies('telemetry.early-tracers', async () => {
    await runToEnd(
      `${IMPORTS}
        import { trace } from '@opentelemetry/api';
        import { createRequire } from 'node:module';
        const required = createRequire('${sourceUrl('telemetry/start.ts')}')('@opentelemetry/api');
        const early = trace.getTracer('early');
        const telemetry = startTelemetry();
        early.startSpan('imported, before').end();
        trace.getTracer('late').startSpan('imported, after').end();
        required.trace.getTracer('late').startSpan('required, after').end();
        await telemetry.shutdown();
      `,
      { env },
    );
    expect(receiver.spans().map(({ name }) => name)).toEqual([
      'imported, before',
      'imported, after',
      'required, after',
    ]);
  });
});

describe('the environment', () => {
  verifies('telemetry.resource-private', async () => {
    const end = await runToEnd(
      `${START} tracer().startSpan('a span').end(); await telemetry.shutdown();`,
      { env, args: ['--token', 'secret'] },
    );
    expect(end.stderr).toBe('');
    const [span] = receiver.spans();
    expect(span?.resource).toEqual({
      'service.name': 'mcp-resilience',
      'service.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'telemetry.sdk.language': 'nodejs',
      'telemetry.sdk.name': 'opentelemetry',
      'telemetry.sdk.version': expect.any(String),
    });
    for (const { resource } of receiver.metrics()) expect(resource).toEqual(span?.resource);
  });

  verifies('telemetry.detectors-opt-in', async () => {
    await runToEnd(`${START} tracer().startSpan('a span').end(); await telemetry.shutdown();`, {
      env: { ...env, OTEL_NODE_RESOURCE_DETECTORS: 'process,os', OTEL_SERVICE_NAME: 'mine' },
    });
    const resource = receiver.spans()[0]?.resource;
    expect(resource).toMatchObject({
      'service.name': 'mine',
      'process.pid': expect.any(Number),
      'os.type': expect.any(String),
    });
    expect(resource).not.toHaveProperty('host.name');
  });

  verifies('telemetry.sampler-and-headers', async () => {
    await runToEnd(
      `${START}
        tracer().startSpan('never sampled').end();
        emitEvent(EVENT.hedgeWon, 'info', {});
        await telemetry.shutdown();
      `,
      {
        env: {
          ...env,
          OTEL_TRACES_SAMPLER: 'always_off',
          OTEL_METRICS_EXPORTER: 'none',
          OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc',
          OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
          OTEL_RESOURCE_ATTRIBUTES: 'service.name=weather,service.instance.id=7,deployment=test',
        },
      },
    );
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/v1/logs']);
    expect(receiver.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer abc',
      'content-encoding': 'gzip',
    });
    expect(receiver.logs()[0]?.resource).toMatchObject({
      'service.name': 'weather',
      'service.instance.id': '7',
      deployment: 'test',
    });
  });

  test('a protocol that is named is spoken', async () => {
    const end = await runToEnd(
      `${START} tracer().startSpan('a span').end(); await telemetry.shutdown();`,
      {
        env: {
          OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
          OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
        },
      },
    );
    expect(end.stderr).toBe('');
    const sent = receiver.requests.map(({ path, headers }) => [path, headers['content-type']]);
    expect(sent).toEqual([['/v1/traces', 'application/x-protobuf']]);
  });

  test('grpc is spoken, and refused by a collector of another kind without harm', async () => {
    const end = await runToEnd(
      `${START}
        tracer().startSpan('a span').end();
        console.log(telemetry.destination);
        await telemetry.shutdown();
      `,
      { env: { ...env, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' } },
    );
    expect(end).toMatchObject({ code: 0, stdout: `${receiver.url} (grpc)\n` });
    expect(receiver.connections).toBeGreaterThan(0);
  });

  verifies('telemetry.unusable-endpoint', async () => {
    const end = await runToEnd(
      `${START}
        tracer().startSpan('a span').end();
        await telemetry.shutdown();
        console.log(telemetry.exporting);
      `,
      { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' } },
    );
    expect(end.stdout).toBe('false\n');
    expect(end.stderr).toContain('traces are not exported: "collector:4318" is not a URL');
  });

  test('instrumentations can be chosen', async () => {
    await runToEnd(
      `${CALL_UPSTREAM}${START}
        await callUpstream('${upstreamUrl}');
        await telemetry.shutdown();
      `,
      { env: { ...env, OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'http' } },
    );
    const scopes = receiver.spans().map(({ scope }) => scope);
    expect(scopes.sort()).toEqual(['@opentelemetry/instrumentation-http', 'mcp-resilience']);
  });
});

describe('one SDK in a process', () => {
  verifies('telemetry.start-once', async () => {
    const end = await runToEnd(
      `${START}
        console.log(startTelemetry({ env: {} }) === telemetry);
        await telemetry.shutdown();
        console.log(startTelemetry() === telemetry);
      `,
      { env },
    );
    expect(end).toMatchObject({ stdout: 'true\ntrue\n', stderr: '' });
  });

  verifies('telemetry.foreign-sdk', async () => {
    const end = await runToEnd(
      `${IMPORTS}
        import { createRequire } from 'node:module';
        const require = createRequire('${sourceUrl('telemetry/start.ts')}');
        const { NodeSDK } = require('@opentelemetry/sdk-node');
        const theirs = new NodeSDK({ serviceName: 'theirs' });
        theirs.start();
        const telemetry = startTelemetry();
        tracer().startSpan('a span').end();
        instruments().hedges.add(1);
        console.log(telemetry.exporting, telemetry.destination);
        console.log((await telemetry.snapshot()).value('resilience.hedges'));
        await telemetry.shutdown();
        await theirs.shutdown();
      `,
      { env: { ...env, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' } },
    );
    expect(end.stderr).toBe('');
    expect(end.stdout).toMatch(/^false where the OpenTelemetry SDK .*\nundefined\n$/);
    expect(receiver.spans()).toMatchObject([{ resource: { 'service.name': 'theirs' } }]);
    expect(receiver.metrics().map(({ name }) => name)).toContain('resilience.hedges');
  });

  test('where only traces are taken, metrics stay readable', async () => {
    const end = await runToEnd(
      `${IMPORTS}
        import { trace } from '@opentelemetry/api';
        trace.setGlobalTracerProvider({ getTracer: () => { throw new Error('used'); } });
        const telemetry = startTelemetry();
        instruments().hedges.add(2);
        console.log((await telemetry.snapshot()).value('resilience.hedges'));
      `,
      { env },
    );
    expect(end).toMatchObject({ stdout: '2\n', stderr: '' });
    expect(receiver.connections).toBe(0);
  });
});

describe('Prometheus', () => {
  verifies('O06', async () => {
    const { port } = new URL(await closedPort());
    const end = await runToEnd(
      `${START}
        for (const [key, { instrument }] of Object.entries(METRIC)) {
          if (instrument === 'counter') instruments()[key].add(1);
        }
        const scrape = async () => {
          try {
            return await (await fetch('http://localhost:${port}/metrics')).text();
          } catch {
            return scrape(); // not listening yet
          }
        };
        console.log(await scrape());
        console.log(telemetry.destination);
        await telemetry.shutdown();
      `,
      { env: { OTEL_METRICS_EXPORTER: 'prometheus', OTEL_EXPORTER_PROMETHEUS_PORT: port } },
    );
    const counters = Object.values(METRIC).filter(({ instrument }) => instrument === 'counter');
    expect(counters.length).toBeGreaterThan(5);
    for (const { name } of counters) {
      expect(name).not.toMatch(/[._]total$/);
      const series = `${name.replaceAll('.', '_')}_total`;
      expect(end.stdout).toMatch(new RegExp(`^${series}\\{[^}]*\\} 1$`, 'm'));
    }
    expect(end.stdout).not.toContain('_total_total');
    expect(end.stdout).toContain(`metrics: http://localhost:${port}/metrics`);
    expect(end.stderr).toBe('');
  });
});
