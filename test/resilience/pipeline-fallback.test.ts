import { getEventListeners } from 'node:events';
import { diag } from '@opentelemetry/api';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { currentDeadline, Deadline } from '../../src/resilience/deadline.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const lost = () => Promise.reject(reset());
const never = () => new Promise<never>(() => {});

const setUp = (settings: PolicySettings = {}) => {
  const clock = new ManualClock();
  return { clock, pipeline: createPipeline('up', settings, { clock }) };
};

describe('the time of a fallback', () => {
  afterEach(() => diag.disable());

  verifies('fallback.bounded', async () => {
    for (const cacheKey of [undefined, 'k']) {
      const { clock, pipeline } = setUp({ deadline: 1_000, cache: { ttl: 1_000 } });
      const options = { fallback: never, ...(cacheKey && { cacheKey }) };
      const error = reset();
      const failing = pipeline.outcome(() => Promise.reject(error), options);
      const thrown = pipeline.execute(lost, options).catch((reason: unknown) => reason);
      await clock.advance(999);
      let ended = false;
      void failing.then(() => {
        ended = true;
      });
      await flush();
      expect(ended).toBe(false);
      await clock.advance(1);
      expect(await failing).toMatchObject({
        ok: false,
        failure: { code: 'DEADLINE_EXCEEDED', cause: error },
        error: { code: 'DEADLINE_EXCEEDED', cause: error },
        attempts: 1,
      });
      expect(await thrown).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      expect(clock.pendingTimers).toBe(0);

      // The deadline ended the call itself: what needs no waiting is given all the same.
      const late = (fallback: () => string | Promise<string>) => {
        const outcome = pipeline.outcome(never, { ...options, fallback });
        return clock.advance(1_000).then(() => outcome);
      };
      const lesser = { ok: true, value: 'lesser', failure: { code: 'DEADLINE_EXCEEDED' } };
      expect(await late(() => 'lesser')).toMatchObject(lesser);
      expect(await late(async () => 'lesser')).toMatchObject(lesser);
      expect(await late(never)).toMatchObject({ failure: { code: 'DEADLINE_EXCEEDED' } });
      expect(clock.pendingTimers).toBe(0);

      // And the abort of the caller.
      const abort = new AbortController();
      const left = pipeline.outcome(lost, { ...options, signal: abort.signal });
      await flush();
      expect(clock.pendingTimers).toBe(1);
      abort.abort('gone');
      expect(await left).toMatchObject({ error: 'gone', failure: { code: 'CANCELLED' } });
      expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
      expect(clock.pendingTimers).toBe(0);
    }
  });

  test('one that comes in time, or fails, leaves neither a timer nor a listener', async () => {
    const { clock, pipeline } = setUp({ deadline: 1_000 });
    const { signal } = new AbortController();
    for (const fails of [false, true]) {
      const gate = Promise.withResolvers<string>();
      const outcome = pipeline.outcome<string>(lost, { signal, fallback: () => gate.promise });
      await clock.advance(999);
      if (fails) gate.reject(new Error('broke'));
      else gate.resolve('lesser');
      expect(await outcome).toMatchObject(
        fails ? { failure: { code: 'CONNECTION_RESET' } } : { value: 'lesser' },
      );
      expect([clock.pendingTimers, getEventListeners(signal, 'abort')]).toEqual([0, []]);
    }
  });

  test('it has what the call left of the time, and knows how much', async () => {
    const { clock, pipeline } = setUp({ deadline: 5_000 });
    const seen: (number | undefined)[] = [];
    const fallback = () => {
      seen.push(currentDeadline()?.remaining());
      return never();
    };
    const gate = Promise.withResolvers<never>();
    const outcome = pipeline.outcome(() => gate.promise, {
      fallback,
      deadline: Deadline.after(1_000, clock),
    });
    await clock.advance(600);
    gate.reject(reset());
    await clock.advance(400);
    expect(await outcome).toMatchObject({ failure: { code: 'DEADLINE_EXCEEDED' } });
    expect(seen).toEqual([400]);
    // Without a deadline it has all the time, and needs no timer.
    const { clock: endless, pipeline: patient } = setUp();
    const given = Promise.withResolvers<string>();
    const lesser = patient.outcome<string>(lost, { fallback: () => given.promise });
    await endless.advance(1e6);
    expect(endless.pendingTimers).toBe(0);
    given.resolve('lesser');
    expect(await lesser).toMatchObject({ value: 'lesser' });
  });

  test('a deadline that passes is counted once, and what comes too late disturbs nobody', async () => {
    const recording = startRecording();
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    try {
      const error = vi.fn();
      const quiet = () => {};
      diag.setLogger({ error, warn: quiet, info: quiet, debug: quiet, verbose: quiet });
      for (const keys of [[], ['a', 'b']]) {
        const { clock, pipeline } = setUp({ deadline: 1_000, cache: { ttl: 1_000 } });
        const gate = Promise.withResolvers<never>();
        const outcomes = [lost, never].map((work, index) => {
          const cacheKey = keys[index];
          const fallback = () => gate.promise;
          return pipeline.outcome(work, { fallback, ...(cacheKey && { cacheKey }) });
        });
        await clock.advance(2_000);
        gate.reject(new Error('too late'));
        await Promise.all(outcomes);
      }
      await flush();
      const counts = await recording.points('resilience.timeouts');
      expect(counts.map(({ value, attributes }) => [attributes.reason, value])).toEqual([
        ['deadline', 4],
      ]);
      expect(error).not.toHaveBeenCalled();
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off('unhandledRejection', unhandled);
      recording.stop();
    }
  });
});
