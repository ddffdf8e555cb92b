import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MAX_TIMER_DELAY, sleep, systemClock } from '../../src/resilience/clock.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { runNode, source } from '../fixtures/run-node.ts';
import { verifies } from '../fixtures/verifies.ts';

describe('systemClock', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  verifies('clock.long-timers', () => {
    const fired = vi.fn();
    systemClock.setTimer(30 * 86_400_000, fired);
    vi.advanceTimersByTime(MAX_TIMER_DELAY);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(30 * 86_400_000 - MAX_TIMER_DELAY - 1);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('cancel works in every slice, before and after firing, and twice', () => {
    const fired = vi.fn();
    const timer = systemClock.setTimer(MAX_TIMER_DELAY * 2, fired);
    vi.advanceTimersByTime(MAX_TIMER_DELAY + 1);
    timer.cancel();
    timer.cancel();
    expect(vi.getTimerCount()).toBe(0);
    const short = systemClock.setTimer(-5, fired);
    vi.advanceTimersByTime(1);
    short.cancel();
    expect(fired).toHaveBeenCalledTimes(1);
  });

  test('Infinity never fires and NaN is refused', () => {
    systemClock.setTimer(Number.POSITIVE_INFINITY, () => {}).cancel();
    expect(vi.getTimerCount()).toBe(0);
    expect(() => systemClock.setTimer(Number.NaN, () => {})).toThrow('delay must be a number');
  });
});

describe('timers and the process', () => {
  verifies('clock.unreferenced', async () => {
    const { code, stdout } = await runNode(`
      import { systemClock } from '${source('resilience/clock.ts')}';
      systemClock.setTimer(3_600_000, () => {});
      process.on('exit', () => console.log('left'));
    `);
    expect([code, stdout]).toEqual([0, 'left\n']);
  });

  test('a process does not end in the middle of a backoff that its caller waits for', async () => {
    const { code, stdout } = await runNode(`
      import { createPipeline } from '${source('resilience/pipeline.ts')}';
      const pipeline = createPipeline('x', { retry: { baseDelay: 20, jitter: 'none' } });
      let calls = 0;
      const flaky = () => { if (++calls < 3) throw new Error('flaky'); return 'up'; };
      console.log(await pipeline.execute(flaky));
    `);
    expect([code, stdout]).toEqual([0, 'up\n']);
  });
});

describe('sleep', () => {
  test('ends on time, or at once with the reason of the abort, and leaves nothing behind', async () => {
    const clock = new ManualClock();
    const { signal } = new AbortController();
    const add = vi.spyOn(signal, 'addEventListener');
    const remove = vi.spyOn(signal, 'removeEventListener');
    const done = sleep(clock, 100, signal).then(() => clock.now());
    const start = clock.now();
    await clock.advance(100);
    expect((await done) - start).toBe(100);
    expect([add.mock.calls.length, remove.mock.calls.length]).toEqual([1, 1]);

    const controller = new AbortController();
    const asleep = sleep(clock, 100, controller.signal);
    controller.abort('enough');
    await expect(asleep).rejects.toBe('enough');
    await expect(sleep(clock, 100, AbortSignal.abort('before'))).rejects.toBe('before');
    expect(clock.pendingTimers).toBe(0);
  });
});
