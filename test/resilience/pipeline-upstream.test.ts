import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { trace } from '@opentelemetry/api';
import { afterEach, describe, expect, test } from 'vitest';
import type { CallContext } from '../../src/resilience/attempt.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

describe('a pipeline around fetch to a real upstream', () => {
  let server: Server | undefined;
  const listen = async (listener: RequestListener) => {
    server = createServer(listener).listen(0, '127.0.0.1');
    await new Promise((resolve) => server?.once('listening', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  const get =
    (url: string) =>
    async ({ signal }: CallContext) => {
      const response = await fetch(url, { signal });
      if (!response.ok) throw response;
      return response.text();
    };

  verifies('R03', async () => {
    const recording = startRecording();
    try {
      let requests = 0;
      const url = await listen((request, response) => {
        if (++requests < 3) request.socket.destroy();
        else response.end('up');
      });
      const pipeline = createPipeline('up', { retry: { maxRetries: 3, baseDelay: 1 } });
      const answer = await trace.getTracer('test').startActiveSpan('call', async (span) => {
        const text = await pipeline.execute(get(url));
        span.end();
        return text;
      });
      expect([answer, requests]).toEqual(['up', 3]);
      const attempts = recording
        .spans()
        .map((span) => [span.name, span.attributes['resilience.attempt']]);
      expect(attempts).toEqual([
        ['attempt 2', 2],
        ['attempt 3', 3],
        ['call', undefined],
      ]);
    } finally {
      recording.stop();
    }
  });

  test('a timeout aborts the request, and the upstream sees it go', async () => {
    const gone = Promise.withResolvers<void>();
    const url = await listen((request) => request.on('close', () => gone.resolve()));
    const pipeline = createPipeline('up', { timeout: 50 });
    await expect(pipeline.execute(get(url))).rejects.toMatchObject({ code: 'TIMEOUT' });
    await gone.promise;
  });

  test('three hanging calls open the breaker, and the fourth makes no request', async () => {
    let requests = 0;
    const url = await listen(() => void requests++);
    const pipeline = createPipeline('up', { timeout: 20, breaker: { threshold: 3 } });
    for (let i = 0; i < 3; i++) {
      await expect(pipeline.execute(get(url))).rejects.toMatchObject({ code: 'TIMEOUT' });
    }
    await expect(pipeline.execute(get(url))).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' });
    expect(requests).toBe(3);
    pipeline.destroy();
  });
});
