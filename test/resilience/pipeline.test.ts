import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { CallContext } from '../../src/resilience/attempt.ts';
import type { PipelineOptions } from '../../src/resilience/call-options.ts';
import type { Clock } from '../../src/resilience/clock.ts';
import { Deadline } from '../../src/resilience/deadline.ts';
import { createFailure, ResilienceError } from '../../src/resilience/failure.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const refused = () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
const status = (code: number, headers: Record<string, string> = {}) =>
  Object.assign(new Error(`HTTP ${code}`), { status: code, headers });

const setUp = (settings: PolicySettings, options: Omit<PipelineOptions, 'clock'> = {}) => {
  const clock = new ManualClock();
  const pipeline = createPipeline('up', settings, { random: () => 0.5, ...options, clock });
  return { clock, pipeline };
};

/** Work that throws the given errors in turn, then answers; remembers when it was called. */
const script = (clock: ManualClock, ...errors: unknown[]) => {
  const calls: number[] = [];
  const signals: AbortSignal[] = [];
  const work = async (context: CallContext) => {
    calls.push(clock.now());
    signals.push(context.signal);
    const error = errors[calls.length - 1];
    if (error !== undefined) throw error;
    return `answer ${context.attempt}`;
  };
  return { work, calls, signals };
};

/** Work that never ends by itself; tells of its start and its abort. */
const hanging = () => {
  const started: CallContext[] = [];
  const aborted: unknown[] = [];
  const finish: (() => void)[] = [];
  const work = (context: CallContext) => {
    started.push(context);
    context.signal.addEventListener('abort', () => aborted.push(context.signal.reason));
    return new Promise<string>((resolve) => finish.push(() => resolve('late')));
  };
  return { work, started, aborted, finish };
};

const settled = <T>(promise: Promise<T>) => {
  const state: { value?: T; error?: unknown; done: boolean } = { done: false };
  promise.then(
    (value) => Object.assign(state, { value, done: true }),
    (error: unknown) => Object.assign(state, { error, done: true }),
  );
  return state;
};

describe('retry in the pipeline', () => {
  verifies('retry.retry-after', async () => {
    const { clock, pipeline } = setUp(
      { retry: { maxRetries: 2, baseDelay: 10 } },
      { random: () => 0 },
    );
    const date = new Date(clock.wallTime() + 10_000).toUTCString();
    const { work, calls } = script(
      clock,
      status(429, { 'retry-after': '2' }),
      status(503, { 'retry-after': date }),
    );
    const answer = settled(pipeline.execute(work));
    await clock.advance(20_000);
    expect(answer.value).toBe('answer 3');
    const waits = calls.slice(1).map((at, index) => at - (calls[index] ?? 0));
    // The date was made before the first wait of 2 s.
    expect(waits).toEqual([2_000, 8_000]);
  });

  verifies('retry.retry-after-too-long', async () => {
    for (const settings of [
      { deadline: 5_000, retry: {} },
      { retry: { maxDelay: 5_000 } },
    ] satisfies PolicySettings[]) {
      const { clock, pipeline } = setUp(settings);
      const { work, calls } = script(clock, status(429, { 'retry-after': '6' }));
      const outcome = await pipeline.outcome(work);
      expect(calls.length).toBe(1);
      expect(outcome).toMatchObject({
        ok: false,
        failure: { code: 'RATE_LIMITED', retryAfter: 6 },
      });
      expect(clock.pendingTimers).toBe(0);
    }
  });

  verifies('retry.only-what-is-safe', async () => {
    const retry = { maxRetries: 3, baseDelay: 1 };
    const run = async (error: unknown, idempotent: boolean) => {
      const { clock, pipeline } = setUp({ retry });
      const { work, calls } = script(clock, error);
      const answer = settled(pipeline.execute(work, { idempotent }));
      await clock.advance(10_000);
      return [calls.length, (answer.error as { code?: string })?.code ?? answer.value];
    };
    expect(await run(refused(), false)).toEqual([2, 'answer 2']);
    expect(await run(status(429), false)).toEqual([2, 'answer 2']);
    expect(await run(status(503), true)).toEqual([2, 'answer 2']);
    expect(await run(reset(), true)).toEqual([2, 'answer 2']);
    expect((await run(status(503), false))[0]).toBe(1);
    expect(await run(reset(), false)).toEqual([1, 'OUTCOME_UNKNOWN']);
  });

  verifies('L35', async () => {
    // Whatever goes wrong and however it is retried: executed at most once per call.
    const error = fc.constantFrom<() => unknown>(
      reset,
      () => status(500),
      () => status(503, { 'retry-after': '0' }),
      () => new Error('?'),
      () => Object.assign(new Error('x'), { code: 'UND_ERR_BODY_TIMEOUT' }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(error, { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (errors, hedged) => {
          const { clock, pipeline } = setUp({
            timeout: 100,
            retry: { maxRetries: 5, baseDelay: 1, budget: false },
            ...(hedged ? { hedge: { delay: 1 } } : {}),
          });
          const { work, calls } = script(clock, ...errors.map((make) => make()));
          settled(pipeline.execute(work, { idempotent: false }));
          await clock.advance(10_000);
          expect(calls.length).toBe(1);
        },
      ),
      { numRuns: 50 },
    );
    const { clock, pipeline } = setUp({ timeout: 100, retry: { maxRetries: 5, baseDelay: 1 } });
    const { work, started } = hanging();
    const answer = settled(pipeline.execute(work, { idempotent: false }));
    await clock.advance(10_000);
    expect(started.length).toBe(1);
    expect(answer.error).toMatchObject({ code: 'OUTCOME_UNKNOWN', failure: { retryable: false } });
  });

  verifies('L32', async () => {
    const { clock, pipeline } = setUp({
      retry: { maxRetries: 4, baseDelay: 100, jitter: 'none', budget: { ratio: 5, floor: 10 } },
    });
    const { work, calls } = script(clock, reset(), reset(), reset(), reset());
    settled(pipeline.execute(work));
    await clock.advance(10_000);
    expect(calls.slice(1).map((at, index) => at - (calls[index] ?? 0))).toEqual([
      100, 200, 400, 800,
    ]);
  });

  verifies('M23', async () => {
    const { clock, pipeline } = setUp({ retry: { maxRetries: 3 } });
    for (const error of [{ code: -32602, message: 'bad' }, status(404), new TypeError('bug')]) {
      const { work, calls } = script(clock, error);
      const answer = settled(pipeline.execute(work));
      await clock.advance(60_000);
      expect([calls.length, answer.error]).toEqual([1, error]);
    }
  });

  verifies('retry.budget', async () => {
    const { clock, pipeline } = setUp({ retry: { maxRetries: 1, baseDelay: 0 } });
    let attempts = 0;
    const results: unknown[] = [];
    for (let i = 0; i < 100; i++) {
      const answer = settled(
        pipeline.execute(() => {
          attempts++;
          return Promise.reject(reset());
        }),
      );
      await clock.advance(1);
      results.push((answer.error as { code?: string }).code);
    }
    expect(attempts).toBe(120);
    // The call itself is not failed by the budget: it fails with its own error.
    expect(new Set(results)).toEqual(new Set(['ECONNRESET']));
  });

  verifies('L16', async () => {
    const { clock, pipeline } = setUp({ deadline: 100, retry: { maxRetries: 5, baseDelay: 0 } });
    const remaining: number[] = [];
    const answer = settled(
      pipeline.execute(async ({ deadline }) => {
        remaining.push(deadline.remaining());
        clock.jump(95);
        throw reset();
      }),
    );
    await clock.advance(1_000);
    expect(remaining).toEqual([100, 5]);
    expect(answer.error).toMatchObject({ code: 'ECONNRESET' });
  });

  verifies('timeout.remaining-budget', async () => {
    const { clock, pipeline } = setUp({
      deadline: 1_000,
      timeout: 600,
      retry: { maxRetries: 5, baseDelay: 0 },
    });
    const { work, started } = hanging();
    const answer = settled(pipeline.execute(work));
    await clock.advance(600);
    expect([started.length, answer.done]).toEqual([2, false]);
    await clock.advance(399);
    expect(answer.done).toBe(false);
    await clock.advance(1);
    expect(answer.error).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    expect(started.length).toBe(2);
  });

  verifies('L18', async () => {
    const { clock, pipeline } = setUp({ timeout: 100, retry: { maxRetries: 3, baseDelay: 0 } });
    const { work, started } = hanging();
    const answer = settled(pipeline.execute(work));
    await clock.advance(400);
    expect(started.length).toBe(4);
    expect(answer.error).toMatchObject({ code: 'TIMEOUT' });
  });
});

describe('priority', () => {
  test('background work leaves the last fifth of the rate to interactive work', async () => {
    const { pipeline } = setUp({ rateLimit: { limit: 10, interval: 60_000 } });
    const background = { priority: 'background' } as const;
    let served = 0;
    for (let i = 0; i < 10; i++) {
      await pipeline.execute(() => void served++, background).catch(() => {});
    }
    expect(served).toBeLessThan(10);
    expect(served).toBeGreaterThanOrEqual(8);
    await expect(pipeline.execute(() => 'x', background)).rejects.toMatchObject({
      code: 'RATE_LIMIT_EXCEEDED',
    });
    expect(await pipeline.execute(() => 'x')).toBe('x');
  });
});

describe('cancel', () => {
  verifies('cancel.reason', async () => {
    const { clock, pipeline } = setUp({
      timeout: 5_000,
      retry: {},
      breaker: { threshold: 1 },
      bulkhead: { limit: 1 },
    });
    const controller = new AbortController();
    const { work, aborted } = hanging();
    const reason = new Error('the user pressed escape');
    const outcome = settled(pipeline.outcome(work, { signal: controller.signal }));
    const thrown = settled(pipeline.execute(work, { signal: controller.signal }));
    await flush();
    controller.abort(reason);
    await flush();
    expect(outcome.value).toMatchObject({
      ok: false,
      error: reason,
      failure: { code: 'CANCELLED' },
    });
    // The second one never got a place.
    expect(thrown.done).toBe(true);
    expect(aborted).toEqual([reason]);
    expect(pipeline.breaker?.toJSON()).toMatchObject({ state: 'closed', failureCount: 0 });
    expect(clock.pendingTimers).toBeLessThanOrEqual(1);
  });

  verifies('cancel.no-attempt-after', async () => {
    // In a backoff sleep, in a queue, in a hedge's delay, before the start.
    const controller = new AbortController();
    const { signal } = controller;
    const { clock, pipeline } = setUp({ retry: { baseDelay: 10_000 } });
    const { work, calls } = script(clock, reset());
    const asleep = settled(pipeline.execute(work, { signal }));
    const queued = setUp({ bulkhead: { limit: 1, queue: 5 } });
    settled(queued.pipeline.execute(hanging().work));
    const second = hanging();
    const waiting = settled(queued.pipeline.execute(second.work, { signal }));
    const hedged = setUp({ hedge: { delay: 1_000 } });
    const slow = hanging();
    const hedging = settled(hedged.pipeline.execute(slow.work, { signal }));
    await flush();
    controller.abort('stop');
    await flush();
    expect([asleep.error, waiting.error, hedging.error]).toEqual(['stop', 'stop', 'stop']);
    const late = hanging();
    await expect(pipeline.execute(late.work, { signal })).rejects.toBe('stop');
    for (const each of [clock, queued.clock, hedged.clock]) await each.advance(60_000);
    expect([calls.length, second.started.length, slow.started.length, late.started.length]).toEqual(
      [1, 0, 1, 0],
    );
  });

  verifies(['L13', 'M12'], async (id) => {
    const { clock, pipeline } = setUp({ retry: { baseDelay: 10_000, jitter: 'none' } });
    const controller = new AbortController();
    let calls = 0;
    const work = ({ signal }: CallContext) => {
      calls++;
      return new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(reset()));
        if (id === 'M12') reject(reset());
      });
    };
    const answer = settled(pipeline.execute(work, { signal: controller.signal }));
    await flush();
    controller.abort('stop');
    await flush();
    expect(answer.error).toBe('stop');
    await clock.advance(60_000);
    expect([calls, clock.pendingTimers]).toEqual([1, 0]);
  });

  verifies('L15', async () => {
    const { clock, pipeline } = setUp({
      retry: { maxRetries: 3, baseDelay: 0 },
      breaker: { threshold: 1 },
    });
    const controller = new AbortController();
    const timeout = new DOMException('The operation timed out.', 'TimeoutError');
    let attempts = 0;
    const answer = settled(
      pipeline.outcome(
        ({ signal }) => {
          attempts++;
          controller.abort(timeout);
          return Promise.reject(signal.reason);
        },
        { signal: controller.signal },
      ),
    );
    await clock.advance(1_000);
    expect(attempts).toBe(1);
    expect(answer.value).toMatchObject({
      ok: false,
      error: timeout,
      failure: { code: 'CANCELLED' },
    });
    expect(pipeline.breaker?.state).toBe('closed');
  });

  verifies('M16', async () => {
    const { clock, pipeline } = setUp({ timeout: 5_000 });
    const controller = new AbortController();
    const answer = settled(pipeline.execute(hanging().work, { signal: controller.signal }));
    await clock.advance(31);
    controller.abort(new Error('user'));
    await flush();
    expect(answer.error).toEqual(new Error('user'));
  });
});

describe('timeout and deadline', () => {
  verifies(['timeout.aborts-work', 'C06'], async () => {
    const { clock, pipeline } = setUp({ timeout: 50 });
    const { work, aborted } = hanging();
    const answer = settled(pipeline.execute(work));
    await clock.advance(49);
    expect(answer.done).toBe(false);
    await clock.advance(1);
    expect(answer.error).toBeInstanceOf(ResilienceError);
    expect(answer.error).toMatchObject({
      code: 'TIMEOUT',
      message: '"up" did not answer within 50 ms',
    });
    expect(aborted).toEqual([answer.error]);
  });

  verifies('M6', async () => {
    const { clock, pipeline } = setUp({ timeout: 100 });
    const first = hanging();
    const second = hanging();
    const slow = settled(pipeline.execute(first.work));
    await clock.advance(50);
    const healthy = settled(pipeline.execute(second.work));
    await clock.advance(50);
    expect(slow.error).toMatchObject({ code: 'TIMEOUT' });
    expect(second.aborted).toEqual([]);
    second.finish[0]?.();
    await flush();
    expect(healthy.value).toBe('late');
    const later = script(clock);
    expect(await pipeline.execute(later.work)).toBe('answer 1');
    expect(later.signals[0]?.aborted).toBe(false);
  });

  verifies('deadline.inherited', async () => {
    const { clock, pipeline: outer } = setUp({ deadline: 100 });
    const inner = createPipeline('inner', { deadline: 5_000, retry: { baseDelay: 0 } }, { clock });
    const seen: number[] = [];
    const answer = settled(
      outer.execute(async ({ deadline }) => {
        seen.push(deadline.remaining());
        await Promise.resolve();
        return inner.execute((context) => {
          seen.push(context.deadline.remaining());
          return hanging().work(context);
        });
      }),
    );
    await clock.advance(100);
    expect(seen).toEqual([100, 100]);
    expect(answer.error).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    // By hand, and an outer one that is later than the own.
    const own = settled(inner.execute(hanging().work, { deadline: Deadline.after(10, clock) }));
    await clock.advance(10);
    expect(own.error).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    const passed = inner.execute(hanging().work, { deadline: new Deadline(0, clock) });
    await expect(passed).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
  });

  verifies('deadline.lazy-signal', async () => {
    const made = vi.spyOn(globalThis, 'AbortController');
    const { clock, pipeline } = setUp({
      deadline: 100,
      timeout: 50,
      retry: {},
      breaker: {},
      bulkhead: { limit: 2 },
    });
    await pipeline.execute(async () => 'answer');
    const answer = settled(pipeline.execute(() => new Promise(() => {})));
    await clock.advance(100);
    expect(answer.done).toBe(true);
    expect(made).not.toHaveBeenCalled();
    // Read late, it tells what has happened.
    let context: CallContext | undefined;
    settled(
      pipeline.execute((given) => {
        context = given;
        return new Promise(() => {});
      }),
    );
    await clock.advance(100);
    expect(context?.signal.aborted).toBe(true);
    made.mockRestore();
  });

  verifies('B07', async () => {
    const { clock, pipeline } = setUp({ timeout: 50, breaker: { threshold: 1 } });
    let writes = 0;
    const write = async ({ signal }: CallContext) => {
      await new Promise((resolve) => clock.setTimer(100, () => resolve(undefined)));
      if (!signal.aborted) writes++;
    };
    settled(pipeline.execute(write));
    await clock.advance(200);
    expect(writes).toBe(0);
    expect(pipeline.breaker?.state).toBe('open');
  });
});

describe('breaker in the pipeline', () => {
  verifies('breaker.local-refusals', async () => {
    const { clock, pipeline } = setUp({
      breaker: { threshold: 1 },
      rateLimit: { limit: 3, interval: 1_000 },
      bulkhead: { limit: 1 },
      cache: { ttl: 1_000 },
    });
    const { work } = hanging();
    settled(pipeline.execute(work));
    await expect(pipeline.execute(work)).rejects.toMatchObject({ code: 'BULKHEAD_FULL' });
    await expect(pipeline.execute(work)).rejects.toMatchObject({ code: 'BULKHEAD_FULL' });
    await expect(pipeline.execute(work)).rejects.toMatchObject({ code: 'RATE_LIMIT_EXCEEDED' });
    expect(pipeline.breaker?.toJSON()).toMatchObject({ state: 'closed', failureCount: 0 });
    // Nor those of a pipeline further in.
    const inner = createPipeline('inner', { breaker: {} }, { clock });
    inner.breaker?.isolate();
    await clock.advance(1_000);
    const outer = createPipeline('outer', { breaker: { threshold: 1 } }, { clock });
    await expect(outer.execute(() => inner.execute(() => 'x'))).rejects.toMatchObject({
      code: 'CIRCUIT_OPEN',
    });
    expect(outer.breaker?.state).toBe('closed');
  });

  verifies('M3', async () => {
    const { pipeline } = setUp({ breaker: { threshold: 1 }, bulkhead: { limit: 1 } });
    const first = hanging();
    const running = settled(pipeline.execute(first.work));
    for (let i = 0; i < 5; i++) {
      await expect(pipeline.execute(first.work)).rejects.toMatchObject({ code: 'BULKHEAD_FULL' });
    }
    first.finish[0]?.();
    await flush();
    expect(running.value).toBe('late');
    expect(pipeline.breaker?.state).toBe('closed');
  });

  verifies('breaker.scope', async () => {
    const settings = { retry: { maxRetries: 5, baseDelay: 0, budget: false } } as const;
    const perCall = setUp({ ...settings, breaker: { threshold: 3 } });
    const first = script(perCall.clock, ...Array(9).fill(reset()));
    settled(perCall.pipeline.execute(first.work));
    await perCall.clock.advance(10);
    expect([first.calls.length, perCall.pipeline.breaker?.toJSON().failureCount]).toEqual([6, 1]);

    const perAttempt = setUp({ ...settings, breaker: { threshold: 3, scope: 'attempt' } });
    const second = script(perAttempt.clock, ...Array(9).fill(reset()));
    const answer = settled(perAttempt.pipeline.execute(second.work));
    await perAttempt.clock.advance(10);
    expect([second.calls.length, perAttempt.pipeline.breaker?.state]).toEqual([3, 'open']);
    // The upstream's own error says more than "open".
    expect(answer.error).toMatchObject({ code: 'ECONNRESET' });
    await expect(perAttempt.pipeline.execute(second.work)).rejects.toMatchObject({
      code: 'CIRCUIT_OPEN',
    });
  });

  verifies('L26', async () => {
    const { pipeline } = setUp({ breaker: { threshold: 1 }, retry: {} });
    for (let i = 0; i < 5; i++) {
      await pipeline.execute(async () => ({ isError: true, content: [] }));
    }
    expect(pipeline.breaker?.toJSON()).toMatchObject({ state: 'closed', failureCount: 0 });
  });

  test('a result that a classifier takes for throttling is retried, and is the answer in the end', async () => {
    const classifyResult = (result: unknown) =>
      (result as { limited?: boolean }).limited
        ? ({
            code: 'RATE_LIMITED',
            message: 'told in the payload',
            severity: 'transient',
            source: 'rate_limit',
            weight: 'throttled',
            delivery: 'refused',
            retryable: true,
            retryAfter: 1,
          } as const)
        : undefined;
    const { clock, pipeline } = setUp(
      { retry: { maxRetries: 1 }, breaker: { threshold: 1 }, cache: { ttl: 1_000 } },
      { classifyResult },
    );
    let calls = 0;
    const work = async () => ({ limited: true, call: ++calls });
    const answer = settled(pipeline.outcome(work, { idempotent: false, cacheKey: 'k' }));
    await clock.advance(1_200);
    expect(answer.value).toMatchObject({
      ok: true,
      value: { limited: true, call: 2 },
      failure: { code: 'RATE_LIMITED' },
    });
    expect(pipeline.breaker?.state).toBe('closed');
    expect(pipeline.cache?.size).toBe(0);
  });
});

describe('breaker in the pipeline, at the edges', () => {
  test.each<[string, PolicySettings]>([
    ['time limit', { timeout: 1_000 }],
    ['deadline', { deadline: 1_000 }],
    ['attempt', { timeout: 1_000, breaker: { scope: 'attempt' } }],
  ])('a probe that hangs until its %s opens the breaker again', async (_, settings) => {
    const { clock, pipeline } = setUp({
      ...settings,
      breaker: { threshold: 1, openDuration: 1_000, ...settings.breaker },
    });
    await pipeline.execute(() => Promise.reject(reset())).catch(() => {});
    await clock.advance(1_000);
    expect(pipeline.breaker?.state).toBe('half-open');
    settled(pipeline.execute(hanging().work));
    await clock.advance(1_000);
    expect(pipeline.breaker?.toJSON()).toMatchObject({ state: 'open', openings: 2 });
  });

  test('a failed result is the answer when the breaker opens before its retry', async () => {
    const { clock, pipeline } = setUp(
      { breaker: { threshold: 1, scope: 'attempt' }, retry: { baseDelay: 0 } },
      {
        classifyResult: (result) =>
          result === 'down' ? createFailure('UPSTREAM_UNAVAILABLE') : undefined,
      },
    );
    const outcome = settled(pipeline.outcome(() => 'down'));
    await clock.advance(10);
    expect(outcome.value).toMatchObject({
      ok: true,
      value: 'down',
      attempts: 1,
      failure: { code: 'UPSTREAM_UNAVAILABLE' },
    });
    expect(pipeline.breaker?.state).toBe('open');
  });

  test('an attempt that the breaker refused is not counted as made', async () => {
    const { pipeline } = setUp({ breaker: { scope: 'attempt' } });
    pipeline.breaker?.isolate();
    expect(await pipeline.outcome(() => 'x')).toMatchObject({ ok: false, attempts: 0 });
  });

  test('a hedge that the breaker refuses leaves the first attempt alone', async () => {
    const { clock, pipeline } = setUp({ breaker: { scope: 'attempt' }, hedge: { delay: 10 } });
    const { work, finish } = hanging();
    const answer = settled(pipeline.execute(work));
    await flush();
    pipeline.breaker?.isolate();
    await clock.advance(50);
    expect(answer.done).toBe(false);
    finish[0]?.();
    await flush();
    expect(answer.value).toBe('late');
  });
});

describe('classifyResult', () => {
  test('one that throws loses no answer', async () => {
    const { pipeline } = setUp(
      { retry: {} },
      {
        classifyResult: () => {
          throw new Error('classifier broke');
        },
      },
    );
    expect(await pipeline.execute(() => 'answer')).toBe('answer');
  });
});

describe('bulkhead in the pipeline', () => {
  verifies('bulkhead.held-until-ended', async () => {
    const { clock, pipeline } = setUp({ timeout: 50, bulkhead: { limit: 1 } });
    const stubborn = hanging();
    const answer = settled(pipeline.execute(stubborn.work));
    await clock.advance(50);
    expect(answer.error).toMatchObject({ code: 'TIMEOUT' });
    await expect(pipeline.execute(() => 'x')).rejects.toMatchObject({ code: 'BULKHEAD_FULL' });
    stubborn.finish[0]?.();
    await flush();
    expect(await pipeline.execute(() => 'x')).toBe('x');
  });
});

describe('adaptive bulkhead in the pipeline', () => {
  test('a backend that is asked for more than it can do gets fewer calls at a time', async () => {
    const { clock, pipeline } = setUp({
      bulkhead: { limit: { min: 1, max: 100, initial: 50 }, queue: 1_000 },
    });
    // Four servers, 10 ms a call: more than four calls at a time only wait for each other.
    let busy = 0;
    const waiting: (() => void)[] = [];
    const work = async () => {
      if (busy === 4) await new Promise<void>((resolve) => waiting.push(resolve));
      else busy++;
      await new Promise<void>((resolve) => clock.setTimer(10, resolve));
      const next = waiting.shift();
      if (next) next();
      else busy--;
    };
    let done = 0;
    const client = async () => {
      while (done < 3_000) {
        await pipeline.execute(work);
        done++;
      }
    };
    for (let i = 0; i < 60; i++) void client();
    while (done < 3_000) await clock.advance(10);
    expect(pipeline.bulkhead?.stats().limit).toBeLessThan(15);
    await clock.advance(10_000);
    expect(pipeline.bulkhead?.stats()).toMatchObject({ active: 0, queued: 0 });
  });
});

describe('adaptive bulkhead in the pipeline, under overload', () => {
  const overload = async (settings: PolicySettings, fail: (context: CallContext) => unknown) => {
    const { clock, pipeline } = setUp({
      bulkhead: { limit: { min: 1, max: 100, initial: 50 } },
      ...settings,
    });
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 50; i++) settled(pipeline.execute(fail, { idempotent: false }));
      await clock.advance(100);
    }
    return pipeline.bulkhead?.stats().limit;
  };
  const untilAborted = ({ signal }: CallContext) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

  test('timeouts and refusals of the upstream lower the limit, refusals of our own do not', async () => {
    expect(await overload({ timeout: 100 }, untilAborted)).toBeLessThan(25);
    expect(await overload({}, () => Promise.reject(status(429)))).toBeLessThan(25);
    const inner = createPipeline('inner', { breaker: {} });
    inner.breaker?.isolate();
    expect(await overload({}, () => inner.execute(() => 'x'))).toBe(50);
  });
});

describe('pipeline', () => {
  test('no attempt starts after an abort in the very turn in which its timer fires', async () => {
    for (const settings of [
      { retry: { baseDelay: 100, jitter: 'none' } },
      { hedge: { delay: 100 } },
    ] satisfies PolicySettings[]) {
      const clock = new ManualClock();
      const controller = new AbortController();
      // As fake timers do that fire without a pause between them.
      const timers: Clock = {
        now: () => clock.now(),
        wallTime: () => clock.wallTime(),
        setTimer: (delay, callback) =>
          clock.setTimer(delay, () => {
            if ('hedge' in settings) controller.abort('stop');
            callback();
            controller.abort('stop');
          }),
      };
      const pipeline = createPipeline('up', settings, { clock: timers });
      let calls = 0;
      const work = () => {
        calls++;
        return 'retry' in settings ? Promise.reject(reset()) : new Promise(() => {});
      };
      const answer = settled(pipeline.execute(work, { signal: controller.signal }));
      await clock.advance(1_000);
      expect([calls, answer.error]).toEqual([1, 'stop']);
    }
  });

  test('no attempt starts when the process wakes from a backoff after the deadline', async () => {
    const { clock, pipeline } = setUp({
      deadline: 1_000,
      breaker: { threshold: 1 },
      retry: { baseDelay: 500, jitter: 'none' },
    });
    const { work, calls } = script(clock, reset(), reset());
    const answer = settled(pipeline.execute(work));
    await flush();
    clock.jump(5_000);
    await clock.advance(1);
    expect(calls.length).toBe(1);
    expect(answer.error).toMatchObject({ code: 'ECONNRESET' });
    expect(pipeline.breaker?.state).toBe('open');
  });

  test('calls in flight keep their time limit when the pipeline is destroyed', async () => {
    const { clock, pipeline } = setUp({ timeout: 100 });
    const answer = settled(pipeline.execute(hanging().work));
    pipeline.destroy();
    await clock.advance(100);
    expect(answer.error).toMatchObject({ code: 'TIMEOUT' });
    expect(clock.pendingTimers).toBe(0);
  });

  verifies('policy.absent-stage', async () => {
    const clock = new ManualClock();
    const now = vi.spyOn(clock, 'now');
    const pipeline = createPipeline('bare', {}, { clock });
    expect(await pipeline.execute(() => 'x')).toBe('x');
    await expect(pipeline.execute(() => Promise.reject(reset()))).rejects.toMatchObject({
      code: 'ECONNRESET',
    });
    const stages = ['rateLimiter', 'bulkhead', 'breaker', 'retry', 'hedge', 'cache'] as const;
    expect(stages.filter((stage) => pipeline[stage] !== undefined)).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
    now.mockClear();
    await pipeline.execute(async () => 'x');
    expect(now).not.toHaveBeenCalled();
  });

  verifies('pipeline.order', async () => {
    const { clock, pipeline } = setUp({
      rateLimit: { limit: 1, interval: 60_000 },
      bulkhead: { limit: 1 },
      breaker: {},
      cache: { ttl: 1_000 },
    });
    const codeOf = async (options: Parameters<typeof pipeline.outcome>[1] = {}) => {
      const outcome = await pipeline.outcome(() => 'answer', options);
      return outcome.ok ? outcome.source : outcome.failure.code;
    };
    expect(await codeOf({ cacheKey: 'k' })).toBe('call');
    const blocker = hanging();
    // Everything refuses at once: the outermost one is heard, and the ones within are not asked.
    await clock.advance(60_000);
    settled(pipeline.execute(blocker.work));
    pipeline.breaker?.isolate();
    const passed = new Deadline(clock.now() - 1, clock);
    expect(await codeOf({ deadline: passed })).toBe('DEADLINE_EXCEEDED');
    expect(await codeOf()).toBe('RATE_LIMIT_EXCEEDED');
    expect(await codeOf({ fallback: () => 'lesser' })).toBe('fallback');
    await clock.advance(60_000);
    expect(await codeOf()).toBe('BULKHEAD_FULL');
    blocker.finish[0]?.();
    await clock.advance(60_000);
    expect(await codeOf()).toBe('CIRCUIT_OPEN');
    pipeline.breaker?.reset();
    await clock.advance(60_000);
    expect(await codeOf({ cacheKey: 'k' })).toBe('call');
    // A fresh answer asks nobody.
    pipeline.breaker?.isolate();
    expect(await codeOf({ cacheKey: 'k' })).toBe('cache');
  });

  verifies('M5', async () => {
    const { pipeline } = setUp({ timeout: 10, retry: {}, breaker: {}, bulkhead: { limit: 1 } });
    expect(await pipeline.execute(() => undefined)).toBeUndefined();
    expect(await pipeline.execute(() => null)).toBeNull();
    // biome-ignore lint/suspicious/noThenProperty: a thenable that is no promise is the case
    const thenable = { then: (resolve: (value: string) => void) => resolve('thenable') };
    expect(await pipeline.execute(() => thenable as PromiseLike<string>)).toBe('thenable');
    const throwing = Object.defineProperty({}, 'then', {
      get() {
        throw new Error('getter');
      },
    });
    const once = { idempotent: false };
    await expect(pipeline.execute(() => throwing, once)).rejects.toThrow('getter');
    expect(await pipeline.execute(() => 1)).toBe(1);
  });

  verifies('pipeline.nothing-left', async () => {
    const act = fc.constantFrom('answer', 'fail', 'hang', 'bug', 'throttle', 'abort', 'sync');
    const step = fc.record({ act, wait: fc.nat(300), key: fc.option(fc.constantFrom('a', 'b')) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.boolean(), async (steps, hedged) => {
        const { clock, pipeline } = setUp({
          deadline: 1_000,
          timeout: 100,
          rateLimit: { limit: 10, interval: 1_000, maxWait: 200 },
          bulkhead: { limit: 3, queue: 3 },
          breaker: { threshold: 3, openDuration: 200 },
          retry: { maxRetries: 2, baseDelay: 50 },
          cache: { ttl: 100, staleIfError: 100, staleWhileRevalidate: 50 },
          ...(hedged ? { hedge: { delay: 30 } } : {}),
        });
        const { signal } = new AbortController();
        const listeners = { added: 0, removed: 0 };
        vi.spyOn(signal, 'addEventListener').mockImplementation(() => void listeners.added++);
        vi.spyOn(signal, 'removeEventListener').mockImplementation(() => void listeners.removed++);
        const all: { done: boolean }[] = [];
        for (const { act, wait, key } of steps) {
          const controller = new AbortController();
          const options = {
            signal: act === 'abort' ? controller.signal : signal,
            ...(key ? { cacheKey: key } : {}),
            ...(act === 'fail' ? { fallback: () => 'lesser' } : {}),
          };
          const work = ({ signal: abort }: CallContext) => {
            if (act === 'sync') return 'sync';
            if (act === 'fail') return Promise.reject(reset());
            if (act === 'bug') return Promise.reject(new TypeError('bug'));
            if (act === 'throttle') return Promise.reject(status(429, { 'retry-after': '1' }));
            if (act === 'answer') return Promise.resolve('answer');
            return new Promise<string>((_, reject) => {
              abort.addEventListener('abort', () => reject(abort.reason));
            });
          };
          all.push(settled(pipeline.outcome<string>(work, options)));
          await clock.advance(wait);
          if (act === 'abort') controller.abort('user');
        }
        await clock.advance(60_000);
        expect(all.every((call) => call.done)).toBe(true);
        expect(pipeline.bulkhead?.stats()).toMatchObject({ active: 0, queued: 0 });
        expect(clock.pendingTimers).toBe(0);
        expect(listeners.removed).toBe(listeners.added);
      }),
      { numRuns: 200 },
    );
  });
});
