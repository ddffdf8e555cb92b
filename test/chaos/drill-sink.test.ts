import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { forwardingOf, startSink } from '../../src/chaos/drill-sink.ts';

/** A collector that keeps the bytes it is sent. */
const rawCollector = async (status: number) => {
  const received: { path: string; encoding: string | undefined; body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.from(await buffer(request));
    received.push({ path: request.url ?? '', encoding: request.headers['content-encoding'], body });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { received, endpoint: `http://127.0.0.1:${port}/base` };
};

const LOGS = {
  resourceLogs: [
    {
      scopeLogs: [
        {
          logRecords: [
            {
              eventName: 'opened',
              timeUnixNano: '1700000000123456789',
              attributes: [
                { key: 'count', value: { intValue: '3' } },
                { key: 'flag', value: { boolValue: true } },
                { key: 'none' },
              ],
            },
          ],
        },
      ],
    },
  ],
};

const counter = (value: number) => ({
  resourceMetrics: [
    {
      scopeMetrics: [{ metrics: [{ name: 'm', sum: { dataPoints: [{ asInt: String(value) }] } }] }],
    },
  ],
});

const post = (url: string, body: Uint8Array<ArrayBuffer> | string, encoding?: string) =>
  fetch(url, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      ...(encoding && { 'content-encoding': encoding }),
    },
  });

describe('the collector of a drill', () => {
  test('keeps what it is sent, and hands on the very bytes', async () => {
    const { received, endpoint } = await rawCollector(200);
    const said: string[] = [];
    const sink = await startSink((line) => said.push(line), { endpoint, headers: {} });
    const zipped = new Uint8Array(gzipSync(JSON.stringify(LOGS)));
    expect((await post(`${sink.url}/v1/logs`, zipped, 'gzip')).status).toBe(200);
    for (const value of [1, 5, 4]) {
      await post(`${sink.url}/v1/metrics`, JSON.stringify(counter(value)));
    }
    await sink.close();
    expect(sink.events).toEqual([
      { name: 'opened', at: 1_700_000_000_123.456, attributes: { count: 3, flag: true } },
    ]);
    expect(sink.series()).toEqual([{ name: 'm', attributes: {}, last: 4, highest: 5 }]);
    expect(received[0]).toMatchObject({ path: '/base/v1/logs', encoding: 'gzip' });
    expect(received[0]?.body.equals(zipped)).toBe(true);
    expect(received).toHaveLength(4);
    expect(said).toEqual([]);
  });

  test('says once that batches were refused', async () => {
    const { endpoint } = await rawCollector(401);
    const said: string[] = [];
    const sink = await startSink((line) => said.push(line), { endpoint, headers: {} });
    for (const value of [1, 2])
      await post(`${sink.url}/v1/metrics`, JSON.stringify(counter(value)));
    await sink.close();
    expect(said).toEqual([
      `warning: telemetry could not be handed on to ${new URL(endpoint).host}: it answered 401`,
    ]);
  });

  test('as a black hole takes everything and answers nothing', async () => {
    const { received, endpoint } = await rawCollector(200);
    const sink = await startSink(() => {}, { endpoint, headers: {} });
    sink.mode = 'black_hole';
    const unanswered = post(`${sink.url}/v1/logs`, JSON.stringify(LOGS)).then(
      () => 'answered',
      () => 'cut off',
    );
    while (sink.events.length === 0) await new Promise((resolve) => setImmediate(resolve));
    sink.mode = 'answer';
    expect((await post(`${sink.url}/v1/logs`, JSON.stringify(LOGS))).status).toBe(200);
    await sink.close();
    expect(await unanswered).toBe('cut off');
    expect(received).toHaveLength(1);
  });

  test('cuts off what is no OTLP', async () => {
    const sink = await startSink(() => {});
    await expect(post(`${sink.url}/v1/logs`, 'no JSON')).rejects.toThrow();
    await sink.close();
  });

  test('reads from the environment where to hand on', () => {
    expect(forwardingOf({})).toBeUndefined();
    expect(forwardingOf({ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' })).toBeUndefined();
    expect(
      forwardingOf({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318/',
        OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b=x%3Dy,broken,c=%',
      }),
    ).toEqual({ endpoint: 'http://localhost:4318', headers: { a: '1', b: 'x=y', c: '%' } });
    expect(() => forwardingOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4317' })).toThrow(/http/);
  });
});
