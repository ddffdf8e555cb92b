import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Bulkhead } from '../../src/resilience/bulkhead.ts';
import type { CallOptions } from '../../src/resilience/call-options.ts';
import { RateLimiter } from '../../src/resilience/rate-limiter.ts';
import { EVENT, METRIC } from '../../src/telemetry/signals.ts';
import { flush } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';
import { AT_SEARCH, arm, marked, openChaos, pipelineOf, serve } from './support.ts';

let recording: ReturnType<typeof startRecording>;
beforeEach(() => {
  recording = startRecording();
});
afterEach(() => recording.stop());

const spanMarks = () =>
  Object.fromEntries(recording.spans().map(({ name, attributes }) => [name, marked(attributes)]));

/** Reasons of the refusals, with the fault that each is laid at. */
const refusals = () =>
  recording
    .events()
    .filter(({ eventName }) => eventName === EVENT.bulkheadRejected)
    .map(({ attributes }) => [attributes?.reason, marked(attributes ?? {})]);

const decisions = async (metric: string, outcome: string) =>
  (await recording.points(metric))
    .filter(({ attributes }) => attributes.outcome === outcome)
    .map(({ attributes, value }) => [marked(attributes), value]);

/** A pipeline whose places are few, and the calls that it serves. */
const setUp = (bulkhead: { limit: number; queue?: number; maxWait?: number }) => {
  const { chaos, clock } = openChaos();
  const pipeline = pipelineOf(chaos, clock, { bulkhead });
  const call = (
    name: string,
    options: CallOptions<unknown> = {},
    work: () => unknown = () => 'x',
  ) => serve(name, () => pipeline.outcome(work, options));
  return { chaos, clock, pipeline, call };
};

describe('a bulkhead whose places a fault keeps', () => {
  verifies('chaos.marks-bulkhead', async () => {
    const { chaos, clock, call } = setUp({ limit: 1 });
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1, ttlSeconds: 10 });
    const struck = call('struck');
    await call('turned away');
    await clock.advance(10_000);
    await struck;
    await call('has room');
    // The next time it is the dependency itself.
    const real = Promise.withResolvers<unknown>();
    const slow = call('slow', {}, () => real.promise);
    await call('really turned away');
    real.resolve('x');
    await slow;

    expect(spanMarks()).toEqual({
      struck: id,
      'turned away': id,
      'has room': undefined,
      slow: undefined,
      'really turned away': undefined,
    });
    expect(refusals()).toEqual([
      ['full', id],
      ['full', undefined],
    ]);
    expect(await decisions(METRIC.bulkheadDecisions.name, 'rejected')).toEqual([
      [id, 1],
      [undefined, 1],
    ]);
  });

  test('one place is enough: with it the call would have had room', async () => {
    const { chaos, clock, call } = setUp({ limit: 3 });
    const real = Promise.withResolvers<unknown>();
    const slow = [1, 2].map((n) => call(`slow ${n}`, {}, () => real.promise));
    await flush();
    const { id } = arm(chaos, { kind: 'latency', latency: { delayMs: 500 }, target: AT_SEARCH });
    const struck = call('struck');
    await call('turned away');
    await clock.advance(500);
    await struck;
    real.resolve('x');
    await Promise.all(slow);
    expect(spanMarks()).toMatchObject({ 'turned away': id, 'slow 1': undefined });
  });

  test('those who wait in vain are marked; who gets a place is not', async () => {
    const { chaos, clock, call } = setUp({ limit: 1, queue: 2, maxWait: 1_000 });
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1, ttlSeconds: 2 });
    const struck = call('struck');
    const waits = call('waits in vain');
    await clock.advance(1_500);
    await waits;
    const patient = call('gets the place');
    await clock.advance(500);
    await Promise.all([struck, patient]);
    expect(spanMarks()).toEqual({ struck: id, 'waits in vain': id, 'gets the place': undefined });
    expect(refusals()).toEqual([['timeout', id]]);
    // Given by the struck call as it left, and not part of it. The first was taken before it met
    // the fault.
    expect(await decisions(METRIC.bulkheadDecisions.name, 'accepted')).toEqual([[undefined, 2]]);
  });

  test('who makes room for a call of more importance is marked; that one is not', async () => {
    const { chaos, clock, call } = setUp({ limit: 1, queue: 1, maxWait: 5_000 });
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1, ttlSeconds: 2 });
    const struck = call('struck');
    const background = call('shed', { priority: 'background' });
    const interactive = call('interactive');
    await background;
    await clock.advance(2_000);
    await Promise.all([struck, interactive]);
    expect(spanMarks()).toEqual({ struck: id, shed: id, interactive: undefined });
    expect(refusals()).toEqual([['shed', id]]);
  });

  test('a call that holds two places and gives one back still keeps the other', async () => {
    const { chaos, clock, pipeline, call } = setUp({ limit: 2 });
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1, ttlSeconds: 1 });
    const real = Promise.withResolvers<unknown>();
    const struck = serve('struck', () =>
      Promise.all([pipeline.outcome(() => 'x'), pipeline.outcome(() => 'x')]),
    );
    await flush();
    const slow = call('slow', {}, () => real.promise);
    await call('turned away');
    real.resolve('x');
    await clock.advance(1_000);
    await Promise.all([struck, slow]);
    expect(spanMarks()).toEqual({ struck: id, slow: undefined, 'turned away': id });
  });

  test('a struck call that has ended keeps nothing', async () => {
    const { chaos, call } = setUp({ limit: 1 });
    arm(chaos, { kind: 'connection_refused', target: AT_SEARCH, maxCount: 1 });
    await call('struck', {}, () => fetch('http://api.example/'));
    const real = Promise.withResolvers<unknown>();
    const slow = call('slow', {}, () => real.promise);
    await call('turned away');
    real.resolve('x');
    await slow;
    expect(refusals()).toEqual([['full', undefined]]);
  });

  test('its places are its own: another one is not the worse for it', async () => {
    const { chaos, clock, call } = setUp({ limit: 1 });
    const other = pipelineOf(chaos, clock, { bulkhead: { limit: 1 } }, 'weather-api');
    arm(chaos, { kind: 'hang', target: AT_SEARCH, ttlSeconds: 1 });
    const struck = call('struck');
    const real = Promise.withResolvers<unknown>();
    const slow = serve('slow', () => other.outcome(() => real.promise));
    await serve('turned away', () => other.outcome(() => 'x'));
    real.resolve('x');
    await clock.advance(1_000);
    await Promise.all([struck, slow]);
    expect(refusals()).toEqual([['full', undefined]]);
  });

  test('what it refuses because it was shut down is not laid at the fault', async () => {
    const { chaos, clock, pipeline, call } = setUp({ limit: 1, queue: 1, maxWait: 5_000 });
    arm(chaos, { kind: 'hang', target: AT_SEARCH, ttlSeconds: 1 });
    const struck = call('struck');
    const waits = call('waits');
    await flush();
    pipeline.destroy();
    await waits;
    await clock.advance(1_000);
    await struck;
    expect(refusals()).toEqual([['destroyed', undefined]]);
  });

  test('around a pipeline it is as one within', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    const bulkhead = new Bulkhead('all', { limit: 1 }, { clock });
    const call = (name: string, signal?: AbortSignal) =>
      serve(name, () =>
        bulkhead.execute(() => pipeline.outcome(() => 'x'), { signal }).catch(() => undefined),
      );
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1, ttlSeconds: 1 });
    const gone = new AbortController();
    const struck = call('struck', gone.signal);
    await flush();
    // Nobody waits for it, and it holds its place all the same.
    gone.abort();
    await struck;
    await call('turned away');
    await clock.advance(1_000);
    await call('has room');
    bulkhead.tryAcquire();
    await call('really turned away');
    bulkhead.destroy();
    expect(spanMarks()).toEqual({
      struck: id,
      'turned away': id,
      'has room': undefined,
      'really turned away': undefined,
    });
  });
});

test('what was held when fault injection ended is not held when it begins anew', async () => {
  const { chaos, clock } = openChaos();
  const pipeline = pipelineOf(chaos, clock, {});
  const bulkhead = new Bulkhead('all', { limit: 1 }, { clock });
  const call = (name: string) =>
    serve(name, () => bulkhead.execute(() => pipeline.outcome(() => 'x')).catch(() => undefined));
  arm(chaos, { kind: 'hang', target: AT_SEARCH });
  const struck = call('struck');
  await flush();
  await chaos.close();
  await struck;
  openChaos();
  bulkhead.tryAcquire();
  await call('turned away');
  bulkhead.destroy();
  expect(refusals()).toEqual([['full', undefined]]);
});

describe('a rate limiter', () => {
  test('counts calls: the retries of a struck one take nothing from the others', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {
      rateLimit: { limit: 2, interval: 60_000 },
      retry: { maxRetries: 2, baseDelay: 10, jitter: 'none', budget: false },
    });
    const call = (name: string, work: () => unknown = () => 'x') =>
      serve(name, () => pipeline.outcome(work));
    const { id } = arm(chaos, { kind: 'connection_refused', target: AT_SEARCH, maxCount: 3 });
    const struck = call('struck', () => fetch('http://api.example/'));
    for (let n = 0; n < 3; n += 1) {
      await new Promise(setImmediate);
      await clock.advance(100);
    }
    await struck;
    await call('second');
    await call('third');
    expect(spanMarks()).toMatchObject({ struck: id, second: undefined, third: undefined });
    expect(await decisions(METRIC.rateLimiterDecisions.name, 'rejected')).toEqual([[undefined, 1]]);
  });

  test('tells of a turn in the call whose turn it is, not in the one whose leaving made it', async () => {
    const { chaos, clock } = openChaos();
    const limiter = new RateLimiter(
      'all',
      { limit: 1, interval: 1_000, maxWait: 5_000 },
      { clock },
    );
    const pipeline = pipelineOf(chaos, clock, {});
    const { id } = arm(chaos, { kind: 'hang', target: AT_SEARCH, maxCount: 1 });
    limiter.tryTake();
    const abort = new AbortController();
    // In one call: struck, and in line at the same time.
    const struck = serve('struck', async () => {
      const turn = limiter.take('', { signal: abort.signal }).catch(() => undefined);
      await Promise.all([turn, pipeline.outcome(() => 'x')]);
    });
    const next = serve('next', () => limiter.take());
    await clock.advance(1_000);
    await clock.advance(1_000);
    chaos.faults.clearAll();
    await Promise.all([struck, next]);
    expect(await decisions(METRIC.rateLimiterDecisions.name, 'accepted')).toEqual([
      [undefined, 2],
      [id, 1],
    ]);
  });
});
