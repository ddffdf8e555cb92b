import fc from 'fast-check';
import { expect } from 'vitest';
import { Bulkhead } from '../../src/resilience/bulkhead.ts';
import { Deadline } from '../../src/resilience/deadline.ts';
import { ResilienceError } from '../../src/resilience/failure.ts';
import type { Priority } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const QUEUE = 4;
const MAX_WAIT = 100;

interface Waiting {
  id: number;
  priority: Priority;
  since: number;
  latest: number;
  deadline: number;
}

/** The bulkhead as one would explain it: a number of places, and a list of those who wait. */
class Model {
  now = 1_000;
  limit: number;
  active = 0;
  waiting: Waiting[] = [];
  ends = new Map<number, string>();
  nextId = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  free(priority: Priority) {
    const kept = priority === 'background' ? Math.floor(this.limit / 5) : 0;
    return this.active < this.limit - kept;
  }

  leave(waiter: Waiting, end: string) {
    this.waiting = this.waiting.filter((other) => other !== waiter);
    this.ends.set(waiter.id, end);
  }

  serve() {
    for (;;) {
      const head =
        this.waiting.find(({ priority }) => priority === 'interactive') ?? this.waiting[0];
      if (!head || !this.free(head.priority)) return;
      if (head.deadline < this.now) this.leave(head, 'refused');
      else {
        this.active += 1;
        this.leave(head, 'granted');
      }
    }
  }

  expire() {
    for (const waiter of this.waiting) if (waiter.latest <= this.now) this.leave(waiter, 'refused');
  }
}

interface Real {
  clock: ManualClock;
  bulkhead: Bulkhead;
  ends: Map<number, string>;
  aborts: Map<number, AbortController>;
}

type Command = fc.AsyncCommand<Model, Real>;

const agree = async (model: Model, { bulkhead, ends, clock }: Real) => {
  await flush();
  const granted = [...model.ends.values()].filter((end) => end === 'granted').length;
  expect(Object.fromEntries(ends)).toEqual(Object.fromEntries(model.ends));
  expect(bulkhead.stats()).toMatchObject({
    active: model.active,
    queued: model.waiting.length,
    limit: model.limit,
    oldestWait: model.now - Math.min(model.now, ...model.waiting.map(({ since }) => since)),
  });
  expect(bulkhead.stats().accepted).toBeGreaterThanOrEqual(granted);
  expect(clock.pendingTimers).toBe(model.waiting.length);
  // Nobody waits for a place that is free.
  for (const { priority } of model.waiting) {
    const overtaken = model.waiting.some((other) => other.priority === 'interactive');
    expect(model.free(priority) && (priority === 'interactive' || !overtaken)).toBe(false);
  }
};

const command = (
  name: string,
  run: (model: Model, real: Real) => void | Promise<void>,
): Command => ({
  check: () => true,
  run: async (model, real) => {
    await run(model, real);
    await agree(model, real);
  },
  toString: () => name,
});

const tryAcquire = (priority: Priority) =>
  command(`tryAcquire ${priority}`, (model, { bulkhead }) => {
    expect(bulkhead.tryAcquire(priority)).toBe(model.free(priority));
    if (model.free(priority)) model.active += 1;
  });

const acquire = (priority: Priority, within: number) =>
  command(`acquire ${priority} within ${within}`, (model, { bulkhead, clock, ends, aborts }) => {
    const id = model.nextId;
    model.nextId += 1;
    const abort = new AbortController();
    aborts.set(id, abort);
    const deadline =
      within === Number.POSITIVE_INFINITY ? undefined : Deadline.after(within, clock);
    bulkhead.acquire({ signal: abort.signal, deadline, priority }).then(
      () => ends.set(id, 'granted'),
      (error) => ends.set(id, error instanceof ResilienceError ? 'refused' : error),
    );
    if (model.free(priority)) {
      model.active += 1;
      model.ends.set(id, 'granted');
      return;
    }
    if (within === 0) {
      model.ends.set(id, 'refused');
      return;
    }
    if (model.waiting.length >= QUEUE) {
      const shed = model.waiting.findLast((waiter) => waiter.priority === 'background');
      if (priority === 'background' || !shed) {
        model.ends.set(id, 'refused');
        return;
      }
      model.leave(shed, 'refused');
    }
    const latest = model.now + Math.min(MAX_WAIT, within);
    model.waiting.push({ id, priority, since: model.now, latest, deadline: model.now + within });
  });

const release = command('release', (model, { bulkhead }) => {
  if (model.active === 0) {
    expect(() => bulkhead.release()).toThrow(/without a place/);
    return;
  }
  bulkhead.release();
  model.active -= 1;
  model.serve();
});

const abort = (which: number, withRelease: boolean) =>
  command(`abort ${which}${withRelease ? ' as a place comes free' : ''}`, (model, real) => {
    const waiter = model.waiting[which % (model.waiting.length || 1)];
    if (!waiter) return;
    if (withRelease && model.active > 0) {
      real.bulkhead.release();
      model.active -= 1;
      model.serve();
    }
    real.aborts.get(waiter.id)?.abort('aborted');
    if (model.waiting.includes(waiter)) model.leave(waiter, 'aborted');
  });

const setLimit = (limit: number) =>
  command(`setLimit ${limit}`, (model, { bulkhead }) => {
    bulkhead.setLimit(limit);
    model.limit = limit;
    model.serve();
  });

const advance = (ms: number) =>
  command(`advance ${ms}`, async (model, { clock }) => {
    await clock.advance(ms);
    model.now += ms;
    model.expire();
  });

/** A blocked event loop: time passes, a place comes free, and only then the timers fire. */
const block = (ms: number) =>
  command(`block ${ms}`, async (model, { clock, bulkhead }) => {
    clock.jump(ms);
    model.now += ms;
    if (model.active > 0) {
      bulkhead.release();
      model.active -= 1;
      model.serve();
    }
    await clock.advance(0);
    model.expire();
  });

verifies('bulkhead.permits-conserved', async () => {
  const priority = fc.constantFrom<Priority>('interactive', 'interactive', 'background');
  const within = fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 0, max: 150 }));
  const commands = fc.commands<Model, Real, false>(
    [
      priority.map(tryAcquire),
      fc.tuple(priority, within).map(([who, ms]) => acquire(who, ms)),
      fc.tuple(priority, within).map(([who, ms]) => acquire(who, ms)),
      fc.constant(release),
      fc.tuple(fc.nat(9), fc.boolean()).map(([which, too]) => abort(which, too)),
      fc.integer({ min: 1, max: 11 }).map(setLimit),
      fc.integer({ min: 1, max: 150 }).map(advance),
      fc.integer({ min: 1, max: 150 }).map(block),
    ],
    { maxCommands: 80, size: 'max' },
  );
  await fc.assert(
    fc.asyncProperty(commands, fc.integer({ min: 1, max: 6 }), (steps, limit) =>
      fc.asyncModelRun(() => {
        const clock = new ManualClock();
        const settings = { limit, queue: QUEUE, maxWait: MAX_WAIT };
        const bulkhead = new Bulkhead('search', settings, { clock });
        return {
          model: new Model(limit),
          real: { clock, bulkhead, ends: new Map(), aborts: new Map() },
        };
      }, steps),
    ),
    { numRuns: 200 },
  );
});
