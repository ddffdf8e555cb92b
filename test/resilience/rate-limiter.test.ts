import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/resilience/clock.ts';
import { Deadline } from '../../src/resilience/deadline.ts';
import { ResilienceError } from '../../src/resilience/failure.ts';
import type { RateLimitSettings } from '../../src/resilience/policy.ts';
import { RateLimiter } from '../../src/resilience/rate-limiter.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const setUp = (settings: RateLimitSettings) => {
  const clock = new ManualClock();
  return { clock, limiter: new RateLimiter('weather', settings, { clock }) };
};

const refused = async (promise: Promise<void>): Promise<ResilienceError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ResilienceError);
  return error as ResilienceError;
};

/** Rates as people set them, and as nobody should. */
const rates = fc.record({
  limit: fc.integer({ min: 1, max: 1_000 }),
  interval: fc.oneof(
    fc.integer({ min: 1, max: 100_000 }),
    fc.double({ min: 1, max: 1e6, noNaN: true }),
  ),
  burst: fc.integer({ min: 1, max: 50 }),
});

describe('tryTake', () => {
  verifies('limiter.exact-retry-after', () => {
    const steps = fc.array(fc.double({ min: 0, max: 1e5, noNaN: true }), { maxLength: 20 });
    const uptime = fc.double({ min: 0, max: 1e11, noNaN: true });
    fc.assert(
      fc.property(rates, steps, uptime, (rate, pauses, start) => {
        const { limiter } = setUp(rate);
        let now = start;
        for (const pause of [0, ...pauses]) {
          now += pause;
          let wait = 0;
          for (let calls = 0; calls <= rate.burst && wait === 0; calls += 1) {
            wait = limiter.tryTake('', now);
          }
          expect(wait).toBeGreaterThan(0);
          // One token comes in interval / limit, give or take what the clock can tell apart.
          const grain = (now + wait) * 2 * Number.EPSILON;
          expect(wait).toBeLessThanOrEqual(rate.interval / rate.limit + grain);
          const early = now + wait - Math.max(grain * 2, wait * 1e-6);
          if (early > now) expect(limiter.tryTake('', early)).toBeGreaterThan(0);
          now += wait;
          expect(limiter.tryTake('', now)).toBe(0);
          expect(limiter.tryTake('', now)).toBeGreaterThanOrEqual(0);
          // The same in seconds, as errors tell it.
          const { retryAfter = 0 } = limiter.refusal(wait).failure;
          expect(retryAfter * 1_000).toBeGreaterThanOrEqual(wait);
          expect(retryAfter).toBeCloseTo(wait / 1_000, 9);
        }
      }),
    );
  });

  test('a wait that rounding would cut short is rounded up', () => {
    // 1 + EPSILON - EPSILON / 2 is a tie, and so is the sum: both would be rounded down to 1.
    const { limiter } = setUp({ limit: 1, interval: 1 + Number.EPSILON });
    limiter.tryTake('', 0);
    const now = Number.EPSILON / 2;
    expect(limiter.tryTake('', now + limiter.tryTake('', now))).toBe(0);
    // In seconds too: 1000 / 63 ms are not 1000 times a thousandth of that.
    const wait = 1_000 / 63;
    expect((wait / 1_000) * 1_000).toBeLessThan(wait);
    expect(limiter.refusal(wait).failure.retryAfter).toBeGreaterThan(wait / 1_000);
  });

  verifies('limiter.never-over', () => {
    const steps = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 30 }), fc.double({ min: 0, max: 2_000, noNaN: true })),
      { minLength: 1, maxLength: 60 },
    );
    fc.assert(
      fc.property(rates, steps, (rate, bursts) => {
        const { limiter } = setUp(rate);
        const accepted: number[] = [];
        let now = 0;
        for (const [calls, pause] of bursts) {
          for (let call = 0; call < calls; call += 1) {
            if (limiter.tryTake('', now) === 0) accepted.push(now);
          }
          now += pause;
        }
        for (let first = 0; first < accepted.length; first += 1) {
          for (let last = first; last < accepted.length; last += 1) {
            const span = (accepted[last] ?? 0) - (accepted[first] ?? 0);
            const allowed = rate.burst + (span * rate.limit) / rate.interval;
            expect(last - first + 1).toBeLessThanOrEqual(allowed + 1e-6);
          }
        }
      }),
    );
  });

  verifies('limiter.no-drift', () => {
    // 3 per second is a third of a second per token: the sum of a million of them must not show.
    const { limiter } = setUp({ limit: 3, interval: 1_000, burst: 1 });
    const start = 123.456;
    let now = start;
    let refusedThough = 0;
    for (let taken = 0; taken < 1_000_000; taken += 1) {
      if (limiter.tryTake('', now) > 0) refusedThough += 1;
      now += limiter.tryTake('', now);
    }
    expect(refusedThough).toBe(0);
    expect(Math.abs(now - (start + 1_000_000_000 / 3))).toBeLessThan(0.05);

    // Kept busy without a pause, the bucket itself does not drift at all.
    const { limiter: busy } = setUp({ limit: 3, interval: 1_000, burst: 3 });
    let accepted = 0;
    for (let at = 0; at <= 3_000_000; at += 250) if (busy.tryTake('', at) === 0) accepted += 1;
    expect(accepted).toBe(3 + 3 * 3_000);
  });

  verifies('L20', () => {
    const { limiter } = setUp({ limit: 2, interval: 60_000 });
    expect(limiter.tryTake()).toBe(0);
    expect(limiter.tryTake()).toBe(0);
    for (let asked = 0; asked < 200; asked += 1) expect(limiter.tryTake()).toBe(30_000);
    expect(limiter.stats()).toMatchObject({ accepted: 2 });
    expect(limiter.available()).toBe(0);
  });

  test('an idle time of years fills the bucket once', () => {
    const { limiter } = setUp({ limit: 5, interval: 1_000 });
    for (const now of [0, 1e12, 1e15]) {
      let taken = 0;
      while (limiter.tryTake('', now) === 0) taken += 1;
      expect(taken).toBe(5);
    }
  });

  test('a clock that goes back gives nothing and takes nothing', () => {
    const { limiter } = setUp({ limit: 1, interval: 1_000 });
    expect(limiter.tryTake('', 5_000)).toBe(0);
    expect(limiter.tryTake('', 4_000)).toBe(1_000);
    expect(limiter.tryTake('', 6_000)).toBe(0);
  });

  verifies('limiter.keys-bounded', () => {
    const { limiter } = setUp({ limit: 1, interval: 1_000, maxKeys: 3 });
    expect(['a', 'b', 'c', 'a'].map((key) => limiter.tryTake(key))).toEqual([0, 0, 0, 1_000]);
    expect(limiter.tryTake('d')).toBe(0);
    expect(limiter.stats().keys).toBe(3);
    // b was used least recently: forgotten, and full again. a was not.
    expect(limiter.available('b')).toBe(1);
    expect(limiter.tryTake('a')).toBe(1_000);
    for (let key = 0; key < 10_000; key += 1) limiter.tryTake(`client ${key}`);
    expect(limiter.stats().keys).toBe(3);
  });

  test('a key that somebody waits for is not forgotten', async () => {
    const { clock, limiter } = setUp({ limit: 1, interval: 1_000, maxWait: 5_000, maxKeys: 2 });
    await limiter.take('a');
    const waiting = limiter.take('a');
    for (const key of ['b', 'c', 'd', 'e']) limiter.tryTake(key);
    expect(limiter.tryTake('a')).toBe(2_000);
    await clock.advance(1_000);
    await waiting;
  });

  test('available tells what may be taken at once', () => {
    fc.assert(
      fc.property(
        rates,
        fc.nat(60),
        fc.double({ min: 0, max: 1e5, noNaN: true }),
        (rate, calls, pause) => {
          const { clock, limiter } = setUp(rate);
          for (let call = 0; call < calls; call += 1) limiter.tryTake();
          clock.jump(pause);
          const available = limiter.available();
          let taken = 0;
          while (limiter.tryTake() === 0) taken += 1;
          expect(available).toBe(taken);
        },
      ),
    );
  });

  test.each([
    [{ limit: 0 }, /rateLimit\.limit must be a whole number from 1/],
    [{ limit: 1, burst: 1.5 }, /rateLimit\.burst/],
    [{ limit: 1, maxWait: Number.NaN }, /rateLimit\.maxWait/],
  ])('refuses the settings %j', (settings, message) => {
    expect(() => new RateLimiter('x', settings)).toThrow(RangeError);
    expect(() => new RateLimiter('x', settings)).toThrow(message);
  });
});

describe('take', () => {
  verifies('L11', async () => {
    // The report: 200 tasks, 10 per second, at most 1 s of waiting.
    const { clock, limiter } = setUp({ limit: 10, interval: 1_000, maxWait: 1_000 });
    const ends: string[] = [];
    const abort = new AbortController();
    for (let task = 0; task < 200; task += 1) {
      limiter.take('', task === 12 ? { signal: abort.signal } : {}).then(
        () => ends.push(`granted at ${clock.now() - 1_000}`),
        (error) =>
          ends.push(
            error instanceof ResilienceError ? `refused, ${error.failure.retryAfter} s` : error,
          ),
      );
    }
    await flush();
    // 10 at once, 10 wait, and the rest hears at once when it would fit.
    expect(ends.filter((end) => end === 'granted at 0')).toHaveLength(10);
    expect(ends.filter((end) => end === 'refused, 1.1 s')).toHaveLength(180);
    // The third in line leaves: those behind it move up, and there is room for one more.
    abort.abort('changed my mind');
    await flush();
    expect(ends.at(-1)).toBe('changed my mind');
    let last = '';
    limiter.take().then(() => {
      last = `granted at ${clock.now() - 1_000}`;
    });
    await clock.advance(1_000);
    const granted = [100, 200, 300, 400, 500, 600, 700, 800, 900].map((at) => `granted at ${at}`);
    expect(ends.slice(-9)).toEqual(granted);
    expect(last).toBe('granted at 1000');
    expect(clock.pendingTimers).toBe(0);
    expect(limiter.stats()).toEqual({ accepted: 20, rejected: 180, keys: 1 });
  });

  test('a refusal has the code, the weight and the exact wait', async () => {
    const { limiter } = setUp({ limit: 3, interval: 1_000, burst: 1 });
    await limiter.take();
    const error = await refused(limiter.take());
    expect(error.code).toBe('RATE_LIMIT_EXCEEDED');
    expect(error.message).toContain('"weather"');
    expect(error.failure).toMatchObject({
      weight: 'throttled',
      delivery: 'not_sent',
      retryable: true,
      suggestion: expect.stringContaining('fewer calls'),
      fallbackHint: expect.any(String),
    });
    expect(error.failure.retryAfter).toBeCloseTo(1 / 3, 12);
  });

  test('a turn beyond the deadline is refused at once', async () => {
    const { clock, limiter } = setUp({ limit: 1, interval: 1_000, maxWait: 60_000 });
    await limiter.take();
    const error = await refused(limiter.take('', { deadline: Deadline.after(999, clock) }));
    expect(error.failure.retryAfter).toBe(1);
    const inTime = limiter.take('', { deadline: Deadline.after(1_000, clock) });
    await clock.advance(1_000);
    await inTime;
    expect(clock.pendingTimers).toBe(0);
  });

  test('a blocked process neither lets a crowd through nor serves who is past its deadline', async () => {
    const { clock, limiter } = setUp({ limit: 10, interval: 1_000, burst: 1, maxWait: 1_000 });
    await limiter.take();
    const dead = limiter.take('', { deadline: Deadline.after(500, clock) });
    const rest = Array.from({ length: 5 }, () => limiter.take());
    const all = Promise.allSettled([dead, ...rest]);
    clock.jump(10_000);
    await clock.advance(0);
    await clock.advance(1_000);
    const [late, ...others] = await all;
    expect(late).toMatchObject({ status: 'rejected', reason: { code: 'RATE_LIMIT_EXCEEDED' } });
    // One token is all that such a bucket holds; the others have waited long enough.
    expect(others.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a crowd past its deadline is turned away without a deep stack', async () => {
    const { clock, limiter } = setUp({ limit: 1_000_000, interval: 1_000, maxWait: 60_000 });
    while (limiter.tryTake() === 0);
    const deadline = Deadline.after(100, clock);
    const crowd = Array.from({ length: 20_000 }, () => limiter.take('', { deadline }));
    const ends = Promise.allSettled(crowd);
    clock.jump(1_000);
    limiter.take();
    await clock.advance(0);
    expect((await ends).every(({ status }) => status === 'rejected')).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  test('an abort ends the wait at once with its reason, and one before takes nothing', async () => {
    const { clock, limiter } = setUp({ limit: 1, interval: 1_000, maxWait: 60_000 });
    const reason = new Error('the user left');
    await expect(limiter.take('', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(limiter.available()).toBe(1);
    await limiter.take();
    const abort = new AbortController();
    const waiting = limiter.take('', { signal: abort.signal });
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(clock.pendingTimers).toBe(0);
    expect(limiter.tryTake()).toBe(1_000);
  });

  test('nobody overtakes those who wait', async () => {
    const { clock, limiter } = setUp({ limit: 1, interval: 1_000, maxWait: 60_000 });
    await limiter.take();
    const waiting = limiter.take();
    // The token is there, the timer has not fired yet.
    clock.jump(1_000);
    expect(limiter.tryTake()).toBe(1_000);
    await clock.advance(0);
    await waiting;
  });

  verifies('limiter.background-last', async () => {
    const { clock, limiter } = setUp({ limit: 10, interval: 1_000, maxWait: 5_000 });
    const takeAll = (priority: 'background' | 'interactive') => {
      let taken = 0;
      while (limiter.tryTake('', clock.now(), priority) === 0) taken += 1;
      return taken;
    };
    expect(takeAll('background')).toBe(8);
    expect(limiter.tryTake('', clock.now(), 'background')).toBe(100);
    expect(takeAll('interactive')).toBe(2);
    const order: string[] = [];
    const background = limiter.take('', { priority: 'background' }).then(() => order.push('b'));
    const interactive = limiter.take().then(() => order.push('i'));
    await clock.advance(100);
    expect(order).toEqual(['i']);
    // Then it still leaves the reserve of two to whoever may come.
    await clock.advance(299);
    expect(order).toEqual(['i']);
    await clock.advance(1);
    expect(order).toEqual(['i', 'b']);
    await Promise.all([background, interactive]);
  });

  test('timers that fire early, as those of the platform do, let nobody through early', async () => {
    const manual = new ManualClock();
    const early: Clock = {
      now: () => manual.now(),
      wallTime: () => manual.wallTime(),
      setTimer: (delay, callback) => manual.setTimer(Math.max(0.1, delay - 0.9), callback),
    };
    const limiter = new RateLimiter(
      'weather',
      { limit: 1, interval: 100, maxWait: 200 },
      { clock: early },
    );
    await limiter.take();
    const granted: number[] = [];
    const waiting = [1, 2].map(() => limiter.take().then(() => granted.push(manual.now() - 1_000)));
    await manual.advance(300);
    await Promise.all(waiting);
    expect(granted[0]).toBeGreaterThanOrEqual(100);
    expect(granted[0]).toBeLessThan(101);
    expect(granted[1]).toBeGreaterThanOrEqual(200);
    expect(granted[1]).toBeLessThan(202);
    expect(manual.pendingTimers).toBe(0);
  });
});
