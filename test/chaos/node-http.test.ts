/**
 * Requests of `node:http` and `node:https`: struck whoever makes them, and only while the attempt
 * of a struck call runs.
 */
import http, { Agent, ClientRequest, get, type RequestOptions, request } from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import { context } from '@opentelemetry/api';
import { suppressTracing } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { describe, expect, onTestFinished, test } from 'vitest';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { upstreamForTest } from '../tools/support.ts';
import { AT_SEARCH, arm, openChaos, pipelineOf } from './support.ts';

// As a library has it that took it out of the module before fault injection was thought of.
const { request: takenOut } = createRequire(import.meta.url)('node:http') as typeof http;

/** Status of the answer, with its body read. */
const statusOf = (asked: ClientRequest): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    asked.once('error', reject);
    asked.once('response', async (response) => {
      await text(response);
      resolve(response.statusCode);
    });
    asked.end();
  });

const setUp = async (options: { nodeHttp?: boolean } = {}) => {
  const upstream = await upstreamForTest();
  upstream.on('*', json({ ok: true }));
  const { chaos, clock } = openChaos(options);
  const pipeline = pipelineOf(chaos, clock, {});
  return { upstream, chaos, clock, pipeline };
};

const agent = (options: object = {}): Agent => {
  const made = new Agent(options);
  onTestFinished(() => made.destroy());
  return made;
};

/** An agent of somebody who changed how it connects. */
class ProxyAgent extends Agent {
  override createConnection(): never {
    throw new Error('there is no proxy here');
  }
}

describe('requests of node:http', () => {
  verifies('chaos.node-http', async () => {
    const { upstream, chaos, pipeline } = await setUp();
    const kept = agent({ keepAlive: true, maxSockets: 1 });
    const busy = agent({ keepAlive: true, maxSockets: 1 });
    const { url } = upstream;
    const secure = 'https://api.example/';
    const ways: Readonly<Record<string, () => ClientRequest>> = {
      'a named import': () => request(url),
      'get, a named import': () => get(url),
      'the module': () => http.request(url),
      'taken out of the module': () => takenOut(url),
      'an options object': () => http.request({ host: 'api.example', path: '/x', method: 'PUT' }),
      'a request made by hand': () => new ClientRequest(url),
      'no agent': () => request(url, { agent: false }),
      'an agent that keeps connections': () => request(url, { agent: kept }),
      'an agent without a socket left': () => {
        request(url, { agent: busy }).on('error', () => {});
        return request(url, { agent: busy });
      },
      'an agent of one’s own': () => request(url, { agent: new ProxyAgent() }),
      'https, the module': () => https.request(secure),
      'https, get': () => https.get(secure),
      'https, an agent': () => https.request(secure, { agent: new https.Agent() }),
    };
    // A connection that is kept must not let the next request slip by.
    await statusOf(request(url, { agent: kept }));
    arm(chaos, { kind: 'status', status: 503, target: AT_SEARCH });
    for (const [way, make] of Object.entries(ways)) {
      expect([way, await pipeline.execute(() => statusOf(make()))]).toEqual([way, 503]);
    }
    expect(upstream.count()).toBe(1);
    const [fault] = chaos.faults.list().faults;
    expect(fault).toMatchObject({ injected: Object.keys(ways).length, missed: 0 });
    // The same agents, and nothing of the fault is left in them.
    chaos.faults.clearAll();
    expect(await pipeline.execute(() => statusOf(request(url, { agent: kept })))).toBe(200);
    expect(upstream.connections).toBe(1);
  });

  test('a body that is sent is taken, and a second request of the attempt is struck too', async () => {
    const { upstream, chaos, pipeline } = await setUp();
    arm(chaos, { kind: 'status', status: 502, target: AT_SEARCH });
    const post = (): Promise<number | undefined> => {
      const asked = request(upstream.url, { method: 'POST' });
      asked.write('x'.repeat(100_000));
      return statusOf(asked);
    };
    const statuses = await pipeline.execute(async () => [await post(), await post()]);
    expect(statuses).toEqual([502, 502]);
    expect(chaos.faults.list().faults).toMatchObject([{ injected: 1 }]);
  });

  test('beside a struck call all others go where they are sent', async () => {
    const { upstream, chaos, clock, pipeline } = await setUp();
    const other = pipelineOf(chaos, clock, {}, 'weather-api');
    arm(chaos, { kind: 'connection_refused', target: AT_SEARCH });
    const ask = () => statusOf(request(upstream.url));
    const [struck, spared, plain] = await Promise.allSettled([
      pipeline.execute(ask),
      other.execute(ask),
      ask(),
    ]);
    expect(struck).toMatchObject({ reason: { code: 'ECONNREFUSED' } });
    expect([spared, plain]).toMatchObject([{ value: 200 }, { value: 200 }]);
  });

  test('what an attempt has left behind is not struck once it has ended', async () => {
    const { upstream, chaos, pipeline } = await setUp();
    arm(chaos, { kind: 'status', status: 503, target: AT_SEARCH });
    const later = Promise.withResolvers<void>();
    let left: Promise<readonly unknown[]> | undefined;
    const during = await pipeline.execute(async () => {
      left = later.promise.then(async () => [
        await statusOf(request(upstream.url)),
        (await fetch(upstream.url)).status,
      ]);
      return statusOf(request(upstream.url));
    });
    later.resolve();
    expect([during, await left]).toEqual([503, [200, 200]]);
  });

  test('telemetry that is sent meanwhile gets through', async () => {
    const recording = startRecording();
    onTestFinished(() => recording.stop());
    const { upstream, chaos, pipeline } = await setUp();
    const receiver = await OtlpReceiver.start();
    onTestFinished(() => receiver.stop());
    const exporter = new OTLPTraceExporter({ url: `${receiver.url}/v1/traces` });
    const processor = new BatchSpanProcessor({ exporter });
    const provider = new TracerProvider({ spanProcessors: [processor] });
    arm(chaos, { kind: 'status', status: 503, target: AT_SEARCH });
    const statuses = await pipeline.execute(async () => {
      provider.getTracer('test').startSpan('of a struck call').end();
      await processor.forceFlush();
      const suppressed = <T>(run: () => T): T =>
        context.with(suppressTracing(context.active()), run);
      return [
        await suppressed(() => statusOf(request(upstream.url))),
        (await suppressed(() => fetch(upstream.url))).status,
        await statusOf(request(upstream.url)),
      ];
    });
    expect(statuses).toEqual([200, 200, 503]);
    expect(receiver.spans().map(({ name }) => name)).toEqual(['of a struck call']);
  });

  test('is taken back in the end, also from under what others have put around it', async () => {
    const { addRequest } = Agent.prototype as unknown as { addRequest: () => void };
    const { upstream, chaos } = await setUp();
    const prototype = Agent.prototype as unknown as { addRequest: (...args: unknown[]) => void };
    expect(prototype.addRequest).not.toBe(addRequest);
    await chaos.close();
    expect(prototype.addRequest).toBe(addRequest);

    const second = openChaos().chaos;
    const ours = prototype.addRequest;
    const around = function (this: Agent, ...args: unknown[]) {
      return ours.apply(this, args);
    };
    prototype.addRequest = around;
    onTestFinished(() => {
      prototype.addRequest = addRequest;
    });
    await second.close();
    expect(prototype.addRequest).toBe(around);
    // It is still on the way, and does nothing any more, also when faults are armed anew.
    const third = openChaos({ nodeHttp: false });
    arm(third.chaos, { kind: 'status', status: 503, target: AT_SEARCH });
    const pipeline = pipelineOf(third.chaos, third.clock, {});
    expect(await pipeline.execute(() => statusOf(request(upstream.url)))).toBe(200);
  });

  test('is left alone where all ask for themselves', async () => {
    const { upstream, chaos, pipeline } = await setUp({ nodeHttp: false });
    arm(chaos, { kind: 'status', status: 503, target: AT_SEARCH });
    const ask = (options: RequestOptions) => statusOf(request(upstream.url, options));
    expect(await pipeline.execute(() => ask({}))).toBe(200);
    const createConnection = () => chaos.divert();
    expect(
      await pipeline.execute(() => {
        const diverted = createConnection();
        return ask(diverted ? { createConnection: diverted } : {});
      }),
    ).toBe(503);
    expect(chaos.faults.list().faults).toMatchObject([{ injected: 1, missed: 1 }]);
  });
});
