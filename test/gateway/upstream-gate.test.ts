import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RestartGate, type Turn } from '../../src/gateway/upstream-gate.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const never = new AbortController().signal;

const gateOf = (clock: ManualClock, random = () => 1) =>
  new RestartGate({ initialDelay: 100, maxDelay: 1_000 }, { clock, random, onChange: () => {} });

/** Turns in the order in which they were let in. */
const queue = (gate: RestartGate, count: number): Turn[] => {
  const turns: Turn[] = [];
  for (let n = 0; n < count; n += 1) void gate.enter(never).then((turn) => turns.push(turn));
  return turns;
};

describe('RestartGate', () => {
  verifies('gate.backoff', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock);
    const waits: number[] = [];
    for (let tries = 0; tries < 8; tries += 1) {
      const entered = gate.enter(never);
      await clock.advance(gate.wait);
      (await entered).failed();
      waits.push(gate.wait);
    }
    expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000]);
    expect(gate.failures).toBe(8);
  });

  test('it waits at least half of each step, so that nobody loops', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock, () => 0);
    (await gate.enter(never)).failed();
    expect(gate.wait).toBe(50);
  });

  test('tries that began together are one failure', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock);
    const turns = queue(gate, 20);
    await flush();
    for (const turn of turns) turn.failed();
    expect(gate.failures).toBe(1);
    expect(gate.wait).toBe(100);
  });

  test('after a failure one tries, and the others go on with what it found out', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock);
    (await gate.enter(never)).failed();
    const turns = queue(gate, 20);
    await clock.advance(99);
    expect(turns).toHaveLength(0);
    await clock.advance(1);
    expect(turns).toHaveLength(1);
    turns[0]?.failed();
    await clock.advance(199);
    expect(turns).toHaveLength(1);
    await clock.advance(1);
    expect(turns).toHaveLength(2);
    turns[1]?.succeeded();
    await flush();
    expect(turns).toHaveLength(20);
    expect(clock.pendingTimers).toBe(1); // until the series counts as over
    gate.destroy();
    expect(clock.pendingTimers).toBe(0);
  });

  test('whoever leaves makes room for the next', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock);
    (await gate.enter(never)).failed();
    const gone = new AbortController();
    const left = gate.enter(gone.signal).catch((error: unknown) => error);
    gone.abort('gone');
    expect(await left).toBe('gone');
    expect(clock.pendingTimers).toBe(0);
    const turns = queue(gate, 2);
    await clock.advance(100);
    turns[0]?.abandoned();
    await flush();
    expect(turns).toHaveLength(2);
    await expect(gate.enter(AbortSignal.abort('late'))).rejects.toBe('late');
  });

  verifies('gate.useful', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock);
    // A server that accepts, and dies at once, again and again.
    const waits: number[] = [];
    for (let tries = 0; tries < 3; tries += 1) {
      const entered = gate.enter(never);
      await clock.advance(gate.wait);
      gate.lost((await entered).succeeded());
      waits.push(gate.wait);
    }
    expect(waits).toEqual([100, 200, 400]);
    // One that was good for something.
    const entered = gate.enter(never);
    await clock.advance(gate.wait);
    const era = (await entered).succeeded();
    gate.useful();
    expect(gate.failures).toBe(0);
    gate.lost(era);
    expect(gate.wait).toBe(100);
    // And one that has lasted.
    const last = gate.enter(never);
    await clock.advance(100);
    (await last).succeeded();
    expect(gate.failures).toBe(1);
    await clock.advance(1_000);
    expect(gate.failures).toBe(0);
    gate.destroy();
  });

  test('Retry-After of the upstream is waited for, up to an hour', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock);
    (await gate.enter(never)).failed(30);
    expect(gate.wait).toBe(30_000);
    const entered = gate.enter(never);
    await clock.advance(30_000);
    (await entered).failed(1e9);
    expect(gate.wait).toBe(3_600_000);
  });

  test('a new client waits no longer than after a first failure', async () => {
    const clock = new ManualClock();
    const gate = gateOf(clock);
    (await gate.enter(never)).failed(30);
    gate.hurry();
    expect(gate.wait).toBe(100);
    const turns = queue(gate, 1);
    await clock.advance(60);
    gate.hurry();
    expect(gate.wait).toBe(40);
    await clock.advance(40);
    expect(turns).toHaveLength(1);
  });

  test('never more than one probe at a time, whatever happens', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom('enter', 'succeed', 'fail', 'abandon', 'hurry', 'lose') }),
      fc.record({ do: fc.constant('wait'), ms: fc.integer({ min: 0, max: 2_000 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const clock = new ManualClock();
        const gate = gateOf(clock);
        const out: Turn[] = [];
        let era = 0;
        for (const action of steps) {
          const turn = out[0];
          const wasClosed = gate.closed;
          if (action.do === 'enter') void gate.enter(never).then((entered) => out.push(entered));
          else if (action.do === 'hurry') gate.hurry();
          else if (action.do === 'lose') gate.lost(era);
          else if ('ms' in action) await clock.advance(action.ms);
          else if (turn) {
            out.shift();
            if (action.do === 'succeed') era = turn.succeeded();
            else if (action.do === 'fail') turn.failed();
            else turn.abandoned();
          }
          const before = out.length;
          await flush();
          expect(gate.wait).toBeLessThanOrEqual(1_000);
          if (wasClosed && gate.closed) expect(out.length - before).toBeLessThanOrEqual(1);
        }
        // Whoever waits is let in some day.
        let entered = false;
        void gate.enter(never).then(() => {
          entered = true;
        });
        for (let round = 0; round < 100 && !entered; round += 1) {
          for (const turn of out.splice(0)) turn.succeeded();
          await clock.advance(1_000);
        }
        expect(entered).toBe(true);
        gate.destroy();
      }),
      { numRuns: 300 },
    );
  });
});
