import { DiagLogLevel, diag, logs } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CircuitBreaker } from '../../src/resilience/circuit-breaker.ts';
import type { BreakerSettings } from '../../src/resilience/policy.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';

const down = () => Promise.reject(Object.assign(new Error('down'), { code: 'ECONNRESET' }));
const notFound = () => Promise.reject(Object.assign(new Error('no such thing'), { status: 404 }));
const up = () => 'up';

const setUp = (settings: BreakerSettings = {}) => {
  const clock = new ManualClock();
  const breaker = new CircuitBreaker(
    'db',
    { threshold: 3, openDuration: 1_000, ...settings },
    { clock },
  );
  const fail = async (times = 1) => {
    for (let i = 0; i < times; i++) await breaker.execute(down).catch(() => {});
  };
  return { clock, breaker, fail };
};

describe('what decides', () => {
  test('an outcome that is ignored does not interrupt failures in a row', async () => {
    const { breaker, fail } = setUp();
    await fail(2);
    await breaker.execute(notFound).catch(() => {});
    await fail(1);
    expect(breaker.state).toBe('open');
  });

  test('a time window forgets what is older than its duration', async () => {
    const { breaker, clock, fail } = setUp({ window: 'time', duration: 1_000, minimumCalls: 4 });
    await fail(3);
    await clock.advance(2_000);
    await fail(3);
    expect(breaker.state).toBe('closed');
    await fail(1);
    expect(breaker.state).toBe('open');
  });

  test('the clock is read for calls only where something depends on it', async () => {
    expect(setUp().breaker.timed).toBe(false);
    expect(setUp({ window: 'count' }).breaker.timed).toBe(false);
    expect(setUp({ window: 'time' }).breaker.timed).toBe(true);
    expect(setUp({ slowCallDuration: 100 }).breaker.timed).toBe(true);
  });

  test('what is recorded by hand is never slow', () => {
    const { breaker } = setUp({ slowCallDuration: 100 });
    for (let i = 0; i < 5; i++) breaker.recordSuccess();
    expect(breaker.state).toBe('closed');
    expect(breaker.toJSON()).toMatchObject({ failureCount: 0, successCount: 5 });
  });

  test('a success by hand closes it though nothing has looked since the open time ran out', async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    clock.jump(1_000);
    breaker.recordSuccess();
    expect(breaker.state).toBe('closed');
  });

  test('a listener that resets it when it half-opens lets the very call through', async () => {
    const { breaker, clock, fail } = setUp();
    breaker.on('half-open', () => breaker.reset());
    await fail(3);
    clock.jump(1_000);
    expect(await breaker.execute(up)).toBe('up');
  });

  test('reset while closed forgets failures without telling anybody that it closed', async () => {
    const { breaker, fail } = setUp();
    const told = vi.fn();
    breaker.on('closed', told);
    breaker.recordSuccess();
    await fail(2);
    breaker.reset();
    expect(breaker.toJSON()).toMatchObject({ failureCount: 0, successCount: 0 });
    await fail(2);
    expect(breaker.state).toBe('closed');
    expect(told).not.toHaveBeenCalled();
  });

  test('isolating it twice is told once', () => {
    const { breaker } = setUp();
    const told = vi.fn();
    breaker.on('isolated', told);
    breaker.isolate();
    breaker.isolate();
    expect(told).toHaveBeenCalledTimes(1);
  });

  test('the permit of a closed breaker has no end', () => {
    expect(setUp().breaker.tryAcquire()?.leaseUntil).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('what it shows', () => {
  test('retryAfter is gone when the open time is over, without any other reading', async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    expect(breaker.retryAfter).toBe(1);
    clock.jump(1_500);
    expect(breaker.retryAfter).toBeUndefined();
  });

  test('a refusal beside running probes says when a place is surely free again', async () => {
    const { breaker, clock, fail } = setUp({ probes: 2, probeLease: 800 });
    await fail(3);
    await clock.advance(1_000);
    const first = breaker.tryAcquire();
    await clock.advance(200);
    expect(breaker.retryAfter).toBeUndefined();
    breaker.tryAcquire();
    expect(breaker.tryAcquire()).toBeUndefined();
    // The first lease ends first.
    expect(breaker.refuse().failure.retryAfter).toBe(0.6);
    expect(breaker.toJSON()).toMatchObject({ state: 'half-open', retryAfter: 0.6 });
    clock.jump(600);
    expect(breaker.retryAfter).toBeUndefined();
    if (first) breaker.settle(first, 'ignored');
  });

  test('it is no longer than an open time, however long a probe may take', async () => {
    const { breaker, clock, fail } = setUp({ probeLease: 60_000 });
    await fail(3);
    await clock.advance(1_000);
    breaker.tryAcquire();
    expect(breaker.retryAfter).toBe(1);
  });

  test('the refusal names the dependency, and a wait only where there is one', async () => {
    const { breaker, fail } = setUp();
    await fail(3);
    const refusal = breaker.refuse();
    expect(refusal.message).toContain('circuit breaker "db" is open');
    expect(refusal.failure.message).toContain('circuit breaker "db" is open');
    expect(refusal.failure.retryAfter).toBe(1);
    breaker.isolate();
    expect(refusal.failure).not.toHaveProperty('retryAfter');
  });

  test('only its own refusal is recognised', () => {
    const { breaker } = setUp();
    expect(breaker.refused(undefined)).toBe(false);
    const refusal = breaker.refuse();
    expect(breaker.refused(refusal)).toBe(true);
    expect(breaker.refused(setUp().breaker.refuse())).toBe(false);
  });

  test('a refusal leaves the stack traces of others as they were', () => {
    const { stackTraceLimit } = Error;
    setUp().breaker.refuse();
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
    expect(stackTraceLimit).toBeGreaterThan(0);
  });

  test('each state has its own snapshot and nothing beyond', async () => {
    const { breaker, clock, fail } = setUp({ successThreshold: 2 });
    const common = { name: 'db', successCount: 0 };
    expect(breaker.toJSON()).toStrictEqual({
      ...common,
      state: 'closed',
      failureCount: 0,
      openings: 0,
    });
    await fail(3);
    const openedAt = new Date(clock.wallTime()).toISOString();
    expect(breaker.toJSON()).toStrictEqual({
      ...common,
      state: 'open',
      failureCount: 3,
      openings: 1,
      retryAfter: 1,
      openedAt,
    });
    await clock.advance(1_000);
    await breaker.execute(up);
    expect(breaker.toJSON()).toStrictEqual({
      ...common,
      state: 'half-open',
      failureCount: 3,
      successCount: 1,
      openings: 1,
      openedAt,
    });
    breaker.isolate();
    expect(Object.keys(breaker.toJSON()).sort()).toEqual([
      'failureCount',
      'name',
      'openings',
      'state',
      'successCount',
    ]);
  });
});

describe('restore', () => {
  test('goes on with the backoff where the former process had come to', () => {
    const { breaker, clock } = setUp({ openBackoff: 2 });
    const openedAt = new Date(clock.wallTime() - 500).toISOString();
    const snapshot = { ...breaker.toJSON(), state: 'open', openedAt } as const;
    breaker.restore({ ...snapshot, openings: 3 });
    expect(breaker.retryAfter).toBe(3.5);
    expect(breaker.toJSON()).toMatchObject({ openings: 3, openedAt });
    for (const openings of [0, -5, Number.NaN]) {
      const { breaker: other } = setUp({ openBackoff: 2 });
      other.restore({ ...snapshot, openings });
      expect(other.toJSON()).toMatchObject({ openings: 1 });
    }
  });

  test('refuses nothing at all and a time that is missing', () => {
    const { breaker } = setUp();
    expect(() => breaker.restore(undefined as never)).toThrow('restore: state must be one of');
    expect(() => breaker.restore({ ...breaker.toJSON(), state: 'open' })).toThrow(
      'openedAt must be an ISO time',
    );
    expect(breaker.state).toBe('closed');
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

  test('every call by its outcome', async () => {
    const { breaker, clock, fail } = setUp({ threshold: 6, slowCallDuration: 100 });
    await breaker.execute(up);
    await breaker.execute(() => clock.jump(100));
    await breaker.execute(notFound).catch(() => {});
    // Slow and failed counts as failed, slow and ignored as ignored.
    await breaker
      .execute(() => {
        clock.jump(100);
        return down();
      })
      .catch(() => {});
    await breaker
      .execute(() => {
        clock.jump(100);
        return notFound();
      })
      .catch(() => {});
    breaker.recordSuccess();
    breaker.recordFailure();
    await fail(5);
    breaker.isolate();
    await fail(2);
    const calls = await recording.points('resilience.circuit_breaker.calls');
    expect(calls.map(({ attributes, value }) => [attributes.outcome, value])).toEqual([
      ['success', 2],
      ['slow', 1],
      ['ignored', 2],
      ['failure', 7],
      ['rejected', 2],
    ]);
  });

  test('the time to recovery from the first opening, and none where nothing was broken', async () => {
    const { breaker, clock, fail } = setUp();
    const recoveries = () => recording.points('resilience.circuit_breaker.recovery.duration');
    breaker.isolate();
    breaker.reset();
    expect(await recoveries()).toEqual([]);
    await fail(3);
    await clock.advance(1_000);
    await fail(1);
    await clock.advance(1_000);
    await breaker.execute(up);
    expect(await recoveries()).toEqual([
      { attributes: { 'resilience.dependency': 'db' }, value: 1, sum: 2 },
    ]);
    // After a restart the time before it counts too.
    const openedAt = new Date(clock.wallTime() - 400).toISOString();
    breaker.restore({ ...breaker.toJSON(), state: 'open', openedAt, openings: 1 });
    await clock.advance(600);
    await breaker.execute(up);
    expect(await recoveries()).toMatchObject([{ value: 2, sum: 3 }]);
  });

  test('its state no longer, once it is destroyed', async () => {
    const breaker = new CircuitBreaker('gone');
    breaker.recordSuccess();
    const asked = vi.spyOn(breaker, 'observe');
    await recording.points('resilience.circuit_breaker.state');
    expect(asked).toHaveBeenCalledTimes(1);
    breaker.destroy();
    await recording.points('resilience.circuit_breaker.state');
    expect(asked).toHaveBeenCalledTimes(1);
  });

  test('what is bad as a warning and what is good as information', async () => {
    const told: unknown[] = [];
    logs.disable();
    logs.setGlobalLoggerProvider({
      getLogger: () => ({
        enabled: () => true,
        emit: ({ eventName, severityText, attributes }) =>
          void told.push([
            eventName?.replace('resilience.circuit_breaker.', ''),
            severityText,
            attributes,
          ]),
      }),
    });
    const { breaker, clock, fail } = setUp();
    await fail(4);
    await clock.advance(1_000);
    await breaker.execute(up);
    breaker.isolate();
    const dependency = { 'resilience.dependency': 'db' };
    expect(told).toEqual([
      ['state_changed', 'WARN', { ...dependency, from: 'closed', to: 'open' }],
      ['rejected', 'WARN', { ...dependency, outcome: 'rejected' }],
      ['state_changed', 'INFO', { ...dependency, from: 'open', to: 'half-open' }],
      ['state_changed', 'INFO', { ...dependency, from: 'half-open', to: 'closed' }],
      ['state_changed', 'WARN', { ...dependency, from: 'closed', to: 'isolated' }],
    ]);
  });

  test('a listener that throws, to the diagnostics', async () => {
    const error = vi.fn();
    const quiet = () => {};
    diag.setLogger(
      { error, warn: quiet, info: quiet, debug: quiet, verbose: quiet },
      { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
    );
    const { breaker, fail } = setUp();
    const broken = new Error('listener');
    breaker.on('open', () => {
      throw broken;
    });
    await fail(3);
    expect(error).toHaveBeenCalledWith('circuit breaker "db": a listener of "open" threw', broken);
  });
});
