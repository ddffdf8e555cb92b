import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { type ChildOptions, runToEnd, sourceUrl, startNode } from '../fixtures/telemetry-child.ts';
import { verifies } from '../fixtures/verifies.ts';

let receiver: OtlpReceiver;
let options: ChildOptions;
beforeEach(async () => {
  receiver = await OtlpReceiver.start();
  options = {
    nodeArgs: ['--import', sourceUrl('telemetry/register.ts')],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_SERVICE_NAME: 'app' },
  };
});
afterEach(() => receiver.stop());

const SPAN = `
  import { trace } from '@opentelemetry/api';
  trace.getTracer('app').startSpan('a span').end();
`;
const names = () => receiver.spans().map(({ name }) => name);

describe('an application under --import', () => {
  verifies('telemetry.short-run', async () => {
    const end = await runToEnd(`${SPAN} process.exitCode = 5;`, options);
    expect(end).toEqual({ code: 5, signal: null, stdout: '', stderr: '' });
    expect(names()).toEqual(['a span']);
    expect(receiver.spans()[0]?.resource).toMatchObject({ 'service.name': 'app' });
    expect(receiver.spans()[0]?.resource).not.toHaveProperty('service.version');
  });

  verifies('telemetry.imports-instrumented', async () => {
    const end = await runToEnd(
      `
        import express from 'express';
        import { createServer, get } from 'node:http';
        const app = express().get('/hello/:name', (request, response) => response.send('hello'));
        const server = createServer(app).listen(0, '127.0.0.1', async () => {
          await (await fetch('http://127.0.0.1:' + server.address().port + '/hello/you')).text();
          server.close();
        });
      `,
      options,
    );
    expect(end).toMatchObject({ code: 0, stderr: '' });
    const scopes = receiver.spans().map(({ scope }) => scope.replace('@opentelemetry/', ''));
    expect([...new Set(scopes)].sort()).toEqual([
      'instrumentation-express',
      'instrumentation-http',
      'instrumentation-undici',
    ]);
    expect(names()).toContain('GET /hello/:name');
  });

  const waiting = `${SPAN}
    setInterval(() => {}, 60_000);
  `;

  verifies('telemetry.signal-kept', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const child = startNode(`${waiting} console.log('waiting');`, options);
      await child.said('waiting');
      child.process.kill(signal);
      expect(await child.ended).toEqual({ code: null, signal, stdout: 'waiting\n', stderr: '' });
    }
    expect(names()).toEqual(['a span', 'a span']);

    const handling = startNode(
      `${waiting}
        process.once('SIGTERM', () => console.log('handled'));
        process.once('SIGUSR2', () => process.exit(9));
        console.log('waiting');
      `,
      options,
    );
    await handling.said('waiting');
    handling.process.kill('SIGTERM');
    await handling.said('handled');
    await receiver.waitFor(() => names().length === 3, 'the span of the third run');
    expect(handling.process.exitCode).toBeNull();
    handling.process.kill('SIGUSR2');
    expect((await handling.ended).code).toBe(9);
  });

  test('a collector that never answers does not keep it from its end', async () => {
    const blackHole = await OtlpReceiver.start('black hole');
    const patient = { OTEL_EXPORTER_OTLP_TIMEOUT: '600000', OTEL_BSP_EXPORT_TIMEOUT: '600000' };
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: blackHole.url, ...patient };
    const run = startNode(`${SPAN} console.log('done');`, { ...options, env });
    const told = startNode(`${waiting} console.log('waiting');`, { ...options, env });
    await told.said('waiting');
    told.process.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: 0, signal: null });
    expect(await told.ended).toMatchObject({ code: null, signal: 'SIGTERM' });
    expect(blackHole.requests.length).toBeGreaterThan(0);
    await blackHole.stop();
  });

  test('with nothing to export it is left alone', async () => {
    const end = await runToEnd(
      `${SPAN} console.log(process.listenerCount('SIGTERM'), process.listenerCount('SIGINT'));`,
      { ...options, env: {} },
    );
    expect(end).toEqual({ code: 0, signal: null, stdout: '0 0\n', stderr: '' });
  });
});
