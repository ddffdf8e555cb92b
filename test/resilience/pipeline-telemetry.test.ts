import { AsyncResource } from 'node:async_hooks';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PipelineOptions } from '../../src/resilience/call-options.ts';
import type { Clock } from '../../src/resilience/clock.ts';
import { createFailure } from '../../src/resilience/failure.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { runNode, source } from '../fixtures/run-node.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const lost = () => Promise.reject(reset());

describe('telemetry of a pipeline', () => {
  let recording: ReturnType<typeof startRecording>;
  beforeEach(() => {
    recording = startRecording();
  });
  afterEach(() => recording.stop());

  const setUp = (settings: PolicySettings) => {
    const clock = new ManualClock();
    const pipeline = createPipeline('db', settings, { clock, random: () => 0 });
    const call = async (work: () => unknown, ms = 0) => {
      const outcome = pipeline.outcome(work);
      await clock.advance(ms);
      return outcome;
    };
    return { clock, pipeline, call };
  };

  /** The points of a metric as `attribute=value …: number`, without the dependency. */
  const read = async (name: string) =>
    (await recording.points(name)).map(({ attributes, value }) => {
      expect(attributes['resilience.dependency']).toBe('db');
      const rest = Object.entries(attributes).filter(([key]) => key !== 'resilience.dependency');
      return `${rest.map(([key, text]) => `${key}=${text}`).join(' ')}: ${value}`;
    });

  verifies('pipeline.telemetry', async () => {
    const { clock, pipeline, call } = setUp({
      timeout: 100,
      breaker: { threshold: 2, openDuration: 1_000 },
      retry: { maxRetries: 1, baseDelay: 10 },
      rateLimit: { limit: 6, interval: 10_000 },
      bulkhead: { limit: 1 },
      cache: { ttl: 1_000 },
    });
    await call(() => 'up');
    await call(() => Promise.reject({ status: 404 }));
    await call(lost, 20);
    await call(() => new Promise(() => {}), 300); // hangs twice, holds its place for ever
    await call(() => 'refused: no place left');
    await pipeline.outcome(() => 'x', { cacheKey: 'k', fallback: () => 'lesser' });
    await call(() => 'refused: no tokens left');

    expect(await read('resilience.circuit_breaker.calls')).toEqual([
      'outcome=success: 1',
      'outcome=ignored: 1',
      'outcome=failure: 2',
    ]);
    expect(await read('resilience.circuit_breaker.transitions')).toEqual([
      'from=closed to=open: 1',
    ]);
    expect(await read('resilience.circuit_breaker.state')).toEqual([
      'state=closed: 0',
      'state=open: 1',
      'state=half-open: 0',
      'state=isolated: 0',
    ]);
    expect(await read('resilience.retry.attempts')).toEqual(['outcome=failure: 2']);
    expect(await read('resilience.timeouts')).toEqual(['reason=attempt: 2']);
    expect(await read('resilience.rate_limiter.decisions')).toEqual([
      'outcome=accepted: 6',
      'outcome=rejected: 1',
    ]);
    expect(await read('resilience.bulkhead.decisions')).toEqual([
      'outcome=accepted: 4',
      'outcome=rejected: 2',
    ]);
    expect(await read('resilience.bulkhead.active')).toEqual([': 1']);
    expect(await read('resilience.bulkhead.limit')).toEqual([': 1']);
    expect(await read('resilience.cache.requests')).toEqual(['outcome=miss: 1']);
    expect(await read('resilience.fallbacks')).toEqual(['reason=BULKHEAD_FULL: 1']);

    await clock.advance(1_000);
    pipeline.breaker?.recordSuccess();
    const [recovery] = await recording.points('resilience.circuit_breaker.recovery.duration');
    expect(recovery).toMatchObject({ value: 1 });
    expect(recovery?.sum).toBeCloseTo(1.1, 5);
  });

  test('an idle breaker is to be seen before its first call', async () => {
    const { pipeline } = setUp({ breaker: {} });
    expect(await read('resilience.circuit_breaker.state')).toContain('state=closed: 1');
    pipeline.destroy();
  });

  verifies('B04', async () => {
    const { clock, call } = setUp({ breaker: { threshold: 1, openDuration: 1_000 } });
    await call(lost);
    expect(await read('resilience.circuit_breaker.state')).toContain('state=open: 1');
    // No traffic, and the event loop too busy for timers: the reader still sees it.
    clock.jump(1_000);
    expect(await read('resilience.circuit_breaker.state')).toContain('state=half-open: 1');
  });

  test('the events stand on the active span and in the log, and a failure that was retried is no error', async () => {
    const { clock, pipeline } = setUp({ retry: { maxRetries: 2, baseDelay: 10 } });
    let calls = 0;
    const tracer = trace.getTracer('test');
    const answer = tracer.startActiveSpan('tools/call db', async (span) => {
      const value = await pipeline.execute(async () => {
        tracer.startSpan(`GET ${++calls}`).end();
        if (calls < 3) throw reset();
        return 'up';
      });
      span.end();
      return value;
    });
    await clock.advance(100);
    expect(await answer).toBe('up');
    const spans = recording.spans();
    const root = spans.find((span) => span.name === 'tools/call db');
    expect(root?.status.code).toBe(0);
    expect(
      root?.events.map((event) => [event.name, event.attributes?.['resilience.attempt']]),
    ).toEqual([
      ['resilience.retry.scheduled', 2],
      ['resilience.retry.scheduled', 3],
    ]);
    const parents = Object.fromEntries(
      spans.map((span) => [
        span.name,
        spans.find((other) => other.spanContext().spanId === span.parentSpanContext?.spanId)?.name,
      ]),
    );
    expect(parents).toEqual({
      'tools/call db': undefined,
      'GET 1': 'tools/call db',
      'attempt 2': 'tools/call db',
      'GET 2': 'attempt 2',
      'attempt 3': 'tools/call db',
      'GET 3': 'attempt 3',
    });
    expect(spans.find((span) => span.name === 'attempt 2')?.attributes).toEqual({
      'resilience.dependency': 'db',
      'resilience.attempt': 2,
      'resilience.failure.code': 'CONNECTION_RESET',
    });
    expect(recording.events()).toEqual(
      [2, 3].map((attempt) => ({
        eventName: 'resilience.retry.scheduled',
        attributes: {
          'resilience.dependency': 'db',
          'resilience.attempt': attempt,
          'resilience.delay': 0,
          'resilience.failure.code': 'CONNECTION_RESET',
        },
      })),
    );
  });

  test('each policy tells what it did', async () => {
    const { clock, pipeline, call } = setUp({
      timeout: 100,
      breaker: { threshold: 1, openDuration: 1_000 },
      cache: { ttl: 10, staleIfError: 1_000 },
      hedge: { delay: 10 },
    });
    await pipeline.outcome(() => 'up', { cacheKey: 'k' });
    await clock.advance(20);
    await pipeline.outcome(lost, { cacheKey: 'k' });
    await pipeline.outcome(lost, { fallback: () => 'lesser' });
    await clock.advance(1_000);
    let attempt = 0;
    await call(() => (++attempt === 1 ? new Promise(() => {}) : 'hedged'), 50);
    await call(() => new Promise(() => {}), 200);
    const names = recording.events().map(({ eventName, attributes }) => {
      const { from, to } = attributes as { from?: string; to?: string };
      return from ? `${eventName} ${from}>${to}` : eventName;
    });
    expect(names.map((name) => name?.replace('resilience.', ''))).toEqual([
      'circuit_breaker.state_changed closed>open',
      'cache.stale_served',
      'circuit_breaker.rejected',
      'fallback.used',
      'circuit_breaker.state_changed open>half-open',
      'hedge.won',
      'circuit_breaker.state_changed half-open>closed',
      'timeout.exceeded',
      'timeout.exceeded',
      'circuit_breaker.state_changed closed>open',
    ]);
    expect(await read('resilience.hedges')).toEqual(['outcome=won: 1', 'outcome=lost: 1']);
    expect(await read('resilience.cache.requests')).toEqual([
      'outcome=miss: 2',
      'outcome=stale: 1',
    ]);
  });
});

describe('telemetry of a pipeline, to the point', () => {
  let recording: ReturnType<typeof startRecording>;
  beforeEach(() => {
    recording = startRecording();
  });
  afterEach(() => recording.stop());

  /** A clock whose timers run in the context in which they were set, as those of Node do. */
  const setUp = (settings: PolicySettings, options: PipelineOptions = {}) => {
    const clock = new ManualClock();
    const timers: Clock = {
      now: () => clock.now(),
      wallTime: () => clock.wallTime(),
      setTimer: (delay, callback) => clock.setTimer(delay, AsyncResource.bind(callback)),
    };
    const env = { random: () => 0, ...options, clock: timers };
    return { clock, pipeline: createPipeline('db', settings, env) };
  };
  const hang = () => new Promise<never>(() => {});
  const count = async (name: string) =>
    Object.fromEntries(
      (await recording.points(name)).map(({ attributes, value }) => [
        attributes.outcome ?? attributes.reason,
        value,
      ]),
    );
  /** Makes the call as the only thing that happens within a span of this name. */
  const within = <T>(name: string, call: () => Promise<T>): Promise<T> =>
    trace.getTracer('test').startActiveSpan(name, async (span) => {
      try {
        return await call();
      } finally {
        span.end();
      }
    });
  const eventsOf = (name: string) =>
    recording
      .spans()
      .filter((span) => span.name === name)
      .flatMap((span) => span.events.map((event) => event.name.replace('resilience.', '')));

  test('a timeout is told on the span of the call that it ends', async () => {
    const { clock, pipeline } = setUp({ timeout: 100, retry: { maxRetries: 1 } });
    await within('quick', () => pipeline.execute(async () => 'up'));
    await clock.advance(50);
    const slow = within('slow', () => pipeline.execute(hang)).catch(() => {});
    await clock.advance(1_000);
    await slow;
    expect(eventsOf('quick')).toEqual([]);
    expect(eventsOf('slow')).toEqual(['timeout.exceeded', 'retry.scheduled', 'timeout.exceeded']);
    const span = recording.spans().find(({ name }) => name === 'slow');
    expect(recording.traceIds('resilience.timeout.exceeded')).toEqual([
      span?.spanContext().traceId,
      span?.spanContext().traceId,
    ]);
  });

  test('background work that makes room is told so on its own span', async () => {
    const { clock, pipeline } = setUp({ bulkhead: { limit: 1, queue: 1 } });
    void pipeline.outcome(hang);
    const options = { priority: 'background' } as const;
    const shed = within('shed', () => pipeline.outcome(hang, options));
    const winner = new AbortController();
    const won = within('won', () => pipeline.outcome(hang, { signal: winner.signal }));
    await shed;
    winner.abort();
    await won;
    await clock.advance(1);
    expect([eventsOf('shed'), eventsOf('won')]).toEqual([['bulkhead.rejected'], []]);
  });

  test('a call has one deadline, however many attempts it ends', async () => {
    const { clock, pipeline } = setUp({ deadline: 100, hedge: { delay: 10 } });
    const outcome = pipeline.outcome(hang);
    await clock.advance(100);
    expect(await outcome).toMatchObject({ ok: false, failure: { code: 'DEADLINE_EXCEEDED' } });
    expect(await count('resilience.timeouts')).toEqual({ deadline: 1 });
  });

  test('a timeout names the attempt that took too long', async () => {
    const { clock, pipeline } = setUp({ timeout: 100, hedge: { delay: 60 } });
    void pipeline.outcome(hang);
    await clock.advance(200);
    const attempts = recording
      .events()
      .map(({ attributes }) => (attributes as Record<string, unknown>)['resilience.attempt']);
    expect(attempts).toEqual([1, 2]);
  });

  test('a retry that the caller cancelled or a hedge made needless is no failure', async () => {
    const { clock, pipeline } = setUp({
      retry: { maxRetries: 1, baseDelay: 0 },
      hedge: { delay: 50 },
    });
    const controller = new AbortController();
    const cancelled = pipeline.outcome(({ attempt }) => (attempt === 1 ? lost() : hang()), {
      signal: controller.signal,
    });
    await clock.advance(10);
    controller.abort();
    expect(await cancelled).toMatchObject({ failure: { code: 'CANCELLED' }, attempts: 2 });
    expect(await count('resilience.retry.attempts')).toEqual({});
    const hedged = pipeline.outcome(({ attempt }) => {
      if (attempt === 1) return lost();
      return attempt === 2 ? hang() : 'hedged';
    });
    await clock.advance(100);
    expect(await hedged).toMatchObject({ value: 'hedged', attempts: 3 });
    expect(await count('resilience.retry.attempts')).toEqual({});
  });

  test.each(['onStart', 'onEnd'] as const)(
    'a span processor that throws in %s changes no answer',
    async (hook) => {
      const { clock, pipeline } = setUp({ retry: { baseDelay: 0 } });
      recording.stop();
      const throwing = (span: { name: string }) => {
        if (span.name.startsWith('attempt')) throw new Error('a processor broke');
      };
      const nothing = async () => {};
      const processor = { onStart() {}, onEnd() {}, forceFlush: nothing, shutdown: nothing };
      const provider = new TracerProvider({ spanProcessors: [{ ...processor, [hook]: throwing }] });
      trace.setGlobalTracerProvider(provider);
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
      const answer = within('call', () =>
        pipeline.execute(({ attempt }) => (attempt === 1 ? lost() : 'up')),
      );
      await clock.advance(10);
      expect(await answer).toBe('up');
    },
  );

  test('codes of an upstream do not make series without end', async () => {
    const { pipeline } = setUp({});
    for (let call = 0; call < 150; call++) {
      const failure = { ...createFailure('UPSTREAM_ERROR'), code: `MADE_UP_${call}` };
      const error = { code: -32000, message: 'x', data: { 'mcp-resilience/failure': failure } };
      await pipeline.outcome(() => Promise.reject(error), { fallback: () => 'lesser' });
    }
    const points = await recording.points('resilience.fallbacks');
    expect(points.length).toBeLessThanOrEqual(101);
    expect(points.find(({ attributes }) => attributes.reason === '_other')?.value).toBeGreaterThan(
      40,
    );
  });
});

describe('without an SDK', () => {
  verifies('pipeline.no-sdk', async () => {
    const { code, stdout, stderr } = await runNode(`
      import { createPipeline } from '${source('resilience/pipeline.ts')}';
      import { instruments } from '${source('telemetry/instruments.ts')}';
      const pipeline = createPipeline('db', { timeout: 50, retry: { baseDelay: 1 }, breaker: {}, bulkhead: { limit: 1 } });
      let calls = 0;
      const flaky = () => { if (++calls < 3) throw new Error('flaky'); return 'up'; };
      console.log(await pipeline.execute(flaky), calls, instruments().enabled);
      // Registered later: what was made before reports to it.
      const { MeterProvider, MetricReader } = await import('@opentelemetry/sdk-metrics');
      const { metrics } = await import('@opentelemetry/api');
      class Reader extends MetricReader { async onForceFlush() {} async onShutdown() {} }
      const reader = new Reader();
      metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
      await pipeline.execute(() => 'up');
      const { resourceMetrics } = await reader.collect();
      const names = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics.map((metric) => metric.descriptor.name));
      console.log(instruments().enabled, names.sort().join(' '));
    `);
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toEqual([
      'up 3 false',
      'true resilience.bulkhead.active resilience.bulkhead.decisions resilience.bulkhead.limit resilience.bulkhead.oldest_wait resilience.bulkhead.queued resilience.circuit_breaker.calls resilience.circuit_breaker.state',
      '',
    ]);
    expect(code).toBe(0);
  });
});
