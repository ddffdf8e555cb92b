import { describe, expect, test } from 'vitest';
import type { BreakerEvent } from '../../src/resilience/breaker-model.ts';
import { CircuitBreaker } from '../../src/resilience/circuit-breaker.ts';
import type { Clock } from '../../src/resilience/clock.ts';
import { ResilienceError } from '../../src/resilience/failure.ts';
import type { BreakerSettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { runNode, source } from '../fixtures/run-node.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

const down = () => Promise.reject(Object.assign(new Error('down'), { code: 'ECONNRESET' }));
const notFound = () => Promise.reject(Object.assign(new Error('no such thing'), { status: 404 }));
const up = () => Promise.resolve('up');

const setUp = (settings: BreakerSettings = {}) => {
  const clock = new ManualClock();
  const breaker = new CircuitBreaker(
    'db',
    { threshold: 3, openDuration: 1_000, ...settings },
    { clock },
  );
  const events: string[] = [];
  for (const event of ['open', 'half-open', 'closed', 'isolated', 'rejected'] as BreakerEvent[]) {
    breaker.on(event, () => events.push(event));
  }
  const fail = async (times = 1) => {
    for (let i = 0; i < times; i++) await breaker.execute(down).catch(() => {});
  };
  return { clock, breaker, events, fail };
};

/** Work that ends when told. */
const pending = <T = string>() => {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  return { work: () => promise, resolve, reject };
};

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'answered',
    (error: { code?: string }) => error.code ?? 'error',
  );

describe('CircuitBreaker', () => {
  verifies('B06', async () => {
    const { breaker, fail } = setUp({ threshold: 2 });
    await fail(1);
    expect(breaker.state).toBe('closed');
    await fail(1);
    expect(breaker.state).toBe('open');
  });

  verifies('breaker.minimum-calls', async () => {
    for (const window of ['count', 'time'] as const) {
      const { breaker, fail } = setUp({ window, minimumCalls: 5, failureRate: 0.5 });
      await fail(4);
      expect(breaker.state).toBe('closed');
      await fail(1);
      expect(breaker.state).toBe('open');
    }
  });

  verifies('breaker.slow-calls', async () => {
    const { breaker, clock } = setUp({
      window: 'count',
      minimumCalls: 2,
      slowCallDuration: 100,
      slowCallRate: 0.5,
    });
    const slow = async () => {
      clock.jump(100);
      return 'late';
    };
    expect(await breaker.execute(slow)).toBe('late');
    expect(breaker.state).toBe('closed');
    await breaker.execute(up);
    expect(breaker.state).toBe('closed');
    await breaker.execute(slow);
    expect(breaker.state).toBe('open');
    // A slow probe does not close it either.
    await clock.advance(1_000);
    await breaker.execute(slow);
    expect(breaker.state).toBe('open');
  });

  verifies('breaker.refusal', async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    let calls = 0;
    const refused = await breaker.execute(() => ++calls).catch((error: unknown) => error);
    await clock.advance(400);
    const later = await breaker.execute(() => ++calls).catch((error: unknown) => error);
    expect(calls).toBe(0);
    expect(later).toBe(refused);
    expect(refused).toBeInstanceOf(ResilienceError);
    expect(refused).toMatchObject({
      name: 'CircuitOpenError',
      code: 'CIRCUIT_OPEN',
      failure: { code: 'CIRCUIT_OPEN', source: 'circuit', retryable: true, retryAfter: 0.6 },
    });
  });

  verifies('L28', async () => {
    const { breaker, clock, events, fail } = setUp();
    await fail(3);
    await clock.advance(1_000);
    expect(await breaker.execute(up)).toBe('up');
    expect(breaker.state).toBe('closed');
    expect(events).toEqual(['open', 'half-open', 'closed']);
  });

  verifies('breaker.visible-without-traffic', async () => {
    const { breaker, clock, events, fail } = setUp();
    await fail(3);
    // The timer tells listeners although nobody calls or reads.
    await clock.advance(1_000);
    expect(events).toEqual(['open', 'half-open']);
    // A reader sees it even when the event loop never got to the timer.
    const blocked = setUp();
    await blocked.fail(3);
    blocked.clock.jump(1_000);
    expect(blocked.breaker.state).toBe('half-open');
    expect(blocked.breaker.toJSON().state).toBe('half-open');
    expect(breaker.retryAfter).toBeUndefined();
  });

  verifies('clock.monotonic', async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    clock.stepWallTime(-3_600_000);
    await clock.advance(999);
    expect(breaker.state).toBe('open');
    await clock.advance(1);
    expect(breaker.state).toBe('half-open');
  });

  verifies('breaker.open-not-extended', async () => {
    const { breaker, clock, fail } = setUp({ threshold: 1 });
    const late = pending();
    const running = breaker.execute(late.work).catch(() => {});
    await fail(1);
    await clock.advance(900);
    late.reject(Object.assign(new Error('late'), { code: 'ECONNRESET' }));
    await running;
    await clock.advance(100);
    expect(breaker.state).toBe('half-open');
  });

  verifies('L4', async () => {
    const { breaker, clock, events } = setUp({ threshold: 5 });
    await Promise.all(Array.from({ length: 6 }, () => breaker.execute(down).catch(() => {})));
    expect(events).toEqual(['open']);
    expect(breaker.toJSON()).toMatchObject({ state: 'open', openings: 1, failureCount: 5 });
    await clock.advance(1_000);
    expect(breaker.state).toBe('half-open');
  });

  verifies('breaker.open-backoff', async () => {
    const { breaker, clock, fail } = setUp({ openBackoff: 2, maxOpenDuration: 3_000 });
    await fail(3);
    const openTimes: (number | undefined)[] = [];
    for (let i = 0; i < 4; i++) {
      openTimes.push(breaker.retryAfter);
      await clock.advance((breaker.retryAfter ?? 0) * 1_000);
      await fail(1);
    }
    expect(openTimes).toEqual([1, 2, 3, 3]);
    await clock.advance(3_000);
    await breaker.execute(up);
    await fail(3);
    expect(breaker.retryAfter).toBe(1);
  });

  verifies('breaker.excess-probes-refused', async () => {
    const { breaker, clock, fail } = setUp({ probes: 2 });
    await fail(3);
    await clock.advance(1_000);
    const probes = [pending(), pending()];
    const running = probes.map((probe) => breaker.execute(probe.work));
    let excess = 0;
    const refused = await Promise.all(
      Array.from({ length: 5 }, () => codeOf(breaker.execute(() => ++excess))),
    );
    expect(refused).toEqual(Array(5).fill('CIRCUIT_OPEN'));
    expect(excess).toBe(0);
    for (const probe of probes) probe.resolve('up');
    await Promise.all(running);
    expect(breaker.state).toBe('closed');
  });

  test('it closes after as many successful probes as asked for, and opens on the first failure', async () => {
    const { breaker, clock, fail } = setUp({ successThreshold: 2 });
    await fail(3);
    await clock.advance(1_000);
    await breaker.execute(up);
    expect(breaker.state).toBe('half-open');
    await breaker.execute(up);
    expect(breaker.state).toBe('closed');
    await fail(3);
    await clock.advance(1_000);
    await breaker.execute(up);
    await fail(1);
    expect(breaker.state).toBe('open');
  });

  test('an open time longer than the usual maximum is kept, unless a maximum is set', () => {
    const open = (settings: BreakerSettings) => {
      const { breaker } = setUp({ threshold: 1, ...settings });
      breaker.recordFailure();
      return breaker.retryAfter;
    };
    expect(open({ openDuration: 600_000 })).toBe(600);
    expect(open({ openDuration: 600_000, maxOpenDuration: 400_000 })).toBe(400);
  });

  test('tells of half-open though the timer of the platform fires a little early', async () => {
    const clock = new ManualClock();
    const early: Clock = {
      now: () => clock.now(),
      wallTime: () => clock.wallTime(),
      setTimer: (delay, callback) => clock.setTimer(Math.max(1, delay - 0.5), callback),
    };
    const breaker = new CircuitBreaker(
      'db',
      { threshold: 1, openDuration: 1_000 },
      { clock: early },
    );
    const events: string[] = [];
    breaker.on('half-open', () => events.push('half-open'));
    breaker.recordFailure();
    await clock.advance(1_010);
    expect([events, clock.pendingTimers]).toEqual([['half-open'], 0]);
  });

  test('a listener that listens anew while it is told hears of the next time, not of this one', async () => {
    const { breaker } = setUp({ threshold: 1 });
    let told = 0;
    const listen = () => {
      const stop = breaker.on('open', () => {
        if (++told > 10) return;
        stop();
        listen();
      });
    };
    listen();
    breaker.recordFailure();
    expect(told).toBe(1);
    breaker.reset();
    breaker.recordFailure();
    expect(told).toBe(2);
  });

  test('a call whose beginning is not told is not a slow one', () => {
    const { breaker, clock } = setUp({ threshold: 1, slowCallDuration: 100 });
    clock.jump(5_000);
    const permit = breaker.tryAcquire();
    if (permit) breaker.settle(permit, 'success');
    expect(breaker.state).toBe('closed');
  });

  test('a state restored over an isolated one counts its recovery from when it opened', async () => {
    const recording = startRecording();
    try {
      const { breaker, clock } = setUp();
      breaker.isolate();
      const openedAt = new Date(clock.wallTime() - 400).toISOString();
      breaker.restore({ ...breaker.toJSON(), state: 'open', openedAt, openings: 1 });
      await clock.advance(600);
      await breaker.execute(up);
      const points = await recording.points('resilience.circuit_breaker.recovery.duration');
      expect(points).toMatchObject([{ value: 1, sum: 1 }]);
    } finally {
      recording.stop();
    }
  });

  test('reset forgets the successes in every state', () => {
    const { breaker } = setUp();
    for (const prepare of [() => {}, () => breaker.isolate()]) {
      breaker.recordSuccess();
      prepare();
      breaker.reset();
      expect(breaker.toJSON()).toMatchObject({ state: 'closed', successCount: 0 });
    }
  });

  test('the wait that is left is never negative', async () => {
    const { clock, breaker, fail } = setUp();
    await fail(3);
    // The open time runs out between two readings of the clock.
    const now = clock.now();
    const times = [now + 999.9, now + 1_000.1];
    clock.now = () => times.shift() ?? now + 1_000.1;
    expect(breaker.retryAfter).toBe(0);
  });

  verifies('breaker.probe-lease', async () => {
    const { breaker, clock, fail } = setUp({ probeLease: 500 });
    await fail(3);
    await clock.advance(1_000);
    const hung = pending();
    const running = breaker.execute(hung.work);
    expect(await codeOf(breaker.execute(up))).toBe('CIRCUIT_OPEN');
    await clock.advance(500);
    expect(breaker.state).toBe('half-open');
    // The place is free again, and what the hung probe says in the end decides nothing.
    const second = pending();
    const secondRunning = breaker.execute(second.work);
    hung.resolve('late');
    await running;
    expect(breaker.state).toBe('half-open');
    second.resolve('up');
    await secondRunning;
    expect(breaker.state).toBe('closed');
  });

  test('a probe that comes back after its lease decides nothing, even when nobody took its place', async () => {
    const { breaker, clock, fail } = setUp({ probeLease: 500 });
    await fail(3);
    await clock.advance(1_000);
    const hung = pending();
    const running = breaker.execute(hung.work);
    await clock.advance(500);
    hung.resolve('late');
    await running;
    expect(breaker.state).toBe('half-open');
    expect(await breaker.execute(up)).toBe('up');
    expect(breaker.state).toBe('closed');
  });

  verifies('L10', async () => {
    const { breaker, clock, fail } = setUp({ probes: 2, probeLease: 500 });
    await fail(3);
    await clock.advance(1_000);
    expect([breaker.tryAcquire(), breaker.tryAcquire()].every(Boolean)).toBe(true);
    expect(breaker.tryAcquire()).toBeUndefined();
    await clock.advance(500);
    expect(await breaker.execute(up)).toBe('up');
    expect(breaker.state).toBe('closed');
  });

  verifies('M4', async () => {
    const { breaker, clock, fail } = setUp({ probeLease: 60_000 });
    await fail(3);
    await clock.advance(1_000);
    void breaker.execute(() => new Promise(() => {}));
    expect(await codeOf(breaker.execute(up))).toBe('CIRCUIT_OPEN');
    await clock.advance(60_000);
    expect(await breaker.execute(up)).toBe('up');
  });

  verifies('L9', async () => {
    const { breaker, clock, events } = setUp({ threshold: 1 });
    const slow = Array.from({ length: 10 }, () => pending());
    const running = slow.map((call) => breaker.execute(call.work).catch(() => {}));
    slow[0]?.reject(Object.assign(new Error('down'), { code: 'ECONNRESET' }));
    await flush();
    await clock.advance(1_000);
    const probe = pending();
    const probing = breaker.execute(probe.work);
    for (const call of slow.slice(1))
      call.reject(Object.assign(new Error('down'), { code: 'EPIPE' }));
    await Promise.all(running);
    expect(events).toEqual(['open', 'half-open']);
    probe.resolve('up');
    await probing;
    expect(events).toEqual(['open', 'half-open', 'closed']);
  });

  verifies(['L2', 'M8'], async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    await clock.advance(1_000);
    await breaker.execute(notFound).catch(() => {});
    expect(breaker.state).toBe('half-open');
    expect(await breaker.execute(up)).toBe('up');
    expect(breaker.state).toBe('closed');
  });

  verifies('L8', async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    await clock.advance(1_000);
    const bug = () => Promise.reject(new TypeError('x is not a function'));
    await breaker.execute(bug).catch(() => {});
    expect(breaker.state).toBe('half-open');
    await fail(1);
    expect(breaker.state).toBe('open');
  });

  verifies('L29', async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    await clock.advance(1_000);
    const exits = [
      () => Promise.reject(Object.assign(new Error('who?'), { status: 401 })),
      () => {
        throw new RangeError('sync');
      },
      () => Promise.reject(new DOMException('gone', 'AbortError')),
      () => Promise.reject(undefined),
      notFound,
    ];
    for (const exit of exits) {
      const before = breaker.state;
      await breaker.execute(exit as () => Promise<never>).catch(() => {});
      // `undefined` is an unknown error and may open it; nothing may leave it without a permit.
      if (breaker.state === 'open') await clock.advance(1_000);
      expect([before, breaker.state]).toEqual(['half-open', 'half-open']);
    }
    expect(await breaker.execute(up)).toBe('up');
  });

  verifies('L1', async () => {
    const settings = { window: 'count', minimumCalls: 5, size: 10, failureRate: 0.5 } as const;
    const { breaker, clock, fail } = setUp(settings);
    await fail(5);
    await clock.advance(1_000);
    await fail(1);
    expect(breaker.state).toBe('open');
    await clock.advance(1_000);
    expect(await breaker.execute(up)).toBe('up');
    expect(breaker.state).toBe('closed');
  });

  verifies('M2', async () => {
    const { breaker, clock, fail } = setUp();
    const old = pending();
    const running = breaker.execute(old.work);
    await fail(3);
    await clock.advance(1_000);
    expect(breaker.state).toBe('half-open');
    old.resolve('late');
    await running;
    expect(breaker.state).toBe('half-open');
  });

  verifies('M14', async () => {
    const { breaker, clock, fail } = setUp();
    const old = pending();
    const running = breaker.execute(old.work).catch(() => {});
    await fail(3);
    await clock.advance(1_000);
    const probe = pending();
    const probing = breaker.execute(probe.work);
    old.reject(Object.assign(new Error('late'), { code: 'ECONNRESET' }));
    await running;
    expect(breaker.state).toBe('half-open');
    probe.resolve('up');
    await probing;
    expect(breaker.state).toBe('closed');
  });

  verifies('breaker.generations', async () => {
    const { breaker, clock, fail } = setUp();
    await fail(3);
    await clock.advance(1_000);
    // A probe of the first half-open time that ends in the second one.
    const old = pending();
    const running = breaker.execute(old.work);
    breaker.recordFailure();
    expect(breaker.state).toBe('open');
    await clock.advance(1_000);
    expect(breaker.state).toBe('half-open');
    old.resolve('late');
    await running;
    expect(breaker.state).toBe('half-open');
    // And one of a closed time that was ended by hand.
    const before = pending();
    breaker.reset();
    const closedCall = breaker.execute(before.work).catch(() => {});
    breaker.reset();
    await fail(2);
    before.reject(Object.assign(new Error('late'), { code: 'ECONNRESET' }));
    await closedCall;
    expect(breaker.state).toBe('closed');
  });

  verifies('breaker.programming-errors', async () => {
    const { breaker } = setUp({ threshold: 1 });
    for (const error of [new TypeError('a'), new RangeError('b'), new ReferenceError('c')]) {
      await breaker.execute(() => Promise.reject(error)).catch(() => {});
    }
    expect(breaker.state).toBe('closed');
  });

  verifies('breaker.listeners', async () => {
    const { breaker, clock, fail } = setUp();
    breaker.on('open', () => {
      throw new Error('listener');
    });
    breaker.on('closed', () => {
      throw new Error('listener');
    });
    await fail(3);
    expect(breaker.state).toBe('open');
    await clock.advance(1_000);
    expect(await breaker.execute(up)).toBe('up');
    expect(breaker.state).toBe('closed');
  });

  verifies('breaker.by-hand', async () => {
    const { breaker, clock, events, fail } = setUp();
    breaker.recordFailure();
    breaker.recordFailure();
    breaker.recordSuccess();
    expect(breaker.toJSON()).toMatchObject({ state: 'closed', failureCount: 0, successCount: 1 });
    for (let i = 0; i < 3; i++) breaker.recordFailure();
    expect(breaker.state).toBe('open');
    breaker.reset();
    expect(breaker.toJSON()).toMatchObject({ state: 'closed', failureCount: 0, openings: 0 });
    expect(clock.pendingTimers).toBe(0);

    breaker.isolate();
    await clock.advance(1e9);
    expect(breaker.state).toBe('isolated');
    const refused = (await breaker.execute(up).catch((error: unknown) => error)) as ResilienceError;
    expect(refused.failure).toMatchObject({
      code: 'CIRCUIT_OPEN',
      message: 'circuit breaker "db" was isolated by hand',
      retryable: false,
    });
    expect(refused.failure.retryAfter).toBeUndefined();
    breaker.reset();
    expect(await breaker.execute(up)).toBe('up');
    expect(events).toEqual(['open', 'closed', 'isolated', 'rejected', 'closed']);

    const stop = breaker.on('open', () => events.push('again'));
    stop();
    await fail(3);
    expect(events.at(-1)).toBe('open');
    breaker.destroy();
    breaker.destroy();
    expect(clock.pendingTimers).toBe(0);
    await clock.advance(1_000);
    expect(await breaker.execute(up)).toBe('up');
    expect(events.at(-1)).toBe('open');
  });

  verifies('M1', async () => {
    const { breaker, clock, fail } = setUp({ openDuration: 5_000 });
    await clock.advance(60_000);
    await fail(3);
    await clock.advance(2_000);
    const saved = JSON.parse(JSON.stringify(breaker));
    await clock.advance(1_000);
    const restored = new CircuitBreaker('db', { openDuration: 5_000 }, { clock });
    restored.restore(saved);
    expect(restored.state).toBe('open');
    expect(restored.retryAfter).toBe(2);
    expect(restored.toJSON().failureCount).toBe(3);
    await clock.advance(2_000);
    expect(restored.state).toBe('half-open');
  });

  test('restore takes up closed, isolated and half-open, and refuses anything else', () => {
    const { breaker, clock } = setUp();
    breaker.restore({ ...breaker.toJSON(), state: 'isolated' });
    expect(breaker.state).toBe('isolated');
    breaker.restore({ ...breaker.toJSON(), state: 'closed' });
    expect(breaker.state).toBe('closed');
    const openedAt = new Date(clock.wallTime() - 5_000).toISOString();
    breaker.restore({ ...breaker.toJSON(), state: 'half-open', openedAt, openings: 1 });
    expect(breaker.state).toBe('half-open');
    // A calendar that was set back does not make the rest longer than one open time.
    const future = new Date(clock.wallTime() + 1e9).toISOString();
    breaker.restore({ ...breaker.toJSON(), state: 'open', openedAt: future, openings: 1 });
    expect(breaker.retryAfter).toBe(1);
    expect(() => breaker.restore({} as never)).toThrow('state must be one of closed, open');
    expect(() => breaker.restore({ ...breaker.toJSON(), openedAt: 'soon' })).toThrow('openedAt');
  });

  verifies('M11', () => {
    // Cost of a failing call by the size of a full window, both in this run and taken in turns.
    const costOf = (size: number) => {
      const settings = { window: 'count', size, minimumCalls: size, failureRate: 1 } as const;
      const { breaker } = setUp(settings);
      const call = (outcome: 'success' | 'failure') => {
        const permit = breaker.tryAcquire();
        if (permit) breaker.settle(permit, outcome);
      };
      for (let i = 0; i < size; i++) call(i % 2 ? 'success' : 'failure');
      return () => {
        const start = process.hrtime.bigint();
        for (let i = 0; i < 2_000; i++) call(i % 2 ? 'success' : 'failure');
        return Number(process.hrtime.bigint() - start);
      };
    };
    const small = costOf(10);
    const large = costOf(100_000);
    const ratios = Array.from({ length: 21 }, () => large() / small()).sort((a, b) => a - b);
    // 10 000 times the window; anything that looks at each sample would be thousands of times dearer.
    expect(ratios[10]).toBeLessThan(20);
  });

  test('an open breaker lets the process exit', async () => {
    const { code, stdout } = await runNode(`
      import { CircuitBreaker } from '${source('resilience/circuit-breaker.ts')}';
      const breaker = new CircuitBreaker('x', { threshold: 1, openDuration: 3_600_000 });
      breaker.recordFailure();
      console.log(breaker.state);
    `);
    expect([code, stdout]).toEqual([0, 'open\n']);
  });

  test('a listener may reset it while it opens', async () => {
    const { breaker, clock, fail } = setUp();
    breaker.on('open', () => breaker.reset());
    await fail(3);
    expect(breaker.state).toBe('closed');
    expect(clock.pendingTimers).toBe(0);
  });
});
