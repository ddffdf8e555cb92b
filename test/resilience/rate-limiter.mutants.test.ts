import { describe, expect, test } from 'vitest';
import type { ResilienceError } from '../../src/resilience/failure.ts';
import type { RateLimitSettings } from '../../src/resilience/policy.ts';
import { RateLimiter } from '../../src/resilience/rate-limiter.ts';
import { TokenBucket } from '../../src/resilience/token-bucket.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

const setUp = (settings: RateLimitSettings) => {
  const clock = new ManualClock();
  return { clock, limiter: new RateLimiter('weather', settings, { clock }) };
};

describe('TokenBucket', () => {
  // What the division says and when the next token is there may differ by one at whole numbers.
  test('has a token at the very moment for which it was promised, and not before', () => {
    const rate = { limit: 1, interval: 1_000, burst: 5 };
    const bucket = new TokenBucket(123.456);
    for (let i = 0; i < 5; i++) bucket.take();
    expect(bucket.readyAt(rate, 1)).toBe(1_123.456);
    expect(bucket.available(rate, 1_123.456)).toBe(1);
    expect(bucket.available(rate, 1_123)).toBe(0);

    const odd = { limit: 1, interval: 333.3, burst: 5 };
    const other = new TokenBucket(0);
    for (let i = 0; i < 5; i++) other.take();
    expect(other.readyAt(odd, 3)).toBeGreaterThan(999.9);
    expect(other.available(odd, 999.9)).toBe(2);
    expect(other.available(odd, other.readyAt(odd, 3))).toBe(3);
  });
});

describe('RateLimiter', () => {
  test('what others wait for is not available', async () => {
    const { clock, limiter } = setUp({ limit: 10, interval: 1_000, maxWait: 5_000 });
    for (let i = 0; i < 10; i++) limiter.tryTake();
    const waiting = [limiter.take(), limiter.take()];
    // The process was blocked: the tokens are there, and nobody has been served yet.
    clock.jump(1_000);
    expect(limiter.available()).toBe(8);
    await clock.advance(0);
    await Promise.all(waiting);
    expect(limiter.available()).toBe(8);
  });

  test.each([
    ['interactive', 5, [0.3, 0.2, 0.1]],
    ['background', 4, [0.4, 0.3, 0.2, 0.1]],
  ] as const)(
    'who is turned away late hears when a %s call fits',
    async (priority, served, waits) => {
      const { clock, limiter } = setUp({ limit: 10, interval: 1_000, burst: 5, maxWait: 1_000 });
      for (let i = 0; i < 5; i++) limiter.tryTake();
      const all = Promise.allSettled(
        Array.from({ length: 8 }, () => limiter.take('', { priority })),
      );
      clock.jump(10_000);
      await clock.advance(0);
      const ends = await all;
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(served);
      const told = ends.flatMap((end) =>
        end.status === 'rejected' ? [(end.reason as ResilienceError).failure.retryAfter] : [],
      );
      expect(told).toEqual(waits);
      // The line is empty, and so nothing is waited for any more.
      expect(clock.pendingTimers).toBe(0);
    },
  );

  test('a wait is rounded up by no more than the clock can tell', () => {
    const { limiter } = setUp({ limit: 1, interval: 1 + Number.EPSILON });
    limiter.tryTake('', 0);
    expect(limiter.tryTake('', Number.EPSILON / 2)).toBeLessThan(1.001);
  });
});
