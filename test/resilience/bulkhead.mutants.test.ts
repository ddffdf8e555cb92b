import { getEventListeners } from 'node:events';
import { logs } from '@opentelemetry/api';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Bulkhead } from '../../src/resilience/bulkhead.ts';
import { Deadline } from '../../src/resilience/deadline.ts';
import { createFailure, ResilienceError } from '../../src/resilience/failure.ts';
import { orAborted, waitFor } from '../../src/resilience/or-aborted.ts';
import type { BulkheadSettings } from '../../src/resilience/policy.ts';
import { runInPlace } from '../../src/resilience/run-in-place.ts';
import { Waiter, WaitQueue } from '../../src/resilience/wait-queue.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';

const setUp = (settings: BulkheadSettings) => {
  const clock = new ManualClock();
  return { clock, bulkhead: new Bulkhead('search', settings, { clock }) };
};
const refusalOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as ResilienceError,
  );

describe('Bulkhead', () => {
  afterEach(() => logs.disable());

  test('names a setting that is wrong', () => {
    expect(() => setUp({ limit: 0 })).toThrow('bulkhead.limit must be');
    expect(() => setUp({ limit: { max: 0 } })).toThrow('bulkhead.limit.max must be');
    expect(() => setUp({ limit: 1, queue: -1 })).toThrow('bulkhead.queue must be');
  });

  test('a fixed limit takes what an adaptive one learns from, and an adaptive one may learn nothing', () => {
    const { bulkhead: fixed } = setUp({ limit: 5 });
    for (let i = 0; i < 100; i++) {
      fixed.tryAcquire();
      fixed.release(5, false);
    }
    expect(fixed.stats()).toMatchObject({ active: 0, limit: 5 });
    const { bulkhead: adaptive } = setUp({ limit: { max: 50 } });
    for (let i = 0; i < 100; i++) {
      adaptive.tryAcquire();
      adaptive.release();
    }
    expect(adaptive.stats().limit).toBe(10);
    for (let i = 0; i < 10; i++) adaptive.tryAcquire();
    for (let i = 0; i < 16; i++) {
      adaptive.release(5);
      adaptive.tryAcquire();
    }
    expect(adaptive.stats().limit).toBe(11);
  });

  test('a refusal says what happened, and is a warning', async () => {
    const told: unknown[] = [];
    logs.setGlobalLoggerProvider({
      getLogger: () => ({
        enabled: () => true,
        emit: ({ severityText, attributes }) => void told.push([severityText, attributes?.reason]),
      }),
    });
    const { bulkhead } = setUp({ limit: 1 });
    bulkhead.tryAcquire();
    const full = await refusalOf(bulkhead.acquire());
    expect(full?.failure).toMatchObject({
      code: 'BULKHEAD_FULL',
      message: 'bulkhead of "search": all places and the queue are taken',
      severity: 'transient',
      source: 'rate_limit',
      weight: 'throttled',
      delivery: 'not_sent',
      retryable: true,
    });
    bulkhead.destroy();
    expect(bulkhead.tryAcquire()).toBe(false);
    expect(bulkhead.stats().limit).toBe(0);
    const gone = await refusalOf(bulkhead.acquire());
    expect(gone?.failure).toMatchObject({
      message: 'bulkhead of "search": it was shut down',
      retryable: false,
    });
    expect(told).toEqual([
      ['WARN', 'full'],
      ['WARN', 'destroyed'],
    ]);
  });

  test('destroyed while it is idle, it takes nobody in', () => {
    const { bulkhead } = setUp({ limit: 5 });
    bulkhead.destroy();
    expect(bulkhead.tryAcquire()).toBe(false);
    bulkhead.setLimit(5);
    expect(bulkhead.tryAcquire()).toBe(false);
  });

  test('a place that comes free at the deadline is in time, a moment later it is not', async () => {
    for (const [late, message] of [
      [0, undefined],
      [1, 'bulkhead of "search": no place came free in time'],
    ] as const) {
      const { clock, bulkhead } = setUp({ limit: 1, queue: 1 });
      bulkhead.tryAcquire();
      const waiting = refusalOf(bulkhead.acquire({ deadline: Deadline.after(100, clock) }));
      clock.jump(100 + late);
      bulkhead.release();
      expect((await waiting)?.message).toBe(message);
      expect(bulkhead.stats().active).toBe(late === 0 ? 1 : 0);
    }
  });
});

describe('Waiter', () => {
  const setUpLine = () => {
    const clock = new ManualClock();
    const queue = new WaitQueue();
    const owner = { expired: vi.fn(), cancelled: vi.fn() };
    return { clock, queue, owner };
  };

  test('without an end it needs no timer', () => {
    const { clock, queue, owner } = setUpLine();
    new Waiter(queue, owner, clock, 0, Number.POSITIVE_INFINITY, {});
    expect([clock.pendingTimers, queue.length]).toEqual([0, 1]);
  });

  test('ends once, whatever is said to it afterwards', async () => {
    const { clock, queue, owner } = setUpLine();
    const abort = new AbortController();
    const waiter = new Waiter(queue, owner, clock, 0, 10_000, { signal: abort.signal });
    waiter.grant();
    waiter.refuse(new Error('too late'));
    abort.abort();
    await waiter.promise;
    expect(queue.length).toBe(0);
    expect(owner.cancelled).not.toHaveBeenCalled();
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
  });
});

describe('runInPlace', () => {
  const run = async (work: (clock: ManualClock, abort: AbortController) => unknown) => {
    const clock = new ManualClock();
    const abort = new AbortController();
    const release = vi.fn();
    const running = runInPlace({ release }, () => work(clock, abort), abort.signal, clock);
    await running.catch(() => {});
    await flush();
    return release.mock.calls;
  };
  const failing = (error: unknown) => (clock: ManualClock) => {
    clock.jump(30);
    throw error;
  };

  test('tells an adaptive limit what it can learn from, and nothing else', async () => {
    expect(await run((clock) => clock.jump(30))).toEqual([[30, false]]);
    const timeout = new ResilienceError(createFailure('TIMEOUT'));
    expect(await run(failing(timeout))).toEqual([[30, true]]);
    expect(await run(failing({ status: 429 }))).toEqual([[30, true]]);
    // A refusal of our own, a fault of the caller's, an error: none of them tells of the capacity.
    const full = new ResilienceError(createFailure('BULKHEAD_FULL'));
    for (const error of [full, { status: 404 }, { status: 500 }]) {
      expect(await run(failing(error))).toEqual([[]]);
    }
    const abandoned = (clock: ManualClock, abort: AbortController) => {
      clock.jump(30);
      abort.abort();
    };
    expect(await run(abandoned)).toEqual([[]]);
  });
});

describe('orAborted', () => {
  test('is the work, or the reason at once, and leaves no listener behind', async () => {
    const { signal } = new AbortController();
    expect(await orAborted(Promise.resolve('up'), signal)).toBe('up');
    await expect(orAborted(Promise.reject(new Error('down')), signal)).rejects.toThrow('down');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);

    const abort = new AbortController();
    const told = vi.fn();
    const waiting = waitFor(new Promise(() => {}), abort.signal, told).promise;
    expect(told).not.toHaveBeenCalled();
    abort.abort('gone');
    await expect(waiting).rejects.toBe('gone');
    expect(told.mock.calls).toEqual([[true, 'gone']]);
    await expect(orAborted(new Promise(() => {}), AbortSignal.abort('before'))).rejects.toBe(
      'before',
    );
  });
});
