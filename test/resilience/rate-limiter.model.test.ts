import fc from 'fast-check';
import { expect } from 'vitest';
import { Deadline } from '../../src/resilience/deadline.ts';
import { ResilienceError } from '../../src/resilience/failure.ts';
import type { Priority } from '../../src/resilience/policy.ts';
import { RateLimiter } from '../../src/resilience/rate-limiter.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const BURST = 5;
const RESERVE = 1;
const PER_TOKEN = 125;
const MAX_WAIT = 500;

interface Waiting {
  id: number;
  priority: Priority;
  latest: number;
  deadline: number;
}

/**
 * The bucket as one would explain it: what is in it, and a list of those who wait. It is filled
 * with milliseconds, of which a token costs PER_TOKEN, so that all numbers are whole.
 */
class Model {
  now = 1_000;
  credit = BURST * PER_TOKEN;
  filledAt = 1_000;
  waiting: Waiting[] = [];
  ends = new Map<number, string>();
  nextId = 0;

  fill() {
    this.credit = Math.min(BURST * PER_TOKEN, this.credit + this.now - this.filledAt);
    this.filledAt = this.now;
  }

  /** Milliseconds until `count` tokens more than the reserve of `priority` are there. */
  until(count: number, priority: Priority) {
    this.fill();
    const wanted = count + (priority === 'background' ? RESERVE : 0);
    return Math.max(0, wanted * PER_TOKEN - this.credit);
  }

  waitOf(priority: Priority) {
    const ahead = this.waiting.filter(
      (waiter) => priority === 'background' || waiter.priority === 'interactive',
    );
    return this.until(ahead.length + 1, priority);
  }

  get head() {
    return this.waiting.find(({ priority }) => priority === 'interactive') ?? this.waiting[0];
  }

  leave(waiter: Waiting, end: string) {
    this.waiting = this.waiting.filter((other) => other !== waiter);
    this.ends.set(waiter.id, `${end} at ${this.now}`);
  }

  refuse(waiter: Waiting) {
    this.leave(waiter, 'refused');
  }

  serve() {
    for (let head = this.head; head && this.until(1, head.priority) === 0; head = this.head) {
      if (head.deadline < this.now) this.refuse(head);
      else {
        this.credit -= PER_TOKEN;
        this.leave(head, 'granted');
      }
    }
  }

  settle() {
    this.serve();
    for (const waiter of [...this.waiting].sort((a, b) => a.latest - b.latest || a.id - b.id)) {
      if (waiter.latest <= this.now && this.waiting.includes(waiter)) {
        this.refuse(waiter);
        this.serve();
      }
    }
  }

  advance(ms: number) {
    const end = this.now + ms;
    this.settle();
    for (;;) {
      const due = this.waiting.map((waiter) => waiter.latest);
      if (this.head) due.push(this.now + this.until(1, this.head.priority));
      const next = Math.min(...due);
      if (next > end) break;
      this.now = next;
      this.settle();
    }
    this.now = end;
  }
}

interface Real {
  clock: ManualClock;
  limiter: RateLimiter;
  ends: Map<number, string>;
  aborts: Map<number, AbortController>;
}

type Command = fc.AsyncCommand<Model, Real>;

const agree = async (model: Model, real: Real) => {
  await flush();
  expect(real.clock.now()).toBe(model.now);
  expect(Object.fromEntries(real.ends)).toEqual(Object.fromEntries(model.ends));
  // Timers: one for the line, one for each who waits, none for nobody.
  expect(real.clock.pendingTimers).toBe(model.waiting.length && model.waiting.length + 1);
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

const tryTake = (priority: Priority) =>
  command(`tryTake ${priority}`, (model, real) => {
    const wait = model.waitOf(priority);
    if (wait === 0) model.credit -= PER_TOKEN;
    expect(real.limiter.tryTake('', undefined, priority)).toBe(wait);
  });

const take = (priority: Priority, within: number) =>
  command(`take ${priority} within ${within}`, (model, { limiter, clock, ends, aborts }) => {
    const id = model.nextId;
    model.nextId += 1;
    const abort = new AbortController();
    aborts.set(id, abort);
    const deadline =
      within === Number.POSITIVE_INFINITY ? undefined : Deadline.after(within, clock);
    const wait = model.waitOf(priority);
    limiter.take('', { signal: abort.signal, deadline, priority }).then(
      () => ends.set(id, `granted at ${clock.now()}`),
      (error) => {
        const end = error instanceof ResilienceError ? 'refused' : error;
        ends.set(id, `${end} at ${clock.now()}`);
      },
    );
    if (wait === 0) {
      model.credit -= PER_TOKEN;
      model.ends.set(id, `granted at ${model.now}`);
    } else if (wait > Math.min(MAX_WAIT, within)) model.ends.set(id, `refused at ${model.now}`);
    else {
      const latest = model.now + Math.min(MAX_WAIT, within);
      model.waiting.push({ id, priority, latest, deadline: model.now + within });
      model.serve();
    }
  });

const abort = (which: number) =>
  command(`abort ${which}`, (model, real) => {
    const waiter = model.waiting[which % (model.waiting.length || 1)];
    if (!waiter) return;
    real.aborts.get(waiter.id)?.abort('aborted');
    model.leave(waiter, 'aborted');
    model.serve();
  });

const advance = (ms: number) =>
  command(`advance ${ms}`, async (model, real) => {
    model.advance(ms);
    await real.clock.advance(ms);
  });

/** A blocked event loop: time passes, and timers find out afterwards. */
const block = (ms: number) =>
  command(`block ${ms}`, async (model, real) => {
    model.now += ms;
    real.clock.jump(ms);
    if (ms % 2 === 0) {
      model.settle();
      await real.clock.advance(0);
    }
  });

verifies('limiter.model', async () => {
  const priority = fc.constantFrom<Priority>('interactive', 'background');
  const within = fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 600 }));
  const commands = fc.commands<Model, Real, false>(
    [
      priority.map(tryTake),
      fc.tuple(priority, within).map(([who, ms]) => take(who, ms)),
      fc.tuple(priority, within).map(([who, ms]) => take(who, ms)),
      fc.nat(20).map(abort),
      fc.constantFrom(1, 60, 125, 200, 1_000).map(advance),
      fc.constantFrom(60, 125, 301, 1_000).map(block),
    ],
    { maxCommands: 80, size: 'max' },
  );
  await fc.assert(
    fc.asyncProperty(commands, (steps) =>
      fc.asyncModelRun(() => {
        const clock = new ManualClock();
        const settings = { limit: 8, interval: 8 * PER_TOKEN, burst: BURST, maxWait: MAX_WAIT };
        const limiter = new RateLimiter('weather', settings, { clock });
        return { model: new Model(), real: { clock, limiter, ends: new Map(), aborts: new Map() } };
      }, steps),
    ),
    { numRuns: 200 },
  );
});
