import { describe, expect, test } from 'vitest';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import { presets } from '../../src/resilience/presets.ts';
import { spelledOut } from '../../src/resilience/spelled-out.ts';

describe('spelledOut', () => {
  test('names the defaults of what is set, those that follow from others included', () => {
    expect(
      spelledOut({
        rateLimit: { limit: 5, interval: 1_000 },
        breaker: { threshold: 2 },
        retry: { budget: { floor: 1 } },
        deadline: 7_000,
      }),
    ).toEqual({
      rateLimit: { limit: 5, interval: 1_000, burst: 5, maxWait: 0, maxKeys: 10_000 },
      breaker: expect.objectContaining({ threshold: 2, openDuration: 30_000, probeLease: 8_000 }),
      retry: {
        maxRetries: 2,
        baseDelay: 500,
        maxDelay: 30_000,
        factor: 2,
        jitter: 'full',
        respectRetryAfter: true,
        budget: { ratio: 0.2, floor: 1, interval: 10_000 },
      },
      deadline: 7_000,
    });
    expect(spelledOut({ retry: {} })).toMatchObject({
      retry: { budget: { ratio: 0.2, floor: 3, interval: 10_000 } },
    });
  });

  test('what was set stays, and what is off or absent stays so', () => {
    const off = { breaker: false, cache: false, timeout: 5 } as const;
    expect(spelledOut(off)).toEqual(off);
    expect(spelledOut({})).toEqual({});
    expect(spelledOut({ retry: { budget: false } })).toMatchObject({ retry: { budget: false } });
    expect(spelledOut({ rateLimit: { limit: 5, interval: 10, burst: 2 } })).toMatchObject({
      rateLimit: { burst: 2 },
    });
    expect(spelledOut({ deadline: 7_000, breaker: { probeLease: 5 } })).toMatchObject({
      breaker: { probeLease: 5 },
    });
    // Nothing bounds a call: the lease is the default of the breaker.
    expect(spelledOut({ breaker: {} })).toMatchObject({ breaker: { probeLease: 60_000 } });
  });

  test('holds for every preset, and says of itself what it says of them', () => {
    for (const policy of Object.values(presets)) {
      const whole = spelledOut(policy);
      expect(spelledOut(whole)).toEqual(whole);
      expect(Object.keys(whole)).toEqual(Object.keys(policy));
      createPipeline('whole', whole).destroy();
    }
  });

  test('says what is wrong, by its path', () => {
    expect(() => spelledOut({ retry: { budget: { ratio: -1 } } })).toThrow(/retry\.budget\.ratio/);
    expect(() => spelledOut({ breaker: { threshold: 0 } })).toThrow(/breaker\.threshold/);
  });
});
