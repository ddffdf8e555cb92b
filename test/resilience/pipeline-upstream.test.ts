import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { trace } from '@opentelemetry/api';
import { afterEach, describe, expect, test } from 'vitest';
import type { CallContext } from '../../src/resilience/attempt.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
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

describe('a pipeline around a child process', () => {
  verifies('L27', async () => {
    const clock = new ManualClock();
    const settings = { breaker: { threshold: 2, openDuration: 1_000 }, timeout: 30_000 } as const;
    const pipeline = createPipeline('child', settings, { clock });
    const spawned: ChildProcess[] = [];
    let child: ChildProcess | undefined;
    let mayStart = true;
    const connect = (): ChildProcess => {
      if (child && child.exitCode === null && child.signalCode === null) return child;
      if (!mayStart) throw Object.assign(new Error('spawn echo'), { code: 'ECONNREFUSED' });
      child = spawn(process.execPath, ['-e', 'process.stdin.pipe(process.stdout)'], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      spawned.push(child);
      return child;
    };
    const ping = () =>
      new Promise<string>((resolve, reject) => {
        const { stdin, stdout } = connect();
        stdin?.once('error', reject);
        stdout?.once('data', (chunk) => resolve(String(chunk)));
        stdout?.once('close', () => reject(Object.assign(new Error('gone'), { code: 'EPIPE' })));
        stdin?.write('ping');
      });

    expect(await pipeline.execute(ping)).toBe('ping');
    mayStart = false;
    const gone = new Promise((resolve) => child?.once('close', resolve));
    child?.kill('SIGKILL');
    await gone;
    for (let i = 0; i < 2; i++) {
      await expect(pipeline.execute(ping)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    }
    await expect(pipeline.execute(ping)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' });
    await clock.advance(1_000);
    mayStart = true;
    expect(await pipeline.execute(ping)).toBe('ping');
    expect([pipeline.breaker?.state, spawned.length]).toEqual(['closed', 2]);
    child?.kill('SIGKILL');
    pipeline.destroy();
  });
});
