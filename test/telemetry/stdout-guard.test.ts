import { describe, expect, test } from 'vitest';
import { runToEnd, sourceUrl, startNode } from '../fixtures/telemetry-child.ts';
import { verifies } from '../fixtures/verifies.ts';

const GUARD = `
  const { guardStdout } = await import('${sourceUrl('telemetry/stdout-guard.ts')}');
  const stdout = guardStdout();
`;
const START = `
  const { startTelemetry } = await import('${sourceUrl('telemetry/start.ts')}');
  const { emitEvent, instruments, tracer } = await import('${sourceUrl('telemetry/instruments.ts')}');
  const telemetry = startTelemetry();
`;

describe('the guard of stdout', () => {
  verifies('telemetry.stdout-guard', async () => {
    const end = await runToEnd(`${GUARD}
      import { Readable } from 'node:stream';
      import { finished } from 'node:stream/promises';
      import { Worker } from 'node:worker_threads';
      for (const method of ['log', 'info', 'debug', 'dir', 'table', 'error', 'warn', 'trace']) {
        console[method]('noise of console.' + method);
      }
      process.stdout.write('noise of write\\n');
      const piped = Readable.from(['noise of a pipe\\n']);
      piped.pipe(process.stdout, { end: false });
      await finished(piped);
      const worker = new Worker('console.log("noise of a worker")', { eval: true });
      await new Promise((resolve) => worker.once('exit', resolve));

      stdout.write('{"jsonrpc":"2.0","id":1}\\n');
      stdout.write(Buffer.from('{"jsonrpc":"2.0","id":2}\\n'), () => console.log('written'));
      if (guardStdout() !== stdout) throw new Error('guarded twice');
    `);
    expect(end.stdout).toBe('{"jsonrpc":"2.0","id":1}\n{"jsonrpc":"2.0","id":2}\n');
    const noise = ['console.log', 'console.debug', 'write', 'a pipe', 'a worker'];
    for (const origin of noise) expect(end.stderr).toContain(`noise of ${origin}`);
    expect(end.stderr).toContain('written');
    expect(end.code).toBe(0);
  });

  verifies('telemetry.diag-stderr', async () => {
    const levels = ['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all'];
    const ends = await Promise.all(
      levels.map((OTEL_LOG_LEVEL) =>
        runToEnd(
          `${GUARD}${START}
            tracer().startActiveSpan('a span', (span) => {
              emitEvent('resilience.hedge.won', 'info', {});
              span.end();
            });
            instruments().hedges.add(1);
            await telemetry.shutdown();
            stdout.write('{"jsonrpc":"2.0"}\\n');
          `,
          {
            env: {
              OTEL_LOG_LEVEL,
              OTEL_TRACES_EXPORTER: 'console',
              OTEL_METRICS_EXPORTER: 'console',
              OTEL_LOGS_EXPORTER: 'console',
            },
          },
        ),
      ),
    );
    for (const [index, end] of ends.entries()) {
      expect(end.stdout, levels[index]).toBe('{"jsonrpc":"2.0"}\n');
      expect(end.stderr).toContain('a span');
      expect(end.stderr).toContain('resilience.hedges');
      expect(end.stderr).toContain('resilience.hedge.won');
      expect(end.code).toBe(0);
    }
    expect(ends.at(-2)?.stderr).toContain('telemetry debug');
  });

  test('without the guard, diagnostics alone still stay off stdout', async () => {
    const end = await runToEnd(`${START} await telemetry.shutdown();`, {
      env: { OTEL_LOG_LEVEL: 'all', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
    });
    expect(end.stdout).toBe('');
    expect(end.stderr).toContain('telemetry debug');
  });

  test('what was written is out before process.exit()', async () => {
    const end = await runToEnd(`${GUARD}
      for (let i = 0; i < 3; i++) stdout.write('x'.repeat(10_000) + '\\n');
      process.exit(0);
    `);
    expect(end.stdout).toHaveLength(30_003);
  });

  test('a peer that went away is an error event of the stream', async () => {
    const child = startNode(`${GUARD}
      stdout.on('error', (error) => {
        console.log('broken:', error.code);
        process.exit(7);
      });
      const write = () => stdout.write('message\\n', () => setImmediate(write));
      write();
    `);
    await child.said('message');
    child.process.stdout?.destroy();
    const end = await child.ended;
    expect(end.stderr).toContain('broken: EPIPE');
    expect(end.code).toBe(7);
  });
});
