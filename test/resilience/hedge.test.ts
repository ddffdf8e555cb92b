import { describe, expect, test } from 'vitest';
import type { CallContext } from '../../src/resilience/attempt.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });

/** Each attempt takes as long as told and then answers or fails; remembers what was aborted. */
const setUp = (settings: PolicySettings, ...attempts: { ms: number; error?: unknown }[]) => {
  const clock = new ManualClock();
  const pipeline = createPipeline(
    'up',
    { hedge: { delay: 100 }, ...settings },
    { clock, random: () => 0 },
  );
  const started: number[] = [];
  const aborted: number[] = [];
  const work = ({ attempt, signal }: CallContext) => {
    started.push(attempt);
    signal.addEventListener('abort', () => aborted.push(attempt));
    const { ms, error } = attempts[attempt - 1] ?? { ms: 1 };
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    clock.setTimer(ms, () => (error === undefined ? resolve(attempt) : reject(error)));
    return promise;
  };
  return { clock, pipeline, work, started, aborted };
};

describe('hedge', () => {
  verifies('hedge.first-answer-wins', async () => {
    const { clock, pipeline, work, started, aborted } = setUp({}, { ms: 1_000 }, { ms: 50 });
    const answer = pipeline.execute(work);
    await clock.advance(149);
    expect([started, aborted]).toEqual([[1, 2], []]);
    await clock.advance(1);
    expect(await answer).toBe(2);
    expect(aborted).toEqual([1]);
    // The first one may win as well, and a fast one is never hedged.
    const late = setUp({}, { ms: 120 }, { ms: 500 });
    const first = late.pipeline.execute(late.work);
    await late.clock.advance(120);
    expect([await first, late.aborted]).toEqual([1, [2]]);
    const fast = setUp({}, { ms: 99 });
    const only = fast.pipeline.execute(fast.work);
    await fast.clock.advance(10_000);
    expect([await only, fast.started, fast.clock.pendingTimers]).toEqual([1, [1], 0]);
  });

  test('a failure that passes leaves the race to the others, one that does not ends it', async () => {
    const passing = setUp({}, { ms: 150, error: reset() }, { ms: 500 });
    const answer = passing.pipeline.execute(passing.work);
    await passing.clock.advance(600);
    expect(await answer).toBe(2);
    const fatal = setUp({}, { ms: 150, error: new TypeError('bug') }, { ms: 500 });
    const outcome = fatal.pipeline.outcome(fatal.work);
    await fatal.clock.advance(150);
    expect(await outcome).toMatchObject({ ok: false, failure: { code: 'INTERNAL_ERROR' } });
    expect(fatal.aborted).toEqual([2]);
    const both = setUp({}, { ms: 150, error: reset() }, { ms: 100, error: reset() });
    const failed = both.pipeline.outcome(both.work);
    await both.clock.advance(1_000);
    expect(await failed).toMatchObject({
      ok: false,
      attempts: 2,
      failure: { code: 'CONNECTION_RESET' },
    });
  });

  verifies('hedge.only-repeatable', async () => {
    const { clock, pipeline, work, started } = setUp({}, { ms: 1_000 });
    const answer = pipeline.execute(work, { idempotent: false });
    await clock.advance(1_000);
    expect([await answer, started]).toEqual([1, [1]]);
  });

  verifies('L38', async () => {
    // The budget is spent by the first calls; from then on calls run unhedged and still answer.
    const slow = Array.from({ length: 50 }, () => ({ ms: 1_000 }));
    const { clock, pipeline, started } = setUp({}, ...slow);
    const answers: number[] = [];
    for (let i = 0; i < 10; i++) {
      const work = ({ attempt }: CallContext) => {
        started.push(attempt);
        const { promise, resolve } = Promise.withResolvers<number>();
        clock.setTimer(200, () => resolve(attempt));
        return promise;
      };
      const answer = pipeline.execute(work);
      await clock.advance(200);
      answers.push(await answer);
    }
    expect(answers).toEqual(Array(10).fill(1));
    expect(started.filter((attempt) => attempt === 2).length).toBe(3);
  });

  verifies('hedge.quantile', async () => {
    const clock = new ManualClock();
    const pipeline = createPipeline('up', { hedge: { delay: 5_000, quantile: 0.9 } }, { clock });
    const call = async (ms: number) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const answer = pipeline.execute(() => {
        clock.setTimer(ms, resolve);
        return promise;
      });
      await clock.advance(ms);
      await answer;
    };
    expect(pipeline.hedge?.delay).toBe(5_000);
    for (let i = 0; i < 100; i++) await call(i < 95 ? 20 : 900);
    const delay = pipeline.hedge?.delay ?? 0;
    // The bucket that holds the 0.9 quantile (20 ms) is 19 % wide.
    expect(delay).toBeGreaterThanOrEqual(20);
    expect(delay).toBeLessThanOrEqual(20 * 1.2);
    for (let i = 0; i < 3_000; i++) await call(200);
    expect(pipeline.hedge?.delay).toBeGreaterThan(160);
  });

  test('hedges and retries go together, each attempt with its own time limit', async () => {
    const { clock, pipeline, work, started } = setUp(
      { timeout: 300, retry: { maxRetries: 1, baseDelay: 0 } },
      { ms: 9_999 },
      { ms: 9_999 },
      { ms: 10 },
    );
    const answer = pipeline.execute(work);
    await clock.advance(2_000);
    await flush();
    expect([await answer, started]).toEqual([3, [1, 2, 3]]);
  });
});
