import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CallContext, Work } from '../../src/resilience/attempt.ts';
import type { CallOptions } from '../../src/resilience/call-options.ts';
import { currentDeadline, Deadline, runWithDeadline } from '../../src/resilience/deadline.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

const setUp = (settings: PolicySettings = {}) => {
  const clock = new ManualClock();
  const pipeline = createPipeline(
    'up',
    { cache: { ttl: 60_000, ...settings.cache }, ...settings },
    { clock, random: () => 1 - Number.EPSILON },
  );
  const upstream = { calls: [] as CallContext[], gates: [] as PromiseWithResolvers<string>[] };
  const work = (context: CallContext) => {
    upstream.calls.push(context);
    const gate = Promise.withResolvers<string>();
    upstream.gates.push(gate);
    return gate.promise;
  };
  const started = clock.now();
  /** What became of a call and when, in milliseconds from the start; undefined while it is out. */
  const call = (
    deadline?: number,
    options: CallOptions<string> = {},
    does: Work<string> = work,
  ) => {
    const state: { end?: unknown; at?: number } = {};
    void pipeline
      .outcome(does, {
        cacheKey: 'k',
        ...(deadline !== undefined && { deadline: Deadline.after(deadline, clock) }),
        ...options,
      })
      .then((outcome) => {
        state.end = outcome.ok ? outcome.value : outcome.failure.code;
        state.at = clock.now() - started;
      });
    return state;
  };
  return { clock, pipeline, upstream, call };
};
const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const late = (at: number) => ({ end: 'DEADLINE_EXCEEDED', at });

describe('deadlines of those who share a flight', () => {
  verifies('cache.flight-deadline', async () => {
    const { clock, pipeline, upstream, call } = setUp();
    const leader = call(100);
    const brief = call(50);
    const follower = call(10_000);
    const longest = call(20_000);
    const shorter = call(150);
    await clock.advance(5_000);
    expect([leader, brief, shorter]).toEqual([late(100), late(50), late(150)]);
    expect([follower, longest]).toEqual([{}, {}]);
    upstream.gates[0]?.resolve('answer');
    await flush();
    expect([follower, longest]).toEqual(Array(2).fill({ end: 'answer', at: 5_000 }));
    expect([upstream.calls.length, pipeline.cache?.size, clock.pendingTimers]).toEqual([1, 1, 0]);
  });

  test('a follower without a deadline waits for as long as the work takes', async () => {
    const { clock, upstream, call } = setUp();
    const leader = call(100);
    const follower = call();
    await clock.advance(100_000);
    expect([leader, follower]).toEqual([late(100), {}]);
    upstream.gates[0]?.resolve('answer');
    await flush();
    expect([follower.end, upstream.calls.length, clock.pendingTimers]).toEqual(['answer', 1, 0]);
  });

  test('retries and their waits go by the latest deadline', async () => {
    const { clock, upstream, call } = setUp({ retry: { baseDelay: 1_000, jitter: 'none' } });
    const leader = call(100);
    const follower = call(10_000);
    upstream.gates[0]?.reject(reset());
    await clock.advance(1_000);
    upstream.gates[1]?.resolve('answer');
    await flush();
    expect([leader, follower]).toEqual([late(100), { end: 'answer', at: 1_000 }]);
  });

  test.each([['bulkhead', { bulkhead: { limit: 1, queue: 5, maxWait: 800 } }, 'BULKHEAD_FULL']])(
    'a wait in the %s is not cut short, and has its own limit',
    async (_, settings, code) => {
      for (const comes of [true, false]) {
        const { clock, pipeline, upstream, call } = setUp(settings);
        const holder = call(undefined, { cacheKey: 'other' });
        const leader = call(100);
        const follower = call(10_000);
        await clock.advance(500);
        expect([leader, follower, pipeline.bulkhead?.stats().queued]).toEqual([late(100), {}, 1]);
        if (comes) upstream.gates[0]?.resolve('done');
        await clock.advance(500);
        upstream.gates[1]?.resolve('answer');
        await flush();
        expect(follower).toEqual(comes ? { end: 'answer', at: 1_000 } : { end: code, at: 800 });
        expect(holder.end).toBe(comes ? 'done' : undefined);
      }
    },
  );

  test('an attempt keeps its own time limit, from its beginning or from when it was renewed', async () => {
    for (const renewed of [0, 40, 120]) {
      const { clock, upstream, call } = setUp({ timeout: 150 });
      const leader = call(100);
      const follower = call(10_000);
      await clock.advance(renewed);
      if (renewed) upstream.calls[0]?.renew();
      await clock.advance(500);
      expect(leader).toEqual(late(100));
      expect(follower).toEqual({ end: 'TIMEOUT', at: 150 + renewed });
      expect(clock.pendingTimers).toBe(0);
    }
  });

  test('the work and what it calls see the time that is left', async () => {
    const { clock, call } = setUp();
    const gate = Promise.withResolvers<void>();
    const seen: (number | undefined)[] = [];
    const work = async ({ deadline }: CallContext) => {
      seen.push(deadline.remaining(), currentDeadline()?.remaining());
      await gate.promise;
      seen.push(deadline.remaining(), currentDeadline()?.remaining());
      return 'answer';
    };
    call(100, {}, work);
    call(1_000);
    await clock.advance(200);
    gate.resolve();
    await flush();
    expect(seen).toEqual([100, 100, 800, 800]);
  });

  test('each caller is told once, as it leaves, and the last deadline ends the work as a failure', async () => {
    const recording = startRecording();
    try {
      const { clock, pipeline, upstream, call } = setUp({ breaker: {} });
      const calls = [100, 300, 200, 250].map((ms) => call(ms));
      const { signal } = upstream.calls[0] as CallContext;
      await clock.advance(299);
      expect([signal.aborted, pipeline.breaker?.toJSON().failureCount]).toEqual([false, 0]);
      await clock.advance(1);
      expect(calls).toEqual([100, 300, 200, 250].map(late));
      expect(signal.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      expect(pipeline.breaker?.toJSON().failureCount).toBe(1);
      const [timeouts] = await recording.points('resilience.timeouts');
      expect(timeouts?.value).toBe(4);
      expect(clock.pendingTimers).toBe(0);
    } finally {
      recording.stop();
    }
  });

  test('a caller that its deadline took out counts no more: the last one that leaves ends the work', async () => {
    const { clock, upstream, call } = setUp();
    const abort = new AbortController();
    const leader = call(undefined, { signal: abort.signal });
    const follower = call(100);
    const { signal } = upstream.calls[0] as CallContext;
    await clock.advance(100);
    expect([follower, signal.aborted]).toEqual([late(100), false]);
    abort.abort('gone');
    await flush();
    expect([leader.end, signal.reason]).toEqual(['CANCELLED', 'gone']);
    // Nor does whoever comes next join what was given up.
    const next = call();
    upstream.gates[1]?.resolve('new');
    await flush();
    expect(next.end).toBe('new');
  });

  test('a work that hangs is not kept going by those who come: they begin anew', async () => {
    const { clock, upstream, call } = setUp({ deadline: 1_000 });
    const calls = [];
    for (let at = 0; at < 5_000; at += 100) {
      calls.push(call());
      await clock.advance(100);
    }
    await clock.advance(2_000);
    // Nobody was cut short, and each work had no more than twice the time of a call.
    expect(calls).toEqual(calls.map((_, index) => late(1_000 + index * 100)));
    expect(upstream.calls.length).toBe(5);
    expect(upstream.calls.every(({ signal }) => signal.aborted)).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  test('whoever can wait no longer than the flight joins it, however old it is', async () => {
    const { clock, upstream, call } = setUp();
    call(100);
    const patient = call(10_000);
    await clock.advance(5_000);
    const brief = call(50);
    const within = call(5_000);
    const beyond = call(5_001);
    await clock.advance(1_000);
    expect(upstream.calls.length).toBe(2);
    upstream.gates[0]?.resolve('old');
    await flush();
    expect([brief, patient, within]).toEqual([
      late(5_050),
      { end: 'old', at: 6_000 },
      { end: 'old', at: 6_000 },
    ]);
    expect(beyond).toEqual({});
    upstream.gates[1]?.resolve('new');
    await flush();
    expect([beyond.end, clock.pendingTimers]).toEqual(['new', 0]);
  });

  test('a stale answer is served to whoever its deadline took out', async () => {
    const { clock, upstream, call } = setUp({ cache: { ttl: 1_000, staleIfError: 60_000 } });
    const first = call();
    upstream.gates[0]?.resolve('old');
    await flush();
    expect(first.end).toBe('old');
    await clock.advance(2_000);
    const leader = call(100);
    const follower = call(1_000);
    await clock.advance(100);
    expect([leader, follower]).toEqual([{ end: 'old', at: 2_100 }, {}]);
    upstream.gates[1]?.resolve('new');
    await flush();
    expect(follower.end).toBe('new');
  });

  test('who leaves is told of the attempts made so far by the one who made them', async () => {
    const { clock, pipeline, upstream } = setUp({ retry: { baseDelay: 10, jitter: 'none' } });
    const work = async () => {
      if (upstream.calls.push({} as CallContext) === 1) throw reset();
      return new Promise<string>(() => {});
    };
    const outcomes = [100, 50, 1_000].map((ms) =>
      pipeline.outcome(work, { cacheKey: 'k', deadline: Deadline.after(ms, clock) }),
    );
    await clock.advance(1_000);
    const attempts = (await Promise.all(outcomes)).map((outcome) => outcome.attempts);
    // The last one shares how the flight ended.
    expect(attempts).toEqual([2, 0, 2]);
  });

  test('the deadline of the call around it counts as that of the caller', async () => {
    const { clock, upstream, call } = setUp();
    const leader = runWithDeadline(Deadline.after(100, clock), () => call());
    const follower = call(1_000);
    await clock.advance(200);
    expect([leader, follower]).toEqual([late(100), {}]);
    upstream.gates[0]?.resolve('answer');
    await flush();
    expect(follower.end).toBe('answer');
  });

  test.each([
    ['runs', {}, 0],
    ['waits for its next attempt', { retry: { baseDelay: 1_000, jitter: 'none' } }, 1],
    ['waits for its place', { bulkhead: { limit: 1, queue: 1 } }, 2],
  ] as const)(
    'the leader that is cancelled while the call %s fails no follower',
    async (_, settings, phase) => {
      const { clock, pipeline, upstream, call } = setUp(settings);
      if (phase === 2) pipeline.bulkhead?.tryAcquire();
      const abort = new AbortController();
      const leader = call(5_000, { signal: abort.signal });
      const follower = call(5_000);
      if (phase === 1) upstream.gates[0]?.reject(reset());
      await flush();
      abort.abort('gone');
      await flush();
      expect([leader, follower]).toEqual([{ end: 'CANCELLED', at: 0 }, {}]);
      if (phase === 2) pipeline.bulkhead?.release();
      await clock.advance(1_000);
      upstream.gates.at(-1)?.resolve('answer');
      await flush();
      expect(follower.end).toBe('answer');
      expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
      expect(clock.pendingTimers).toBe(0);
    },
  );
});

describe('any order of coming, leaving, passing time and answers', () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ join: fc.option(fc.integer({ min: 1, max: 9 })) }) },
    { weight: 1, arbitrary: fc.record({ leave: fc.nat(12) }) },
    { weight: 3, arbitrary: fc.record({ pass: fc.integer({ min: 1, max: 6 }) }) },
    { weight: 1, arbitrary: fc.record({ answer: fc.nat(5) }) },
  );

  test('everybody hears exactly what is due, when it is due', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { clock, upstream, call } = setUp({ cache: { ttl: 1 } });
        const calls: { end?: unknown; at?: number }[] = [];
        const aborts: AbortController[] = [];
        /** What the promise says: who is aboard, and until when. */
        const due: { end?: unknown; at?: number }[] = [];
        const ends: number[] = [];
        const flights: { first: number; latest: number; in: Set<number> }[] = [];
        const over = new Set<number>();
        let now = 0;
        const settle = (flight: number, id: number, end: unknown) => {
          due[id] = { end, at: now };
          flights[flight]?.in.delete(id);
        };
        for (const action of steps) {
          if ('join' in action) {
            const ms = action.join === null ? Number.POSITIVE_INFINITY : action.join * 10;
            const id = aborts.push(new AbortController()) - 1;
            due[id] = {};
            ends[id] = now + ms;
            const last = flights.at(-1);
            const joins = last?.in.size && (now + ms <= last.latest || now < last.first);
            const flight =
              last && joins ? last : { first: now + ms, latest: now + ms, in: new Set<number>() };
            if (!joins) flights.push(flight);
            flight.latest = Math.max(flight.latest, now + ms);
            flight.in.add(id);
            const signal = aborts[id]?.signal as AbortSignal;
            const options = { signal, useCache: false };
            calls.push(call(Number.isFinite(ms) ? ms : undefined, options));
          } else if ('leave' in action) {
            aborts[action.leave]?.abort();
            flights.forEach(({ in: aboard }, flight) => {
              if (aboard.has(action.leave)) settle(flight, action.leave, 'CANCELLED');
            });
          } else if ('answer' in action) {
            upstream.gates[action.answer]?.resolve(`answer ${action.answer}`);
            if (flights[action.answer]?.in.size) over.add(action.answer);
            for (const id of [...(flights[action.answer]?.in ?? [])]) {
              settle(action.answer, id, `answer ${action.answer}`);
            }
          } else {
            for (let tens = 0; tens < action.pass; tens++) {
              now += 10;
              flights.forEach(({ in: aboard }, flight) => {
                for (const id of [...aboard]) {
                  if (ends[id] === now) settle(flight, id, 'DEADLINE_EXCEEDED');
                }
              });
            }
            await clock.advance(action.pass * 10);
          }
          await flush();
          expect(calls).toEqual(due);
          expect(upstream.calls.map(({ signal }) => signal.aborted)).toEqual(
            flights.map(({ in: aboard }, flight) => aboard.size === 0 && !over.has(flight)),
          );
        }
        for (const abort of aborts) abort.abort();
        await flush();
        expect(clock.pendingTimers).toBe(0);
      }),
    );
  });
});

describe('nested in the work of a flight', () => {
  const nested = (settings: PolicySettings) => {
    const { clock, call } = setUp();
    const inner = createPipeline('inner', { cache: { ttl: 60_000 }, ...settings }, { clock });
    const gate = Promise.withResolvers<string>();
    return { clock, call, inner, gate };
  };

  test.each([
    ['alone', {}],
    ['in a flight of its own', { cacheKey: 'inner' }],
  ])('a call %s goes on for as long as somebody waits', async (_, options) => {
    const { clock, call, inner, gate } = nested({});
    const leader = call(100, {}, () => inner.execute(() => gate.promise, options));
    const follower = call(1_000);
    await clock.advance(500);
    gate.resolve('answer');
    await flush();
    expect([leader, follower]).toEqual([late(100), { end: 'answer', at: 500 }]);
    expect(clock.pendingTimers).toBe(0);
  });

  test.each([
    ['alone', {}],
    ['in a flight of its own', { cacheKey: 'inner' }],
  ])(
    'a call %s has no more than its own time, or what is left of that around it',
    async (_, options) => {
      for (const [own, end] of [
        [200, 200],
        [5_000, 1_000],
      ] as const) {
        const { clock, call, inner } = nested({ deadline: own });
        const ends: unknown[] = [];
        const started = clock.now();
        call(100, {}, async () => {
          const failed = await inner.outcome(() => new Promise<never>(() => {}), options);
          ends.push([!failed.ok && failed.failure.code, clock.now() - started]);
          return 'answer';
        });
        call(1_000);
        await clock.advance(10_000);
        expect(ends).toEqual([['DEADLINE_EXCEEDED', end]]);
        expect(clock.pendingTimers).toBe(0);
      }
    },
  );
});

describe('work that waits for its own answer', () => {
  verifies('cache.waits-for-itself', async () => {
    const { clock, pipeline } = setUp({ retry: {}, breaker: { threshold: 1 } });
    const other = createPipeline('other', { cache: { ttl: 1_000 } }, { clock });
    let runs = 0;
    const own = (): Promise<string> => pipeline.execute(work, { cacheKey: 'k' });
    const around = () => other.execute(own, { cacheKey: 'k' });
    const pause = () => flush().then(own);
    const anew = () => pipeline.execute(work, { cacheKey: 'k', useCache: false });
    let asks: () => Promise<string> = own;
    const work = (): Promise<string> => {
      runs += 1;
      return asks();
    };
    for (asks of [own, around, pause, anew]) {
      runs = 0;
      const error = await own().catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 'INTERNAL_ERROR', failure: { severity: 'permanent' } });
      expect(error.message).toMatch(/\bkey: k\.$/);
      // A defect of the program: not repeated, not counted, and gone with the call.
      expect([runs, pipeline.breaker?.state]).toEqual([1, 'closed']);
    }
    expect(await pipeline.execute(async () => 'fine', { cacheKey: 'k' })).toBe('fine');
    expect(clock.pendingTimers).toBe(0);
  });

  test('two flights that wait for each other: the one that closes the circle fails', async () => {
    const { pipeline } = setUp();
    const gate = Promise.withResolvers<void>();
    const asking = (cacheKey: string) => async (): Promise<string> => {
      await gate.promise;
      return pipeline.execute(async () => 'never asked', { cacheKey });
    };
    const a = pipeline.outcome(asking('b'), { cacheKey: 'a' });
    const b = pipeline.outcome(asking('c'), { cacheKey: 'b' });
    const c = pipeline.outcome(asking('a'), { cacheKey: 'c' });
    gate.resolve();
    for (const outcome of await Promise.all([a, b, c])) {
      expect(outcome).toMatchObject({ ok: false, failure: { code: 'INTERNAL_ERROR' } });
    }
  });

  test('what only looks like a circle is none', async () => {
    const { clock, pipeline } = setUp();
    const key = (cacheKey: string) => ({ cacheKey });
    // Several may wait for one, on several ways.
    const gate = Promise.withResolvers<string>();
    const base = () => pipeline.execute(() => gate.promise, key('base'));
    const over = (name: string) => pipeline.execute(base, key(name));
    const top = pipeline.execute(() => Promise.all([over('x'), over('y'), base()]), key('top'));
    await flush();
    gate.resolve('answer');
    expect(await top).toEqual(['answer', 'answer', 'answer']);

    // Whoever has left waits no more.
    const abort = new AbortController();
    const [one, two] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
    const asksFirst = () =>
      two.promise.then(() => pipeline.execute(async () => 'never asked', key('first')));
    const first = pipeline.execute(async () => {
      await pipeline.outcome(asksFirst, { ...key('second'), signal: abort.signal });
      return one.promise;
    }, key('first'));
    const second = pipeline.execute(async () => 'never asked', key('second'));
    abort.abort();
    await flush();
    two.resolve();
    await flush();
    one.resolve('of the first');
    expect(await Promise.all([first, second])).toEqual(['of the first', 'of the first']);

    // Nor does a flight wait for the refresh of a stale answer that it was given.
    let inner: Promise<unknown> | undefined;
    const refreshed = createPipeline(
      'other',
      { cache: { ttl: 1_000, staleWhileRevalidate: 9_000 } },
      { clock },
    );
    await refreshed.execute(async () => 'old', key('s'));
    await clock.advance(2_000);
    const outer = pipeline.execute(async () => {
      const stale = await refreshed.execute(() => {
        inner = pipeline.execute(async () => 'never asked', key('outer'));
        return inner as Promise<string>;
      }, key('s'));
      await flush();
      return `made of ${stale}`;
    }, key('outer'));
    expect(await outer).toBe('made of old');
    expect(await inner).toBe('made of old');
  });

  test('a flight is nothing to a call of another key, nor to one that comes when it is over', async () => {
    const { pipeline } = setUp();
    let again: Promise<string> | undefined;
    const outer = await pipeline.execute(
      async () => {
        setImmediate(() => {
          again = pipeline.execute(async () => 'again', { cacheKey: 'k', useCache: false });
        });
        return pipeline.execute(async () => 'other', { cacheKey: 'other' });
      },
      { cacheKey: 'k' },
    );
    await flush();
    await flush();
    expect([outer, await again]).toEqual(['other', 'again']);
  });
});
