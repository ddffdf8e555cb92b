import { diag, logs, trace } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CallContext } from '../../src/resilience/attempt.ts';
import type { PipelineOptions } from '../../src/resilience/call-options.ts';
import { Deadline, runWithDeadline } from '../../src/resilience/deadline.ts';
import { createFailure, type Failure } from '../../src/resilience/failure.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';

const reset = () => Object.assign(new Error('hang up'), { code: 'ECONNRESET' });
const lost = () => Promise.reject(reset());
const never = () => new Promise<never>(() => {});

const setUp = (settings: PolicySettings, options: Omit<PipelineOptions, 'clock'> = {}) => {
  const clock = new ManualClock();
  const pipeline = createPipeline('db', settings, { random: () => 0, ...options, clock });
  return { clock, pipeline };
};

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: { code?: string }) => error?.code ?? error,
  );

describe('waiting for a turn', () => {
  test('background work leaves the reserve of the rate limit to interactive calls', async () => {
    const { clock, pipeline } = setUp({
      rateLimit: { limit: 10, interval: 1_000, maxWait: 5_000 },
    });
    for (let i = 0; i < 8; i++) await pipeline.execute(() => i, { priority: 'background' });
    const done: string[] = [];
    const background = pipeline.execute(() => done.push('b'), { priority: 'background' });
    await pipeline.execute(() => done.push('i'));
    await flush();
    expect(done).toEqual(['i']);
    await clock.advance(199);
    expect(done).toEqual(['i']);
    await clock.advance(1);
    await background;
    expect(done).toEqual(['i', 'b']);
  });

  test('background work leaves the last fifth of the places to interactive calls', async () => {
    const { pipeline } = setUp({ bulkhead: { limit: 5, queue: 5 } });
    const started: string[] = [];
    const work = (name: string) => () => {
      started.push(name);
      return never();
    };
    for (let i = 0; i < 5; i++) {
      void pipeline.execute(work(`b${i}`), { priority: 'background' });
    }
    void pipeline.execute(work('i'));
    await flush();
    expect(started).toEqual(['b0', 'b1', 'b2', 'b3', 'i']);
    expect(pipeline.bulkhead?.stats().queued).toBe(1);
  });

  test('each key has its own rate, whether it waits or not', async () => {
    const { clock, pipeline } = setUp({
      rateLimit: { limit: 1, interval: 1_000, maxWait: 1_000 },
    });
    const done: string[] = [];
    const call = (rateLimitKey: string) =>
      pipeline.execute(() => done.push(rateLimitKey), { rateLimitKey });
    await Promise.all([call('a'), call('b')]);
    const waiting = [call('a'), call('b')];
    await clock.advance(1_000);
    await Promise.all(waiting);
    expect(done).toEqual(['a', 'b', 'a', 'b']);
  });

  test.each([
    ['rate limit', { rateLimit: { limit: 1, interval: 1_000, maxWait: 5_000 } }],
    ['bulkhead', { bulkhead: { limit: 1, queue: 1 } }],
  ])('in the %s ends with the caller, and with the deadline', async (_, settings) => {
    const { clock, pipeline } = setUp(settings);
    void pipeline.execute(never);
    const work = vi.fn();
    const abort = new AbortController();
    const left = codeOf(pipeline.execute(work, { signal: abort.signal }));
    await flush();
    abort.abort('gone');
    expect(await left).toBe('gone');
    const late = codeOf(pipeline.execute(work, { deadline: Deadline.after(100, clock) }));
    await clock.advance(100);
    expect(await late).toMatch(/^(?:RATE_LIMIT_EXCEEDED|BULKHEAD_FULL)$/);
    expect(work).not.toHaveBeenCalled();
  });

  test('whoever leaves in the moment of the turn is not served, and gives the place back', async () => {
    for (const leave of ['abort', 'deadline']) {
      const { clock, pipeline } = setUp({ bulkhead: { limit: 1, queue: 1 } });
      const { bulkhead } = pipeline;
      bulkhead?.tryAcquire();
      const work = vi.fn();
      const abort = new AbortController();
      const deadline = Deadline.after(100, clock);
      const call = codeOf(pipeline.execute(work, { signal: abort.signal, deadline }));
      await flush();
      bulkhead?.release();
      if (leave === 'abort') abort.abort('gone');
      else clock.jump(100);
      expect(await call).toBe(leave === 'abort' ? 'gone' : 'DEADLINE_EXCEEDED');
      expect(work).not.toHaveBeenCalled();
      expect(bulkhead?.stats().active).toBe(0);
    }
  });

  test('a call that is over before it begins takes nothing', async () => {
    const { clock, pipeline } = setUp({ rateLimit: { limit: 5 } });
    const work = vi.fn();
    expect(await codeOf(pipeline.execute(work, { signal: AbortSignal.abort('gone') }))).toBe(
      'gone',
    );
    const deadline = Deadline.after(0, clock);
    expect(await codeOf(pipeline.execute(work, { deadline }))).toBe('DEADLINE_EXCEEDED');
    expect(work).not.toHaveBeenCalled();
    expect(pipeline.rateLimiter?.stats().accepted).toBe(0);
  });
});

describe('the deadline of a call', () => {
  test.each([
    ['of the settings', 300, undefined, undefined, 300],
    ['of the caller', 300, 200, undefined, 200],
    ['of the call around it', 300, 200, 100, 100],
    ['of the settings, when all others are later', 100, 200, 300, 100],
    ['of the caller, when all others are later', 300, 100, 200, 100],
    ['of the call around it alone', undefined, undefined, 100, 100],
    ['of the caller alone', undefined, 100, undefined, 100],
    ['of no one', undefined, undefined, undefined, Number.POSITIVE_INFINITY],
  ])('is the earliest: that %s', async (_, own, given, outer, expected) => {
    const { clock, pipeline } = setUp(own === undefined ? {} : { deadline: own });
    const options = given === undefined ? {} : { deadline: Deadline.after(given, clock) };
    const call = () => pipeline.execute(({ deadline }) => deadline.remaining(), options);
    const remaining =
      outer === undefined ? call() : runWithDeadline(Deadline.after(outer, clock), call);
    expect(await remaining).toBe(expected);
  });

  test('that never comes needs no timer', async () => {
    const { clock, pipeline } = setUp({});
    void pipeline.execute(never, { deadline: Deadline.never });
    void runWithDeadline(Deadline.never, () => pipeline.execute(never));
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('breaker and retry', () => {
  test('a probe may take as long as a call, unless its lease is set', () => {
    const lease = (settings: PolicySettings) => {
      const { pipeline } = setUp(settings);
      pipeline.destroy();
      return pipeline.breaker?.settings.probeLease;
    };
    expect(lease({ timeout: 1_000, breaker: { probeLease: 5 } })).toBe(5);
    expect(lease({ breaker: {} })).toBe(60_000);
    expect(lease({ timeout: 1_000, breaker: {} })).toBeGreaterThanOrEqual(1_000);
  });

  test('with the scope of an attempt, the breaker that opens between two ends the call', async () => {
    const { clock, pipeline } = setUp({
      breaker: { threshold: 2, scope: 'attempt' },
      retry: { maxRetries: 5, baseDelay: 1 },
    });
    let calls = 0;
    const error = reset();
    const outcome = pipeline.outcome(() => {
      calls++;
      throw error;
    });
    await clock.advance(1_000);
    // What the attempts said tells more than the refusal of the third.
    expect(await outcome).toMatchObject({ ok: false, error, attempts: 2 });
    expect([calls, pipeline.breaker?.state]).toEqual([2, 'open']);
    expect(await codeOf(pipeline.execute(() => 'up'))).toBe('CIRCUIT_OPEN');
  });

  test('with the scope of a call, all of its attempts count once', async () => {
    const { clock, pipeline } = setUp({
      breaker: { threshold: 2 },
      retry: { maxRetries: 5, baseDelay: 1, budget: false },
    });
    const outcome = pipeline.outcome(lost);
    await clock.advance(1_000);
    expect(await outcome).toMatchObject({ attempts: 6 });
    expect(pipeline.breaker?.toJSON()).toMatchObject({ state: 'closed', failureCount: 1 });
  });

  test('a slow call counts by the whole of its time', async () => {
    const { clock, pipeline } = setUp({ breaker: { threshold: 1, slowCallDuration: 100 } });
    const call = pipeline.execute(
      () => new Promise<void>((resolve) => clock.setTimer(100, resolve)),
    );
    await clock.advance(100);
    await call;
    expect(pipeline.breaker?.state).toBe('open');
  });

  test('a caller that left hears its own reason, whatever the work made of it', async () => {
    const { clock, pipeline } = setUp({ breaker: { threshold: 1 } });
    const abort = new AbortController();
    const outcome = await pipeline.outcome(
      () => {
        abort.abort('gone');
        throw reset();
      },
      { signal: abort.signal },
    );
    expect(outcome).toMatchObject({ ok: false, error: 'gone', failure: { code: 'CANCELLED' } });
    expect([pipeline.breaker?.state, clock.pendingTimers]).toEqual(['closed', 0]);
  });

  test('without a budget nothing keeps a hedge back', async () => {
    const { clock, pipeline } = setUp({ hedge: { delay: 10 }, retry: { budget: false } });
    for (let i = 0; i < 10; i++) {
      const outcome = pipeline.outcome(({ attempt }) => (attempt === 1 ? never() : 'hedged'));
      await clock.advance(10);
      expect(await outcome).toMatchObject({ value: 'hedged', attempts: 2 });
    }
  });

  test('an answer that got lost is told with what happened and its cause', async () => {
    const { pipeline } = setUp({});
    const error = reset();
    const outcome = await pipeline.outcome(() => Promise.reject(error), { idempotent: false });
    expect(outcome).toMatchObject({
      failure: {
        code: 'OUTCOME_UNKNOWN',
        message: 'the answer of "db" was lost (CONNECTION_RESET): the work may have been done',
        cause: error,
      },
    });
    const answered = await pipeline.outcome(() => Promise.reject({ status: 503 }), {
      idempotent: false,
    });
    expect(answered).toMatchObject({ failure: { code: 'UPSTREAM_UNAVAILABLE' } });
  });

  test('the user’s classifier is asked, and that of the call before that of the pipeline', async () => {
    const full = { ...createFailure('RATE_LIMITED'), code: 'FULL' } as Failure;
    const { pipeline } = setUp(
      {},
      { classifier: () => full, classifyResult: () => createFailure('UPSTREAM_ERROR') },
    );
    expect(await pipeline.outcome(lost)).toMatchObject({ failure: { code: 'FULL' } });
    const own = () => createFailure('TOOL_ERROR');
    expect(await pipeline.outcome(() => 'x')).toMatchObject({ ok: true, value: 'x' });
    const judged = await setUp(
      {},
      { classifyResult: () => createFailure('UPSTREAM_ERROR') },
    ).pipeline.outcome(() => 'x', { classifyResult: own });
    expect(judged).toMatchObject({ ok: true, value: 'x', failure: { code: 'TOOL_ERROR' } });
  });
});

describe('what an adaptive limit is told', () => {
  const told = async (work: (context: CallContext, clock: ManualClock) => unknown) => {
    const { clock, pipeline } = setUp({
      timeout: 100,
      bulkhead: { limit: { max: 50 } },
      retry: { maxRetries: 1, baseDelay: 1 },
    });
    if (!pipeline.bulkhead) throw new Error('no bulkhead');
    const release = vi.spyOn(pipeline.bulkhead, 'release');
    const outcome = pipeline.outcome((context) => work(context, clock));
    await clock.advance(1_000);
    await outcome;
    return release.mock.calls;
  };

  test('the time of a single attempt that succeeded', async () => {
    const work = (_: CallContext, clock: ManualClock) =>
      new Promise<void>((resolve) => clock.setTimer(30, resolve));
    expect(await told(work)).toEqual([[30, false]]);
  });

  test('nothing of two attempts, nor of a failure that says nothing', async () => {
    const second = ({ attempt }: CallContext) => (attempt === 1 ? lost() : 'up');
    expect(await told(second)).toEqual([[undefined, false]]);
    expect(await told(lost)).toEqual([[undefined, false]]);
  });

  test('that it has too much to do', async () => {
    const [[, dropped] = []] = await told(() => Promise.reject({ status: 429 }));
    expect(dropped).toBe(true);
  });
});

describe('what it reports', () => {
  let recording: ReturnType<typeof startRecording>;
  beforeEach(() => {
    recording = startRecording();
  });
  afterEach(() => {
    recording.stop();
    diag.disable();
  });
  const counts = async (metric: string, by = 'outcome') =>
    Object.fromEntries(
      (await recording.points(metric)).map(({ attributes, value }) => {
        expect(attributes['resilience.dependency']).toBe('db');
        return [attributes[by], value];
      }),
    );

  test('retries and hedges that the budget suppressed', async () => {
    const { clock, pipeline } = setUp({
      retry: { maxRetries: 1, baseDelay: 1, budget: { floor: 1, ratio: 0 } },
    });
    for (let i = 0; i < 3; i++) {
      const outcome = pipeline.outcome(lost);
      await clock.advance(10);
      await outcome;
    }
    expect(await counts('resilience.retry.attempts')).toEqual({ failure: 1, budget_exhausted: 2 });

    const hedged = setUp({ hedge: { delay: 10 }, retry: { budget: { floor: 0, ratio: 0 } } });
    void hedged.pipeline.outcome(never);
    await hedged.clock.advance(100);
    expect(await counts('resilience.hedges')).toEqual({ budget_exhausted: 1 });
  });

  test('a retry that is hedged counts as one retry and one hedge', async () => {
    const { clock, pipeline } = setUp({
      hedge: { delay: 10 },
      retry: { maxRetries: 1, baseDelay: 1 },
    });
    const outcome = pipeline.outcome(({ attempt }) =>
      attempt === 1 ? lost() : attempt === 2 ? never() : 'up',
    );
    await clock.advance(100);
    expect(await outcome).toMatchObject({ value: 'up', attempts: 3 });
    expect(await counts('resilience.hedges')).toEqual({ won: 1 });
    // The second attempt was a retry; it has neither succeeded nor failed.
    expect(await counts('resilience.retry.attempts')).toEqual({});

    const plain = setUp({ hedge: { delay: 10 }, retry: { maxRetries: 1, baseDelay: 1 } });
    const second = plain.pipeline.outcome(({ attempt }) => (attempt === 1 ? lost() : 'up'));
    await plain.clock.advance(100);
    expect(await second).toMatchObject({ value: 'up', attempts: 2 });
    expect(await counts('resilience.retry.attempts')).toEqual({ success: 1 });
  });

  test('the wait before a retry in seconds, and each event with its severity', async () => {
    const told: unknown[] = [];
    logs.disable();
    logs.setGlobalLoggerProvider({
      getLogger: () => ({
        enabled: () => true,
        emit: ({ eventName, severityText, attributes }) =>
          void told.push([eventName, severityText, attributes?.['resilience.delay']]),
      }),
    });
    const { clock, pipeline } = setUp({
      timeout: 100,
      retry: { maxRetries: 1, baseDelay: 1_500, jitter: 'none' },
    });
    const outcome = pipeline.outcome(never);
    await clock.advance(5_000);
    await outcome;
    expect(told).toEqual([
      ['resilience.timeout.exceeded', 'WARN', undefined],
      ['resilience.retry.scheduled', 'INFO', 1.5],
      ['resilience.timeout.exceeded', 'WARN', undefined],
    ]);
  });

  test('attempts by their outcome, where the breaker counts them', async () => {
    const { clock, pipeline } = setUp({
      breaker: { threshold: 2, scope: 'attempt' },
      hedge: { delay: 10 },
    });
    await pipeline.execute(() => 'up');
    await pipeline.outcome(() => Promise.reject({ status: 404 }));
    await pipeline.outcome(lost);
    // The loser of a race has not failed, and neither has what its caller gave up.
    const race = pipeline.outcome(({ attempt, signal }) =>
      attempt === 2
        ? 'up'
        : new Promise((_, reject) => signal.addEventListener('abort', () => reject(reset()))),
    );
    await clock.advance(10);
    await race;
    const abort = new AbortController();
    const left = pipeline.outcome(never, { signal: abort.signal });
    await flush();
    abort.abort();
    await left;
    await flush();
    expect(pipeline.breaker?.state).toBe('closed');
    expect(await counts('resilience.circuit_breaker.calls')).toEqual({
      success: 2,
      ignored: 3,
      failure: 1,
    });
  });

  test('a retry is counted with its outcome, a hedge is none', async () => {
    const { clock, pipeline } = setUp({ retry: { maxRetries: 1, baseDelay: 1 } });
    const outcome = pipeline.outcome(({ attempt }) => (attempt === 1 ? lost() : 'up'));
    await clock.advance(10);
    await outcome;
    expect(await counts('resilience.retry.attempts')).toEqual({ success: 1 });

    const hedged = setUp({ hedge: { delay: 10 } });
    const second = hedged.pipeline.outcome(({ attempt }) => (attempt === 1 ? never() : 'up'));
    await hedged.clock.advance(100);
    expect(await second).toMatchObject({ value: 'up', attempts: 2 });
    expect(await counts('resilience.retry.attempts')).toEqual({ success: 1 });
    expect(await counts('resilience.hedges')).toEqual({ won: 1 });
    expect(recording.events().at(-1)).toEqual({
      eventName: 'resilience.hedge.won',
      attributes: { 'resilience.dependency': 'db' },
    });
  });

  test('times that are over, each with its reason and the number of its attempt', async () => {
    const { clock, pipeline } = setUp({ timeout: 100, deadline: 250, retry: { baseDelay: 0 } });
    const outcome = pipeline.outcome(never);
    await clock.advance(1_000);
    expect(await outcome).toMatchObject({
      failure: {
        code: 'DEADLINE_EXCEEDED',
        message: 'the deadline passed before "db" had answered',
      },
    });
    expect(await counts('resilience.timeouts', 'reason')).toEqual({ attempt: 2, deadline: 1 });
    const events = recording
      .events()
      .filter(({ eventName }) => eventName === 'resilience.timeout.exceeded')
      .map(({ attributes }) => attributes);
    expect(events).toEqual([
      { 'resilience.dependency': 'db', reason: 'attempt', 'resilience.attempt': 1 },
      { 'resilience.dependency': 'db', reason: 'attempt', 'resilience.attempt': 2 },
      { 'resilience.dependency': 'db', reason: 'deadline', 'resilience.attempt': 3 },
    ]);
    const slow = setUp({ timeout: 100 });
    const timedOut = slow.pipeline.outcome(never);
    await slow.clock.advance(100);
    expect(await timedOut).toMatchObject({
      failure: { code: 'TIMEOUT', message: '"db" did not answer within 100 ms' },
    });
  });

  test('spans of further attempts only within a span that is recorded', async () => {
    const { clock, pipeline } = setUp({ retry: { maxRetries: 1, baseDelay: 1 } });
    const twice = () => pipeline.outcome(({ attempt }) => (attempt === 1 ? lost() : 'up'));
    const outside = twice();
    await clock.advance(10);
    await outside;
    expect(recording.spans()).toEqual([]);
    const inside = trace.getTracer('test').startActiveSpan('call', async (span) => {
      const outcome = await twice();
      span.end();
      return outcome;
    });
    await clock.advance(10);
    await inside;
    expect(recording.spans().map(({ name }) => name)).toEqual(['attempt 2', 'call']);
  });
});
