import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createTelemetry, DEFAULT_FLUSH_TIMEOUT } from '../../src/telemetry/lifecycle.ts';
import { closedPort, OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { runToEnd, sourceUrl, startNode } from '../fixtures/telemetry-child.ts';
import { verifies } from '../fixtures/verifies.ts';

/** No limit but ours can end an export in the time that a test has. */
const PATIENT = {
  OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
  OTEL_BSP_EXPORT_TIMEOUT: '600000',
  OTEL_BLRP_EXPORT_TIMEOUT: '600000',
  OTEL_METRIC_EXPORT_INTERVAL: '600000',
  OTEL_METRIC_EXPORT_TIMEOUT: '600000',
};
/** Spans and events leave as soon as they are there. */
const AT_ONCE = { OTEL_BSP_SCHEDULE_DELAY: '1', OTEL_BLRP_SCHEDULE_DELAY: '1' };

const START = `
  import { emitEvent, instruments, tracer } from '${sourceUrl('telemetry/instruments.ts')}';
  import { startTelemetry } from '${sourceUrl('telemetry/start.ts')}';
  const telemetry = startTelemetry();
  const emitEverything = () => {
    tracer().startSpan('a span').end();
    emitEvent('resilience.hedge.won', 'info', {});
    instruments().hedges.add(1);
  };
  emitEverything();
`;

let blackHole: OtlpReceiver;
beforeEach(async () => {
  blackHole = await OtlpReceiver.start('black hole');
});
afterEach(() => blackHole.stop());

describe('a collector that does not answer', () => {
  /** A server as ours: it ends when told, and nothing but itself may keep it from that. */
  const server = `${START}
    import { createServer } from 'node:net';
    const listening = createServer().listen(0, '127.0.0.1', () => console.log('serving'));
    process.once('SIGTERM', async () => {
      emitEverything();
      listening.close();
      process.exitCode = 3;
      await telemetry.shutdown();
      console.log('shut down');
    });
  `;

  verifies('O01', async () => {
    const endpoints = [blackHole.url, await closedPort()];
    const ends = await Promise.all(
      endpoints.map(async (url) => {
        const child = startNode(server, {
          env: { ...PATIENT, ...AT_ONCE, OTEL_EXPORTER_OTLP_ENDPOINT: url },
        });
        await child.said('serving');
        if (url === blackHole.url) await blackHole.waitFor(() => blackHole.held > 0, 'an export');
        child.process.kill('SIGTERM');
        return child.ended;
      }),
    );
    for (const end of ends) {
      expect(end).toMatchObject({ code: 3, signal: null, stdout: 'serving\nshut down\n' });
      // What could not be sent is said once, and was not waited for.
      expect(end.stderr).toMatch(/^.* \d+ batches unanswered at shutdown were dropped\n$/);
    }
  });

  const showHolders = `
    const held = process.getActiveResourcesInfo().filter((type) => /Timeout|TCP/.test(type));
    console.log('held by', JSON.stringify(held));
  `;

  verifies('telemetry.natural-exit', async () => {
    const child = startNode(
      `${START}
        const working = setInterval(() => {}, 60_000);
        process.once('SIGUSR2', () => {
          clearInterval(working);
          ${showHolders}
        });
        console.log('working');
      `,
      { env: { ...PATIENT, ...AT_ONCE, OTEL_EXPORTER_OTLP_ENDPOINT: blackHole.url } },
    );
    await child.said('working');
    await blackHole.waitFor(() => blackHole.held === 2, 'the export of a span and of an event');
    child.process.kill('SIGUSR2');
    expect(await child.ended).toMatchObject({ code: 0, signal: null });
    expect(child.output.stdout).toBe('working\nheld by []\n');
  });

  test('nor do a flush that was cut short, and what it retries', async () => {
    for (const url of [blackHole.url, await closedPort()]) {
      const end = await runToEnd(`${START} await telemetry.flush(); ${showHolders}`, {
        env: { ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: url },
      });
      expect(end).toMatchObject({ code: 0, signal: null, stdout: 'held by []\n' });
    }
    expect(blackHole.requests.length).toBeGreaterThan(0);
  });

  test('nor does a connection that was used before', async () => {
    const receiver = await OtlpReceiver.start();
    const child = startNode(
      `${START}
        await telemetry.flush();
        const working = setInterval(() => {}, 60_000);
        process.once('SIGUSR2', async () => {
          clearInterval(working);
          emitEverything();
          await telemetry.flush();
          ${showHolders}
        });
        console.log('flushed');
      `,
      { env: { ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } },
    );
    await child.said('flushed');
    receiver.mode = 'black hole';
    child.process.kill('SIGUSR2');
    expect(await child.ended).toMatchObject({ code: 0, stdout: 'flushed\nheld by []\n' });
    expect(receiver.connections).toBeLessThan(receiver.requests.length);
    await receiver.stop();
  });

  test('after shutdown no connection is left, though the process goes on', async () => {
    const child = startNode(
      `${START}
        setInterval(() => {}, 60_000);
        await telemetry.shutdown();
        console.log('shut down');
      `,
      { env: { ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: blackHole.url } },
    );
    await child.said('shut down');
    await blackHole.waitFor(() => blackHole.held === 0, 'the connections to be closed');
    expect(blackHole.requests.length).toBeGreaterThan(0);
    child.process.kill();
    await child.ended;
  });
});

describe('the end of telemetry', () => {
  const settings = { exporting: true, destination: '', flushTimeout: DEFAULT_FLUSH_TIMEOUT };
  const never = () => new Promise<never>(() => {});
  const metrics = { resourceMetrics: { scopeMetrics: [] }, errors: [] };

  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  verifies('telemetry.bounded-end', async () => {
    expect(DEFAULT_FLUSH_TIMEOUT).toBeLessThan(2_000);

    const abandon = vi.fn();
    const end = vi.fn(never);
    const hanging = createTelemetry(
      { collect: async () => metrics, flush: never, end, abandon },
      settings,
    );
    const flushed = hanging.flush();
    await vi.advanceTimersByTimeAsync(DEFAULT_FLUSH_TIMEOUT);
    await flushed;
    expect(abandon).not.toHaveBeenCalled();

    const first = hanging.shutdown();
    expect(hanging.shutdown()).toBe(first);
    await vi.advanceTimersByTimeAsync(DEFAULT_FLUSH_TIMEOUT);
    await first;
    await hanging.flush();
    expect(end).toHaveBeenCalledTimes(1);
    expect(abandon).toHaveBeenCalledTimes(1);
  });

  test('metrics that cannot be read any more do not stop it', async () => {
    const end = vi.fn(async () => {});
    const telemetry = createTelemetry(
      { collect: never, flush: never, end, abandon: () => {} },
      settings,
    );
    const done = telemetry.shutdown();
    expect(end).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(DEFAULT_FLUSH_TIMEOUT);
    await done;
    await telemetry.snapshot();
  });

  test('failures are not passed on', async () => {
    const fail = async () => {
      throw new Error('no');
    };
    const failing = createTelemetry(
      { collect: fail, flush: fail, end: fail, abandon: () => {} },
      settings,
    );
    expect((await failing.snapshot()).value('anything')).toBeUndefined();
    await failing.flush();
    await failing.shutdown();
    expect(vi.getTimerCount()).toBe(0);
  });
});
