import { getEventListeners } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { Attempt, type AttemptHost, type CallContext } from '../../src/resilience/attempt.ts';
import { currentDeadline, Deadline } from '../../src/resilience/deadline.ts';
import {
  ConsecutiveWindow,
  CountWindow,
  createWindow,
  TimeWindow,
} from '../../src/resilience/failure-window.ts';
import { LruMap } from '../../src/resilience/lru-map.ts';
import { type Expirable, ExpiryQueue } from '../../src/resilience/timeout.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';

const setUp = (more: { timeout?: number; deadline?: number; signal?: AbortSignal } = {}) => {
  const clock = new ManualClock();
  const { timeout, deadline, signal } = more;
  const timedOut = vi.fn((reason: string) => new Error(reason));
  const workEnded = vi.fn();
  const host: AttemptHost = {
    clock,
    deadline: deadline === undefined ? undefined : Deadline.after(deadline, clock),
    callerSignal: signal,
    expiry: timeout === undefined ? undefined : new ExpiryQueue(clock, timeout),
    timeout: timeout ?? Number.POSITIVE_INFINITY,
    timedOut,
    workEnded,
  };
  return { clock, attempt: new Attempt<unknown>(host, 1), timedOut, workEnded };
};

const endOf = (promise: Promise<unknown>) =>
  promise.then(
    (value) => ['answer', value],
    (error: unknown) => ['error', error instanceof Error ? error.message : error],
  );

/** Something with a `then`, whatever that is. */
const withThen = (base: object, then: unknown): object =>
  Object.assign(base, Object.fromEntries([['then', then]]));

describe('Attempt', () => {
  test('takes any value, thenables of others among them, for what it is', async () => {
    for (const value of [null, undefined, 0, 'x', {}, () => {}]) {
      expect(await setUp().attempt.run(() => value)).toBe(value);
    }
    const { attempt } = setUp();
    const late = (resolve: (value: string) => void) => resolve('late');
    const thenable = withThen({}, late);
    expect(await attempt.run(() => thenable)).toBe('late');
    const callable = withThen(() => {}, late);
    expect(await setUp().attempt.run(() => callable)).toBe('late');
    const odd = withThen({}, 'not a function');
    expect(await setUp().attempt.run(() => odd)).toBe(odd);
    const twice = withThen({}, (resolve: (value: string) => void, reject: (e: Error) => void) => {
      resolve('first');
      reject(new Error('second'));
      throw new Error('third');
    });
    const { attempt: once, workEnded } = setUp();
    expect(await once.run(() => twice)).toBe('first');
    expect(workEnded).toHaveBeenCalledTimes(1);
  });

  test('tells once that the work has ended, however it did', async () => {
    for (const work of [
      () => 'x',
      () => Promise.resolve('x'),
      () => Promise.reject(new Error('x')),
      () => {
        throw new Error('x');
      },
    ]) {
      const { attempt, workEnded } = setUp({ timeout: 100 });
      await endOf(attempt.run(work));
      expect(workEnded).toHaveBeenCalledTimes(1);
    }
  });

  test('ends at its time limit; what the work says later changes nothing but that it has ended', async () => {
    for (const late of ['resolve', 'reject'] as const) {
      const { clock, attempt, timedOut, workEnded } = setUp({ timeout: 100 });
      const work = Promise.withResolvers<string>();
      const end = endOf(attempt.run(() => work.promise));
      await clock.advance(99);
      expect(timedOut).not.toHaveBeenCalled();
      await clock.advance(1);
      expect(await end).toEqual(['error', 'attempt']);
      expect(timedOut).toHaveBeenCalledWith('attempt', 1);
      expect(workEnded).not.toHaveBeenCalled();
      work[late]('late' as never);
      await flush();
      expect(workEnded).toHaveBeenCalledTimes(1);
    }
  });

  test('ends at the deadline when that comes no later than the time limit', async () => {
    for (const [timeout, deadline, reason] of [
      [100, 50, 'deadline'],
      [100, 100, 'deadline'],
      [100, 150, 'attempt'],
      [undefined, 50, 'deadline'],
    ] as const) {
      const { clock, attempt } = setUp({ deadline, ...(timeout && { timeout }) });
      const end = endOf(attempt.run(() => new Promise(() => {})));
      await clock.advance(Math.min(timeout ?? deadline, deadline));
      expect(await end).toEqual(['error', reason]);
    }
  });

  test('a process that was blocked until both were over hears of the deadline', async () => {
    const { clock, attempt, timedOut } = setUp({ timeout: 100, deadline: 120 });
    const end = endOf(attempt.run(() => new Promise(() => {})));
    clock.jump(150);
    await clock.advance(0);
    expect(await end).toEqual(['error', 'deadline']);
    expect(timedOut).toHaveBeenCalledTimes(1);
  });

  test('leaves no timer and no listener behind when the work ends in time', async () => {
    const abort = new AbortController();
    const { clock, attempt } = setUp({ deadline: 100, signal: abort.signal });
    const work = Promise.withResolvers<string>();
    const end = attempt.run(() => work.promise);
    expect(clock.pendingTimers).toBe(1);
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
    work.resolve('x');
    await end;
    expect(clock.pendingTimers).toBe(0);
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
  });

  test('renewed, its time limit begins anew, and the deadline stays', async () => {
    const { clock, attempt } = setUp({ timeout: 100, deadline: 250 });
    let context: CallContext | undefined;
    const end = endOf(
      attempt.run((given) => {
        context = given;
        return new Promise(() => {});
      }),
    );
    await clock.advance(90);
    context?.renew();
    await clock.advance(99);
    context?.renew();
    let ended = false;
    end.then(() => {
      ended = true;
    });
    await clock.advance(60);
    expect(ended).toBe(false);
    await clock.advance(1);
    expect(await end).toEqual(['error', 'deadline']);
    // Over is over: what is left is the timer that all attempts share.
    context?.renew();
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(100);
    expect(clock.pendingTimers).toBe(0);
  });

  test('what waits for the deadline itself cannot be renewed', async () => {
    const { clock, attempt } = setUp({ deadline: 100 });
    const end = endOf(attempt.run(() => new Promise(() => {})));
    await clock.advance(50);
    attempt.renew();
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(50);
    expect(await end).toEqual(['error', 'deadline']);
  });

  test('its signal is made when it is read, and tells why it aborted, then or later', async () => {
    for (const early of [true, false]) {
      const { attempt } = setUp();
      const end = endOf(
        attempt.run((context) => {
          if (early) expect(context.signal.aborted).toBe(false);
          return new Promise(() => {});
        }),
      );
      attempt.abandon('enough');
      attempt.abandon('again');
      expect(await end).toEqual(['error', 'enough']);
      expect(attempt.signal.reason).toBe('enough');
      expect(attempt.signal).toBe(attempt.signal);
    }
    const { attempt } = setUp();
    await attempt.run(() => 'x');
    attempt.abandon('too late');
    expect(attempt.signal.aborted).toBe(false);
  });

  test('ends with its caller, also one that left while the work began', async () => {
    const abort = new AbortController();
    const { attempt } = setUp({ signal: abort.signal, timeout: 100 });
    const end = endOf(attempt.run(() => new Promise(() => {})));
    abort.abort('gone');
    expect(await end).toEqual(['error', 'gone']);
    expect(attempt.signal.reason).toBe('gone');

    const during = new AbortController();
    const { attempt: other, clock } = setUp({ signal: during.signal, timeout: 100 });
    const left = endOf(
      other.run(() => {
        during.abort('gone');
        return new Promise(() => {});
      }),
    );
    expect(await left).toEqual(['error', 'gone']);
    expect(clock.pendingTimers).toBe(0);
    expect(getEventListeners(during.signal, 'abort')).toHaveLength(0);
  });

  test('the work finds its deadline in its context and around it', async () => {
    const { attempt } = setUp({ deadline: 100 });
    await attempt.run((context) => expect(currentDeadline()).toBe(context.deadline));
    const { attempt: endless } = setUp();
    await endless.run((context) => {
      expect(context.deadline).toBe(Deadline.never);
      expect(currentDeadline()).toBeUndefined();
    });
  });
});

describe('ExpiryQueue', () => {
  const member = (onExpire: () => void = () => {}): Expirable => ({
    expiresAt: 0,
    earlier: undefined,
    later: undefined,
    queued: false,
    onExpire,
  });

  test('a member that is removed twice disturbs nobody', async () => {
    const clock = new ManualClock();
    const queue = new ExpiryQueue(clock, 100);
    const expired: string[] = [];
    const first = member(() => expired.push('first'));
    const second = member(() => expired.push('second'));
    queue.add(first, clock.now());
    queue.add(second, clock.now());
    queue.remove(first);
    queue.remove(first);
    queue.remove(member());
    await clock.advance(100);
    expect(expired).toEqual(['second']);
  });

  test('one timer serves all, and rests when nobody is left', async () => {
    const clock = new ManualClock();
    const queue = new ExpiryQueue(clock, 100);
    const first = member();
    queue.add(first, clock.now());
    await clock.advance(60);
    const second = member();
    queue.add(second, clock.now());
    queue.remove(first);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(40);
    // Woken for the first, it waits for what is left of the second.
    expect(clock.nextTimer).toBe(60);
    queue.remove(second);
    await clock.advance(60);
    expect(clock.pendingTimers).toBe(0);
  });

  test('whoever is added while another one ends gets its whole time', async () => {
    const clock = new ManualClock();
    const queue = new ExpiryQueue(clock, 100);
    const ended: number[] = [];
    const start = clock.now();
    const next = member(() => ended.push(clock.now() - start));
    queue.add(
      member(() => {
        ended.push(clock.now() - start);
        queue.add(next, clock.now());
      }),
      clock.now(),
    );
    await clock.advance(100);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(100);
    expect(ended).toEqual([100, 200]);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('failure windows', () => {
  const thresholds = { failureRate: 0.5, slowCallRate: 0.5, minimumCalls: 4 };

  test('trip at the threshold and with the least number of calls, not before', () => {
    for (const make of [
      () => new CountWindow(10, thresholds),
      () => new TimeWindow(1e6, thresholds),
    ]) {
      const failing = make();
      failing.record(true, false, 0);
      failing.record(true, false, 0);
      failing.record(false, false, 0);
      expect(failing.tripped(0)).toBe(false);
      failing.record(false, false, 0);
      expect(failing.tripped(0)).toBe(true);
      failing.record(false, false, 0);
      expect(failing.tripped(0)).toBe(false);
      const slow = make();
      for (const late of [true, true, false, false]) slow.record(false, late, 0);
      expect(slow.tripped(0)).toBe(true);
      slow.record(false, false, 0);
      expect(slow.tripped(0)).toBe(false);
    }
  });

  test('a success ends the run of failures, and slow calls are part of it when they are watched', () => {
    const watching = new ConsecutiveWindow(3, true);
    watching.record(true, true);
    watching.record(false, true);
    expect(watching.counts()).toEqual({ calls: 2, failures: 1, slow: 2 });
    watching.record(true, false);
    expect(watching.tripped()).toBe(true);
    watching.record(false, false);
    expect(watching.counts()).toEqual({ calls: 0, failures: 0, slow: 0 });
    const indifferent = new ConsecutiveWindow(3);
    indifferent.record(true, false);
    indifferent.record(false, true);
    expect(indifferent.counts()).toEqual({ calls: 0, failures: 0, slow: 0 });
  });

  test('a count window forgets exactly what falls out of it', () => {
    const window = new CountWindow(2, thresholds);
    window.record(true, false);
    window.record(false, true);
    window.record(false, false);
    expect(window.counts()).toEqual({ calls: 2, failures: 0, slow: 1 });
    window.record(false, false);
    expect(window.counts()).toEqual({ calls: 2, failures: 0, slow: 0 });
    window.reset();
    window.record(true, true);
    expect(window.counts()).toEqual({ calls: 1, failures: 1, slow: 1 });
  });

  test('a time window forgets tenth by tenth, and nothing when time goes back', () => {
    const window = new TimeWindow(1_000, thresholds);
    for (let at = 0; at < 1_000; at += 100) window.record(at < 500, at >= 500, at);
    expect(window.counts(900)).toEqual({ calls: 10, failures: 5, slow: 5 });
    expect(window.counts(0)).toEqual({ calls: 10, failures: 5, slow: 5 });
    expect(window.counts(1_000)).toEqual({ calls: 9, failures: 4, slow: 5 });
    expect(window.counts(1_499)).toEqual({ calls: 5, failures: 0, slow: 5 });
    expect(window.counts(1_899)).toEqual({ calls: 1, failures: 0, slow: 1 });
    expect(window.counts(1_900)).toEqual({ calls: 0, failures: 0, slow: 0 });
    window.record(true, false, 1_900);
    window.reset();
    window.record(true, false, 1_950);
    expect(window.counts(1_950)).toEqual({ calls: 1, failures: 1, slow: 0 });
    expect(window.counts(1e9)).toEqual({ calls: 0, failures: 0, slow: 0 });
    // What was forgotten by hand is not forgotten again when its time comes.
    const cleared = new TimeWindow(1_000, thresholds);
    cleared.record(false, false, 0);
    cleared.record(true, true, 500);
    cleared.reset();
    for (const at of [600, 1_400, 1_500, 1_600]) {
      expect(cleared.counts(at)).toEqual({ calls: 0, failures: 0, slow: 0 });
    }
  });

  test('are made as the settings ask', () => {
    const settings = {
      threshold: 2,
      size: 5,
      duration: 1_000,
      failureRate: 0.5,
      slowCallRate: 0.5,
      minimumCalls: 2,
    };
    expect(createWindow({ ...settings, window: 'consecutive' })).toBeInstanceOf(ConsecutiveWindow);
    expect(createWindow({ ...settings, window: 'count' })).toBeInstanceOf(CountWindow);
    expect(createWindow({ ...settings, window: 'time' })).toBeInstanceOf(TimeWindow);
    for (const window of ['consecutive', 'count', 'time'] as const) {
      const slowFor = (more: object) => {
        const made = createWindow({ ...settings, window, ...more });
        for (let i = 0; i < 4; i++) made.record(false, true, 0);
        return made.tripped(0);
      };
      // Without a time from which a call is slow, none is.
      expect(slowFor({})).toBe(false);
      expect(slowFor({ slowCallDuration: 100 })).toBe(true);
    }
    const many = createWindow({ ...settings, window: 'time', size: 2, minimumCalls: 3 });
    for (let i = 0; i < 2; i++) many.record(true, false, 0);
    expect(many.tripped(0)).toBe(false);
    many.record(true, false, 0);
    expect(many.tripped(0)).toBe(true);
  });
});

describe('LruMap', () => {
  test('gives eight entries a second chance, then the oldest goes whatever it is', () => {
    const full = (pinned: number) => {
      const map = new LruMap<number, boolean>(10, (value) => value);
      for (let key = 0; key < 10; key++) map.set(key, key < pinned);
      map.set(10, false);
      return Array.from({ length: 11 }, (_, key) => map.peek(key) !== undefined).indexOf(false);
    };
    expect(full(0)).toBe(0);
    expect(full(7)).toBe(7);
    expect(full(8)).toBe(8);
    expect(full(9)).toBe(8);
    expect(full(10)).toBe(8);
  });

  test('leaves the newest where it is, and finds a value that is undefined', () => {
    const map = new LruMap<string, undefined | number>(2);
    map.set('a', undefined);
    map.set('b', 1);
    expect(map.get('b')).toBe(1);
    expect(map.oldest).toMatchObject({ key: 'a' });
    expect(map.get('a')).toBeUndefined();
    expect(map.oldest).toMatchObject({ key: 'b', value: 1 });
    map.clear();
    expect([map.oldest, map.size, map.get('a'), map.get('b')]).toEqual([
      undefined,
      0,
      undefined,
      undefined,
    ]);
  });
});
