import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { sleep, systemClock } from '../../src/resilience/clock.ts';
import { Deadline } from '../../src/resilience/deadline.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Whether the timers that `work` sets keep the process alive. */
const keepsAlive = (work: () => void): boolean[] => {
  const set = vi.spyOn(globalThis, 'setTimeout');
  work();
  return set.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef());
};

describe('systemClock', () => {
  test('a timer keeps the process alive only when somebody waits for it', () => {
    const timers: { cancel(): void }[] = [];
    expect(keepsAlive(() => timers.push(systemClock.setTimer(1e6, () => {})))).toEqual([false]);
    vi.restoreAllMocks();
    expect(keepsAlive(() => timers.push(systemClock.setTimer(1e6, () => {}, true)))).toEqual([
      true,
    ]);
    vi.restoreAllMocks();
    const abort = new AbortController();
    expect(
      keepsAlive(() => {
        sleep(systemClock, 1e6, abort.signal).catch(() => {});
      }),
    ).toEqual([true]);
    abort.abort();
    for (const timer of timers) timer.cancel();
  });

  test('what never fires sets no timer at all', () => {
    expect(keepsAlive(() => systemClock.setTimer(Number.POSITIVE_INFINITY, () => {}))).toEqual([]);
  });
});

describe('sleep', () => {
  test('leaves no listener behind when it ends in time', async () => {
    const clock = new ManualClock();
    const { signal } = new AbortController();
    const asleep = sleep(clock, 100, signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await clock.advance(100);
    await asleep;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('Deadline', () => {
  test('has passed from its very moment on', async () => {
    const clock = new ManualClock();
    const deadline = Deadline.after(100, clock);
    clock.jump(99);
    expect([deadline.expired, deadline.remaining()]).toEqual([false, 1]);
    clock.jump(1);
    expect([deadline.expired, deadline.remaining()]).toEqual([true, 0]);
    clock.jump(1);
    expect([deadline.expired, deadline.remaining()]).toEqual([true, 0]);
    expect(Deadline.never.expired).toBe(false);
  });

  test('the earlier of two', () => {
    const clock = new ManualClock();
    const early = Deadline.after(1, clock);
    const late = Deadline.after(2, clock);
    expect(early.earlier(late)).toBe(early);
    expect(late.earlier(early)).toBe(early);
    expect(late.earlier(undefined)).toBe(late);
    expect(early.earlier(Deadline.after(1, clock))).toBe(early);
  });
});
