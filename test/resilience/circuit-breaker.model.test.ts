import fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { BreakerPermit } from '../../src/resilience/breaker-model.ts';
import { CircuitBreaker } from '../../src/resilience/circuit-breaker.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const OPEN = 100;
const LEASE = 70;
const THRESHOLD = 3;
const PROBES = 2;

/** The breaker as one would explain it, without permits, windows or timers. */
interface Model {
  state: 'closed' | 'open' | 'half-open' | 'isolated';
  /** Grows with each change: what tells a late result from one that counts. */
  generation: number;
  failuresInARow: number;
  openUntil: number;
  probes: { id: number; until: number }[];
}

interface Running {
  id: number;
  permit: BreakerPermit;
  generation: number;
}

interface Real {
  clock: ManualClock;
  breaker: CircuitBreaker;
  running: Running[];
  nextId: number;
}

const enter = (model: Model, state: Model['state']) => {
  model.state = state;
  model.generation++;
  model.failuresInARow = 0;
  model.probes = [];
};

const tick = (model: Model, now: number) => {
  if (model.state === 'open' && model.openUntil <= now) enter(model, 'half-open');
};

const open = (model: Model, now: number) => {
  enter(model, 'open');
  model.openUntil = now + OPEN;
};

const agree = (model: Model, real: Real) => {
  tick(model, real.clock.now());
  expect(real.breaker.state).toBe(model.state);
};

class Begin implements fc.AsyncCommand<Model, Real> {
  check = () => true;
  async run(model: Model, real: Real) {
    const now = real.clock.now();
    tick(model, now);
    const permit = real.breaker.tryAcquire();
    model.probes = model.probes.filter(
      (probe) => model.probes.length < PROBES || probe.until > now,
    );
    const admitted =
      model.state === 'closed' || (model.state === 'half-open' && model.probes.length < PROBES);
    expect(permit !== undefined).toBe(admitted);
    if (permit) {
      const id = real.nextId++;
      real.running.push({ id, permit, generation: model.generation });
      if (model.state === 'half-open') model.probes.push({ id, until: now + LEASE });
    }
    agree(model, real);
  }
  toString = () => 'begin';
}

class End implements fc.AsyncCommand<Model, Real> {
  readonly which: number;
  readonly outcome: 'success' | 'failure' | 'ignored';
  readonly twice: boolean;
  constructor(which: number, outcome: End['outcome'], twice: boolean) {
    this.which = which;
    this.outcome = outcome;
    this.twice = twice;
  }
  check = () => true;
  async run(model: Model, real: Real) {
    const [call] = real.running.splice(this.which % Math.max(1, real.running.length), 1);
    if (!call) return;
    const now = real.clock.now();
    real.breaker.settle(call.permit, this.outcome);
    const probe = model.probes.find(({ id }) => id === call.id);
    model.probes = model.probes.filter((other) => other !== probe);
    if (call.generation === model.generation && this.outcome !== 'ignored') {
      if (model.state === 'closed') {
        model.failuresInARow = this.outcome === 'failure' ? model.failuresInARow + 1 : 0;
        if (model.failuresInARow >= THRESHOLD) open(model, now);
      } else if (model.state === 'half-open' && probe && probe.until > now) {
        if (this.outcome === 'failure') open(model, now);
        else enter(model, 'closed');
      }
    }
    // The permit of a probe is worth one outcome.
    if (this.twice && probe) real.breaker.settle(call.permit, 'failure');
    agree(model, real);
  }
  toString = () => `end(${this.which}, ${this.outcome}${this.twice ? ', twice' : ''})`;
}

class Wait implements fc.AsyncCommand<Model, Real> {
  readonly ms: number;
  readonly blocked: boolean;
  constructor(ms: number, blocked: boolean) {
    this.ms = ms;
    this.blocked = blocked;
  }
  check = () => true;
  async run(model: Model, real: Real) {
    if (this.blocked) real.clock.jump(this.ms);
    else await real.clock.advance(this.ms);
    agree(model, real);
  }
  toString = () => `wait(${this.ms}${this.blocked ? ', blocked' : ''})`;
}

class ByHand implements fc.AsyncCommand<Model, Real> {
  readonly what: 'reset' | 'isolate' | 'recordSuccess' | 'recordFailure' | 'wallStep';
  constructor(what: ByHand['what']) {
    this.what = what;
  }
  check = () => true;
  async run(model: Model, real: Real) {
    const now = real.clock.now();
    tick(model, now);
    if (this.what === 'wallStep') real.clock.stepWallTime(-3_600_000);
    else real.breaker[this.what]();
    if (this.what === 'reset') enter(model, 'closed');
    if (this.what === 'isolate' && model.state !== 'isolated') enter(model, 'isolated');
    if (this.what === 'recordSuccess') {
      if (model.state === 'closed') model.failuresInARow = 0;
      if (model.state === 'half-open') enter(model, 'closed');
    }
    if (this.what === 'recordFailure') {
      if (model.state === 'half-open') open(model, now);
      else if (model.state === 'closed' && ++model.failuresInARow >= THRESHOLD) open(model, now);
    }
    agree(model, real);
  }
  toString = () => this.what;
}

const commands = fc.commands(
  [
    fc.constant(new Begin()),
    fc
      .tuple(fc.nat(9), fc.constantFrom('success', 'failure', 'ignored'), fc.boolean())
      .map(([which, outcome, twice]) => new End(which, outcome as End['outcome'], twice)),
    fc.tuple(fc.nat(120), fc.boolean()).map(([ms, blocked]) => new Wait(ms, blocked)),
    fc
      .constantFrom('reset', 'isolate', 'recordSuccess', 'recordFailure', 'wallStep')
      .map((what) => new ByHand(what as ByHand['what'])),
  ],
  { maxCommands: 60 },
);

describe('CircuitBreaker against a model', () => {
  verifies('breaker.model', async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (script) => {
        const clock = new ManualClock();
        const breaker = new CircuitBreaker(
          'model',
          { threshold: THRESHOLD, openDuration: OPEN, probes: PROBES, probeLease: LEASE },
          { clock },
        );
        const setup = () => ({
          model: {
            state: 'closed' as const,
            generation: 0,
            failuresInARow: 0,
            openUntil: 0,
            probes: [],
          } as Model,
          real: { clock, breaker, running: [], nextId: 0 },
        });
        await fc.asyncModelRun(setup, script);
        // Whatever happened: left alone it recovers, as long as nobody isolated it.
        if (breaker.state === 'isolated') breaker.reset();
        await clock.advance(OPEN + LEASE);
        await expect(breaker.execute(() => 'up')).resolves.toBe('up');
        expect(breaker.state).toBe('closed');
        breaker.destroy();
        expect(clock.pendingTimers).toBe(0);
      }),
      { numRuns: 500 },
    );
  });
});
