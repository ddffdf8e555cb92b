import { describe, expect, test, vi } from 'vitest';
import type { CallContext } from '../../src/resilience/attempt.ts';
import { classify } from '../../src/resilience/failure.ts';
import { Hedge } from '../../src/resilience/hedge.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { HedgeSettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';

/** A hedge that has seen calls of the given durations. */
const measured = (settings: HedgeSettings) => {
  const clock = new ManualClock();
  const hedge = new Hedge({ delay: 5_000, ...settings });
  const call = async (ms: number, times: number) => {
    for (let i = 0; i < times; i++) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const race = hedge.race<void>({
        clock,
        launch: () => ({ promise, abandon: () => {} }),
        mayHedge: () => false,
        isFatal: () => true,
        onHedge: () => {},
      });
      clock.jump(ms);
      resolve();
      await race;
    }
  };
  return { hedge, call };
};

describe('the measured quantile', () => {
  test('counts from twenty calls on', async () => {
    const { hedge, call } = measured({ quantile: 0.5 });
    await call(20, 19);
    expect(hedge.delay).toBe(5_000);
    await call(20, 1);
    expect(hedge.delay).toBeLessThan(24);
  });

  test('lies in the bucket that holds it exactly', async () => {
    const { hedge, call } = measured({ quantile: 0.5 });
    await call(20, 10);
    await call(200, 10);
    expect(hedge.delay).toBeLessThan(24);
  });

  test('weighs what is older by half after a thousand calls', async () => {
    const { hedge, call } = measured({ quantile: 0.9 });
    await call(20, 1_000);
    expect(hedge.delay).toBeLessThan(24);
    // 60 of 560; of 1 060 they would be too few to move it.
    await call(200, 60);
    expect(hedge.delay).toBeGreaterThan(170);
    expect(hedge.delay).toBeLessThan(240);
  });

  test('knows of times beyond its scale that they are long', async () => {
    const { hedge, call } = measured({ quantile: 0.9 });
    await call(2 ** 34, 20);
    expect(hedge.delay).toBeGreaterThan(2 ** 31);
  });
});

describe('the race', () => {
  test('sends as many hedges as it may, and abandons the losers only', async () => {
    const clock = new ManualClock();
    const hedge = new Hedge({ delay: 100, maxHedges: 2 });
    const racers = [0, 1, 2, 3].map(() => ({
      ...Promise.withResolvers<number>(),
      abandon: vi.fn(),
    }));
    const onHedge = vi.fn();
    let out = 0;
    const launch = () => {
      const racer = racers[out++];
      if (!racer) throw new Error('too many');
      return racer;
    };
    const race = hedge.race({
      clock,
      launch,
      mayHedge: () => true,
      isFatal: () => false,
      onHedge,
    });
    await clock.advance(10_000);
    expect(out).toBe(3);
    racers[1]?.resolve(7);
    expect(await race).toBe(7);
    expect(racers.map(({ abandon }) => abandon.mock.calls.length)).toEqual([1, 0, 1, 0]);
    expect(onHedge.mock.calls).toEqual([['won'], ['lost']]);
  });

  test('the loser is told by an abort that counts as cancelled', async () => {
    const clock = new ManualClock();
    const pipeline = createPipeline('up', { hedge: { delay: 100 } }, { clock });
    const signals: AbortSignal[] = [];
    const answer = pipeline.execute(({ attempt, signal }: CallContext) => {
      signals.push(signal);
      return attempt === 1 ? new Promise(() => {}) : 'second';
    });
    await clock.advance(100);
    expect(await answer).toBe('second');
    await flush();
    expect(signals[0]?.reason).toMatchObject({
      name: 'AbortError',
      message: 'another attempt answered first',
    });
    expect(classify(signals[0]?.reason).code).toBe('CANCELLED');
  });

  test('wrong settings are named', () => {
    expect(() => new Hedge({ delay: -1 })).toThrow('hedge.delay must be');
  });
});
