import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { HttpClient, type HttpRequest } from '../../src/gateway/http-client.ts';
import { systemClock } from '../../src/resilience/clock.ts';
import { closedPort, http, rejection, tcp } from '../fixtures/loopback.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

const METRIC = 'http.client.request.duration';

const get = { method: 'GET', headers: {} } as const;

let recording: ReturnType<typeof startRecording>;
beforeEach(() => {
  recording = startRecording();
  onTestFinished(() => recording.stop());
});

/** Makes a request and reads its answer, within a span of ours. */
const ask = async (url: string, request: HttpRequest = get): Promise<string> => {
  const client = new HttpClient(url, {}, systemClock);
  onTestFinished(() => client.close());
  const call = trace.getTracer('test').startSpan('call');
  try {
    return await context.with(trace.setSpan(context.active(), call), async () => {
      return client.drain(await client.request(request));
    });
  } finally {
    call.end();
  }
};

/** A client of a server that answers everything, and the trace contexts that reach it. */
const connected = async () => {
  const carried: unknown[] = [];
  const port = await http((request, response) => {
    carried.push(request.headers.traceparent);
    response.end('a');
  });
  const client = new HttpClient(`http://127.0.0.1:${port}/`, {}, systemClock);
  onTestFinished(() => client.close());
  return { client, carried };
};

/** Spans of HTTP requests, and the one they belong to. */
const spans = () => {
  const all = recording.spans();
  return {
    call: all.find(({ name }) => name === 'call'),
    http: all.filter(({ name }) => name !== 'call'),
  };
};

describe('telemetry of HTTP requests', () => {
  verifies('link.http.telemetry', async () => {
    const carried: string[] = [];
    const port = await http((request, response) => {
      carried.push(String(request.headers.traceparent));
      response.statusCode = request.method === 'POST' ? 503 : 200;
      response.end('{}');
    });
    const url = `http://127.0.0.1:${port}/mcp?key=s3cret&s3cret`;
    await ask(url);
    await ask(url, { method: 'POST', headers: {}, body: '{}' });
    const { call, http: made } = spans();
    const network = { 'server.address': '127.0.0.1', 'server.port': port, 'url.scheme': 'http' };
    const shown = `http://127.0.0.1:${port}/mcp?key=REDACTED&REDACTED`;
    expect(
      made.map(({ name, kind, status, attributes }) => ({ name, kind, status, attributes })),
    ).toEqual([
      {
        name: 'GET',
        kind: SpanKind.CLIENT,
        status: { code: SpanStatusCode.UNSET },
        attributes: {
          ...network,
          'http.request.method': 'GET',
          'http.response.status_code': 200,
          'url.full': shown,
        },
      },
      {
        name: 'POST',
        kind: SpanKind.CLIENT,
        status: { code: SpanStatusCode.ERROR },
        attributes: {
          ...network,
          'http.request.method': 'POST',
          'http.response.status_code': 503,
          'error.type': '503',
          'url.full': shown,
        },
      },
    ]);
    expect(made[0]?.parentSpanContext?.spanId).toBe(call?.spanContext().spanId);
    expect(carried).toEqual(
      made.map((span) => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`),
    );
    expect(await recording.points(METRIC)).toEqual([
      expect.objectContaining({
        value: 1,
        attributes: { ...network, 'http.request.method': 'GET', 'http.response.status_code': 200 },
      }),
      expect.objectContaining({
        value: 1,
        attributes: {
          ...network,
          'http.request.method': 'POST',
          'http.response.status_code': 503,
          'error.type': '503',
        },
      }),
    ]);
  });

  test('a request without an answer says what broke it', async () => {
    const refused = await closedPort();
    const reset = await tcp((socket) => socket.destroy());
    const none = await tcp((socket) => socket.end('SSH-2.0\r\n'));
    const cut = await tcp((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'));
    for (const port of [refused, reset, none]) {
      await rejection(() => ask(`http://127.0.0.1:${port}/`));
    }
    await ask(`http://127.0.0.1:${cut}/`);
    expect(spans().http.map(({ attributes }) => attributes['error.type'])).toEqual([
      'ECONNREFUSED',
      'ECONNRESET',
      'HPE_INVALID_CONSTANT',
      'ECONNRESET',
    ]);
    const points = await recording.points(METRIC);
    expect(points.map(({ attributes }) => attributes['error.type']).toSorted()).toEqual([
      'ECONNREFUSED',
      'ECONNRESET',
      'ECONNRESET',
      'HPE_INVALID_CONSTANT',
    ]);
  });

  test('an answer that we give up is no error', async () => {
    const port = await tcp((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'),
    );
    const client = new HttpClient(`http://127.0.0.1:${port}/`, {}, systemClock);
    const call = trace.getTracer('test').startSpan('call');
    const response = await context.with(trace.setSpan(context.active(), call), () =>
      client.request(get),
    );
    response.destroy();
    client.close();
    const [span] = spans().http;
    expect(span?.status.code).toBe(SpanStatusCode.UNSET);
    expect(span?.attributes).not.toHaveProperty('error.type');
  });

  test('what belongs to no call, as a stream that stays open, is counted, without a span and a trace', async () => {
    const { client, carried } = await connected();
    await client.drain(await client.request(get));
    expect(recording.spans()).toEqual([]);
    expect(carried).toEqual([undefined]);
    expect(await recording.points(METRIC)).toHaveLength(1);
  });

  test('a trace that is not sampled here goes on as such, and so does one of a client without an SDK here', async () => {
    const { client, carried } = await connected();
    trace.disable();
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`;
    const remote = propagation.extract(context.active(), { traceparent });
    await context.with(remote, async () => client.drain(await client.request(get)));
    expect(carried).toEqual([traceparent]);
  });
});
