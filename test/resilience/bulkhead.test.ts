import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { Bulkhead } from '../../src/resilience/bulkhead.ts';
import { Deadline } from '../../src/resilience/deadline.ts';
import { ResilienceError } from '../../src/resilience/failure.ts';
import type { BulkheadSettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const made: Bulkhead[] = [];
const setUp = (settings: BulkheadSettings) => {
  const clock = new ManualClock();
  const bulkhead = new Bulkhead('search', settings, { clock });
  made.push(bulkhead);
  return { clock, bulkhead };
};

afterEach(() => {
  for (const bulkhead of made.splice(0)) bulkhead.destroy();
});

const refusalOf = async (promise: Promise<unknown>): Promise<ResilienceError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ResilienceError);
  return error as ResilienceError;
};

describe('places', () => {
  test('as many as the limit, first in first out beyond', async () => {
    const { bulkhead } = setUp({ limit: 2, queue: 10 });
    expect([1, 2, 3].map(() => bulkhead.tryAcquire())).toEqual([true, true, false]);
    const order: number[] = [];
    for (const id of [1, 2, 3]) bulkhead.acquire().then(() => order.push(id));
    bulkhead.release();
    bulkhead.release();
    expect(bulkhead.tryAcquire()).toBe(false);
    bulkhead.release();
    await flush();
    expect(order).toEqual([1, 2, 3]);
    expect(bulkhead.stats()).toMatchObject({ active: 2, queued: 0, accepted: 5 });
  });

  verifies('bulkhead.bounded-wait', async () => {
    const { clock, bulkhead } = setUp({ limit: 1, queue: 2, maxWait: 1_000 });
    expect(bulkhead.tryAcquire()).toBe(true);
    const soon = bulkhead.acquire({ deadline: Deadline.after(300, clock) });
    const later = bulkhead.acquire();
    const full = await refusalOf(bulkhead.acquire());
    expect(full).toMatchObject({ code: 'BULKHEAD_FULL' });
    expect(full.failure).toMatchObject({
      weight: 'throttled',
      delivery: 'not_sent',
      suggestion: expect.any(String),
      fallbackHint: expect.any(String),
    });
    const ends: string[] = [];
    soon.catch(() => ends.push(`deadline at ${clock.now() - 1_000}`));
    later.catch(() => ends.push(`maxWait at ${clock.now() - 1_000}`));
    await clock.advance(299);
    expect(bulkhead.stats()).toMatchObject({ queued: 2, oldestWait: 299 });
    await clock.advance(1_000);
    expect(ends).toEqual(['deadline at 300', 'maxWait at 1000']);
    expect(bulkhead.stats()).toMatchObject({ active: 1, queued: 0, oldestWait: 0, rejected: 3 });
    expect(clock.pendingTimers).toBe(0);
    const none = setUp({ limit: 1, queue: 5, maxWait: 0 }).bulkhead;
    none.tryAcquire();
    expect(await refusalOf(none.acquire())).toMatchObject({ code: 'BULKHEAD_FULL' });
  });

  test('who could not wait at all takes no place in line, not for a moment', () => {
    const passed = (clock: ManualClock) => new Deadline(clock.now(), clock);
    for (const [maxWait, late] of [
      [0, false],
      [0, true],
      [1_000, true],
    ] as const) {
      const { clock, bulkhead } = setUp({ limit: 1, queue: 5, maxWait });
      bulkhead.tryAcquire();
      const refused = bulkhead.acquire(late ? { deadline: passed(clock) } : {});
      refused.catch(() => {});
      expect(bulkhead.stats()).toMatchObject({ active: 1, queued: 0, rejected: 1 });
      expect(clock.pendingTimers).toBe(0);
    }
    // With time on both sides it waits.
    const { clock, bulkhead } = setUp({ limit: 1, queue: 5, maxWait: 1_000 });
    bulkhead.tryAcquire();
    bulkhead.acquire({ deadline: Deadline.after(1, clock) }).catch(() => {});
    expect(bulkhead.stats()).toMatchObject({ queued: 1 });
  });

  test('a place that comes free after the deadline goes to the next in line', async () => {
    const { clock, bulkhead } = setUp({ limit: 1, queue: 5 });
    bulkhead.tryAcquire();
    const dead = refusalOf(bulkhead.acquire({ deadline: Deadline.after(100, clock) }));
    const next = bulkhead.acquire();
    clock.jump(200);
    bulkhead.release();
    await next;
    expect((await dead).code).toBe('BULKHEAD_FULL');
    expect(bulkhead.stats()).toMatchObject({ active: 1, queued: 0 });
  });

  verifies('bulkhead.interactive-first', async () => {
    const { bulkhead } = setUp({ limit: 1, queue: 3 });
    bulkhead.tryAcquire();
    const order: string[] = [];
    const wait = (name: string, priority: 'interactive' | 'background') =>
      void bulkhead.acquire({ priority }).then(
        () => order.push(name),
        (error) => order.push(`${name}: ${error.message}`),
      );
    wait('old background', 'background');
    wait('new background', 'background');
    wait('first', 'interactive');
    wait('second', 'interactive');
    wait('too late', 'background');
    await flush();
    const shed = 'bulkhead of "search": background work made room for an interactive call';
    expect(order).toEqual([
      `new background: ${shed}`,
      'too late: bulkhead of "search": all places and the queue are taken',
    ]);
    for (let ended = 0; ended < 3; ended += 1) bulkhead.release();
    await flush();
    expect(order.slice(2)).toEqual(['first', 'second', 'old background']);
  });

  test('background work leaves a fifth of the places free', () => {
    const { bulkhead } = setUp({ limit: 10 });
    let background = 0;
    while (bulkhead.tryAcquire('background')) background += 1;
    expect(background).toBe(8);
    expect([1, 2, 3].map(() => bulkhead.tryAcquire())).toEqual([true, true, false]);
  });

  verifies('bulkhead.grant-and-abort', async () => {
    const { clock, bulkhead } = setUp({ limit: 1, queue: 5, maxWait: 100 });
    bulkhead.tryAcquire();
    const abort = new AbortController();
    const waiting = bulkhead.acquire({ signal: abort.signal });
    bulkhead.release();
    abort.abort(new Error('too late'));
    // Granted first: the caller has the place, and is not told otherwise.
    await waiting;
    expect(bulkhead.stats()).toMatchObject({ active: 1, queued: 0, cancelled: 0 });
    const leaving = bulkhead.acquire({ signal: AbortSignal.abort('gone') });
    await expect(leaving).rejects.toBe('gone');
    // The other way round, and at the very tick of the timeout.
    const second = new AbortController();
    const aborted = bulkhead.acquire({ signal: second.signal });
    second.abort('first');
    bulkhead.release();
    await expect(aborted).rejects.toBe('first');
    bulkhead.tryAcquire();
    const timedOut = refusalOf(bulkhead.acquire());
    await clock.advance(100);
    bulkhead.release();
    expect((await timedOut).message).toContain('in time');
    expect(bulkhead.stats()).toMatchObject({ active: 0, queued: 0, cancelled: 2 });
    // execute starts no work for a caller that left in the moment of the grant.
    bulkhead.tryAcquire();
    const third = new AbortController();
    let ran = false;
    const executed = bulkhead.execute(() => (ran = true), { signal: third.signal });
    bulkhead.release();
    third.abort('at the grant');
    await expect(executed).rejects.toBe('at the grant');
    expect(ran).toBe(false);
    expect(bulkhead.stats().active).toBe(0);
  });

  test('however the wait ends, it leaves no listener on the signal', async () => {
    const { clock, bulkhead } = setUp({ limit: 1, queue: 5, maxWait: 100 });
    const { signal } = new AbortController();
    bulkhead.tryAcquire();
    const granted = bulkhead.acquire({ signal });
    const timedOut = refusalOf(bulkhead.acquire({ signal }));
    expect(getEventListeners(signal, 'abort')).toHaveLength(2);
    bulkhead.release();
    await granted;
    await clock.advance(100);
    await timedOut;
    bulkhead.release();
    await bulkhead.execute(() => 1, { signal });
    await flush();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('the limit can be changed while calls run', async () => {
    const { bulkhead } = setUp({ limit: 3, queue: 10 });
    for (let call = 0; call < 3; call += 1) bulkhead.tryAcquire();
    const order: number[] = [];
    for (const id of [1, 2]) bulkhead.acquire().then(() => order.push(id));
    bulkhead.setLimit(4);
    await flush();
    expect(order).toEqual([1]);
    bulkhead.setLimit(1);
    bulkhead.release();
    bulkhead.release();
    bulkhead.release();
    await flush();
    expect(order).toEqual([1]);
    bulkhead.release();
    await flush();
    expect(order).toEqual([1, 2]);
    expect(() => bulkhead.setLimit(0)).toThrow(/bulkhead\.limit must be a whole number from 1/);
    expect(() => setUp({ limit: { min: 5, max: 4 } })).toThrow(
      'bulkhead.limit.max must be at least bulkhead.limit.min (5), got 4',
    );
    expect(() => setUp({ limit: { max: 0 } })).toThrow(/bulkhead\.limit\.max/);
  });

  test('destroyed, it refuses those in line and all that come; work that runs may end', async () => {
    const { clock, bulkhead } = setUp({ limit: 1, queue: 5 });
    bulkhead.tryAcquire();
    const waiting = refusalOf(bulkhead.acquire());
    bulkhead.destroy();
    bulkhead.destroy();
    expect((await waiting).failure.retryable).toBe(false);
    expect(bulkhead.tryAcquire()).toBe(false);
    expect((await refusalOf(bulkhead.acquire())).message).toContain('shut down');
    bulkhead.setLimit(5);
    bulkhead.release();
    expect(bulkhead.tryAcquire()).toBe(false);
    expect(bulkhead.stats()).toMatchObject({ active: 0, queued: 0 });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('execute', () => {
  verifies('M22', async () => {
    const { bulkhead } = setUp({ limit: 1, queue: 5 });
    const rejects = () => Promise.reject(new Error('asynchronous'));
    const throws = () => {
      throw new Error('synchronous');
    };
    for (let round = 0; round < 3; round += 1) {
      await expect(bulkhead.execute(rejects)).rejects.toThrow('asynchronous');
      await expect(bulkhead.execute(throws)).rejects.toThrow('synchronous');
    }
    expect(await bulkhead.execute(() => undefined)).toBeUndefined();
    expect(bulkhead.stats()).toMatchObject({ active: 0, queued: 0, accepted: 7 });
  });

  verifies('bulkhead.execute-holds', async () => {
    const { bulkhead } = setUp({ limit: 1, queue: 5 });
    const abort = new AbortController();
    const work = Promise.withResolvers<void>();
    let seen: AbortSignal | undefined;
    const call = bulkhead.execute(
      (signal) => {
        seen = signal;
        return work.promise;
      },
      { signal: abort.signal },
    );
    await flush();
    abort.abort('the user left');
    await expect(call).rejects.toBe('the user left');
    expect(seen?.aborted).toBe(true);
    expect(bulkhead.stats().active).toBe(1);
    work.reject(new Error('nobody hears this'));
    await flush();
    expect(bulkhead.stats().active).toBe(0);
  });

  test('an abort while the work starts is heard at once too', async () => {
    const { bulkhead } = setUp({ limit: 1 });
    const abort = new AbortController();
    const call = bulkhead.execute(
      () => {
        abort.abort('the user left');
        return new Promise(() => {});
      },
      { signal: abort.signal },
    );
    await expect(call).rejects.toBe('the user left');
    expect(bulkhead.stats().active).toBe(1);
  });

  test('adaptive: learns from work that ended and from overload, not from other errors', async () => {
    const { clock, bulkhead } = setUp({ limit: { min: 1, max: 50, initial: 10 }, queue: 100 });
    const run = async (calls: number, work: () => Promise<unknown>) => {
      for (let call = 0; call < calls; call += 10) {
        const batch = Array.from({ length: 10 }, () => bulkhead.execute(work).catch(() => {}));
        while (bulkhead.stats().active > 0) await clock.advance(20);
        await Promise.all(batch);
      }
    };
    const wait = () => new Promise((resolve) => clock.setTimer(20, () => resolve(1)));
    await run(200, wait);
    const grown = bulkhead.stats().limit;
    expect(grown).toBeGreaterThan(10);
    await run(200, () => Promise.reject(new TypeError('a bug')));
    expect(bulkhead.stats().limit).toBe(grown);
    await run(400, () =>
      wait().then(() => Promise.reject(new DOMException('slow', 'TimeoutError'))),
    );
    expect(bulkhead.stats().limit).toBeLessThan(5);
  });
});
