import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SingleFlight } from '../../src/resilience/single-flight.ts';
import { flush } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

/** A flight that ends when told, and remembers what it was given. */
const setUp = () => {
  const flights = new SingleFlight<string>();
  const started: { signal: AbortSignal; end: PromiseWithResolvers<string> }[] = [];
  const start = (signal: AbortSignal) => {
    const end = Promise.withResolvers<string>();
    started.push({ signal, end });
    return end.promise;
  };
  return { flights, started, start };
};

describe('SingleFlight', () => {
  verifies('single-flight.shared', async () => {
    const { flights, started, start } = setUp();
    const calls = Array.from({ length: 100 }, () => flights.run('key', undefined, start));
    const other = flights.run('other', undefined, start);
    expect(calls.map(({ shared }) => shared)).toEqual([false, ...Array(99).fill(true)]);
    expect(other.shared).toBe(false);
    expect(started).toHaveLength(2);
    started[0]?.end.resolve('answer');
    const answers = await Promise.all(calls.map(({ promise }) => promise));
    expect(new Set(answers)).toEqual(new Set(['answer']));
    expect(flights.size).toBe(1);
    expect(flights.run('key', undefined, start).shared).toBe(false);
    expect(started).toHaveLength(3);
  });

  verifies('M9', async () => {
    const { flights, started, start } = setUp();
    const down = new Error('down');
    const calls = [1, 2].map(() => flights.run('key', new AbortController().signal, start));
    started[0]?.end.reject(down);
    const ends = await Promise.allSettled(calls.map(({ promise }) => promise));
    expect(ends).toEqual([1, 2].map(() => ({ status: 'rejected', reason: down })));
    expect(flights.size).toBe(0);
    const next = flights.run('key', undefined, start);
    expect(next.shared).toBe(false);
    started[1]?.end.resolve('up again');
    expect(await next.promise).toBe('up again');
  });

  verifies('single-flight.abort-is-local', async () => {
    const { flights, started, start } = setUp();
    const leader = new AbortController();
    const follower = new AbortController();
    const first = flights.run('key', leader.signal, start);
    const second = flights.run('key', follower.signal, start);
    const third = flights.run('key', undefined, start);
    const reason = new Error('the leader left');
    leader.abort(reason);
    await expect(first.promise).rejects.toBe(reason);
    expect(started[0]?.signal.aborted).toBe(false);
    started[0]?.end.resolve('answer');
    expect(await second.promise).toBe('answer');
    expect(await third.promise).toBe('answer');

    const last = new AbortController();
    const alone = flights.run('key', last.signal, start);
    last.abort('nobody is left');
    await expect(alone.promise).rejects.toBe('nobody is left');
    expect(started[1]?.signal.reason).toBe('nobody is left');
    // The next one does not join what was given up, and is not ended by its end.
    const next = flights.run('key', undefined, start);
    expect(next.shared).toBe(false);
    started[1]?.end.reject(new Error('aborted late'));
    await flush();
    expect(flights.size).toBe(1);
    started[2]?.end.resolve('new');
    expect(await next.promise).toBe('new');
  });

  test('leaves no listener on the signals of its callers', async () => {
    const { flights, started, start } = setUp();
    const { signal } = new AbortController();
    const calls = ['one', 'other'].map((key) => flights.run(key, signal, start).promise);
    started[0]?.end.resolve('answer');
    started[1]?.end.reject(new Error('down'));
    await Promise.allSettled(calls);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('a signal that aborted before starts nothing', async () => {
    const { flights, started, start } = setUp();
    const { promise, shared } = flights.run('key', AbortSignal.abort('gone'), start);
    await expect(promise).rejects.toBe('gone');
    expect(shared).toBe(false);
    expect(started).toHaveLength(0);
  });

  test('a caller that leaves while its flight starts has its answer at once', async () => {
    const flights = new SingleFlight<string>();
    const leaver = new AbortController();
    let told: AbortSignal | undefined;
    const { promise } = flights.run('key', leaver.signal, (signal) => {
      told = signal;
      leaver.abort('gone');
      return new Promise(() => {});
    });
    await expect(promise).rejects.toBe('gone');
    expect([told?.aborted, flights.size]).toEqual([true, 0]);
  });

  test('a start that throws is a rejection, and is over', async () => {
    const flights = new SingleFlight<string>();
    const { promise } = flights.run('key', undefined, () => {
      throw new Error('synchronous');
    });
    await expect(promise).rejects.toThrow('synchronous');
    expect(flights.size).toBe(0);
  });

  test('no rejection is left unhandled, whoever has left', async () => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', listen);
    try {
      const { flights, started, start } = setUp();
      const abort = new AbortController();
      flights.run('key', abort.signal, start).promise.catch(() => {});
      abort.abort('gone');
      started[0]?.end.reject(new Error('nobody hears this'));
      // Nor when a caller never looked at what it was given.
      flights.run('key', undefined, start);
      started[1]?.end.reject(new Error('nor this'));
      await flush();
      await flush();
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', listen);
    }
  });

  test('any order of joining, leaving and ending: everybody hears exactly what is due', async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ join: fc.constantFrom('a', 'b') }) },
      { weight: 2, arbitrary: fc.record({ leave: fc.nat(20) }) },
      { weight: 2, arbitrary: fc.record({ end: fc.nat(5), ok: fc.boolean() }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { flights, started, start } = setUp();
        const current = new Map<string, { flight: number; in: Set<number> }>();
        const aborts: AbortController[] = [];
        const expected: string[] = [];
        const seen: string[] = [];
        const over = new Set<number>();
        for (const action of steps) {
          if ('join' in action) {
            const id = aborts.push(new AbortController()) - 1;
            const known = current.get(action.join);
            const flight = known ?? { flight: started.length, in: new Set<number>() };
            current.set(action.join, flight);
            flight.in.add(id);
            const signal = aborts[id]?.signal;
            const { promise, shared } = flights.run(action.join, signal, start);
            expect(shared).toBe(known !== undefined);
            promise.then(
              (value) => seen.push(`${id} ${value}`),
              (reason) => seen.push(`${id} ${reason}`),
            );
          } else if ('leave' in action) {
            aborts[action.leave]?.abort(`left ${action.leave}`);
            for (const [key, flight] of current) {
              if (!flight.in.delete(action.leave)) continue;
              expected.push(`${action.leave} left ${action.leave}`);
              if (flight.in.size > 0) continue;
              current.delete(key);
              expect(started[flight.flight]?.signal.aborted).toBe(true);
            }
          } else if (action.end < started.length && !over.has(action.end)) {
            over.add(action.end);
            const end = started[action.end]?.end;
            if (action.ok) end?.resolve(`answer ${action.end}`);
            else end?.reject(`error ${action.end}`);
            await flush();
            for (const [key, flight] of current) {
              if (flight.flight !== action.end) continue;
              current.delete(key);
              const end = `${action.ok ? 'answer' : 'error'} ${action.end}`;
              for (const id of flight.in) expected.push(`${id} ${end}`);
            }
          }
          await flush();
          expect([...seen].sort()).toEqual([...expected].sort());
          expect(flights.size).toBe(current.size);
        }
      }),
    );
  });
});
