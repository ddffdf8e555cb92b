import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FaultInput, faultSchema } from '../../src/chaos/fault.ts';
import { drawDelay, grown, isOn, seeded } from '../../src/chaos/selection.ts';
import { verifies } from '../fixtures/verifies.ts';
import { AT_SEARCH, arm, openChaos, pipelineOf } from './support.ts';

const KIND = { kind: 'protocol_error', target: { tool: 'search' } } as const;
const SITE = { tool: 'search', dependency: 'search-api', attempt: 1 };

/** Which of `count` attempts a fault strikes. */
const struck = (input: Partial<FaultInput>, count: number, site = SITE): boolean[] => {
  const { chaos } = openChaos();
  arm(chaos, { ...KIND, ...input } as FaultInput);
  const found = Array.from({ length: count }, () => chaos.faults.decide(site) !== undefined);
  chaos.faults.destroy();
  return found;
};

describe('which attempts a fault strikes', () => {
  verifies('chaos.selection', async () => {
    expect(struck({ every: 3 }, 7)).toEqual([false, false, true, false, false, true, false]);
    expect(struck({ every: 1 }, 3)).toEqual([true, true, true]);
    expect(struck({ firstAttempts: 2 }, 1, { ...SITE, attempt: 2 })).toEqual([true]);
    expect(struck({ firstAttempts: 2 }, 1, { ...SITE, attempt: 3 })).toEqual([false]);

    const half = struck({ percent: 50, seed: 7 }, 200);
    expect(struck({ percent: 50, seed: 7 }, 200)).toEqual(half);
    expect(struck({ percent: 50, seed: 8 }, 200)).not.toEqual(half);
    const share = half.filter(Boolean).length / 200;
    expect(share).toBeGreaterThan(0.35);
    expect(share).toBeLessThan(0.65);

    // On for 2 s, off for 3 s, and on again.
    const { chaos, clock } = openChaos();
    arm(chaos, { ...KIND, flapping: { onSeconds: 2, offSeconds: 3 } });
    const seen: boolean[] = [];
    for (let second = 0; second < 8; second += 1) {
      seen.push(chaos.faults.decide(SITE) !== undefined);
      await clock.advance(1_000);
    }
    expect(seen).toEqual([true, true, false, false, false, true, true, false]);
    chaos.faults.clearAll();

    // It grows: nothing at first, all of it in the end.
    arm(chaos, { ...KIND, ramp: { overSeconds: 10 }, seed: 1 });
    const shares: number[] = [];
    for (let step = 0; step < 3; step += 1) {
      const hits = Array.from({ length: 100 }, () => chaos.faults.decide(SITE));
      shares.push(hits.filter((hit) => hit !== undefined).length);
      await clock.advance(5_000);
    }
    expect(shares[0]).toBe(0);
    expect(shares[1]).toBeGreaterThan(25);
    expect(shares[1]).toBeLessThan(75);
    expect(shares[2]).toBe(100);
  });

  test('the sequence of chance depends on the seed alone, not on the share', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 32 - 1), fc.integer({ min: 1, max: 99 }), (seed, percent) => {
        const few = struck({ percent, seed }, 40);
        const more = struck({ percent: percent + 1, seed }, 40);
        // Whatever a smaller share strikes, a larger one strikes too.
        expect(few.every((hit, index) => !hit || more[index])).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('seeded numbers lie in [0, 1) and are spread evenly', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 32 - 1), (seed) => {
        const random = seeded(seed);
        const numbers = Array.from({ length: 500 }, random);
        expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
        const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
        expect(Math.abs(mean - 0.5)).toBeLessThan(0.1);
      }),
    );
  });

  test('delays keep to their distribution', () => {
    const latency = fc.record({
      distribution: fc.constantFrom('fixed', 'uniform', 'normal', 'pareto'),
      delayMs: fc.double({ min: 0, max: 300_000, noNaN: true }),
      spreadMs: fc.double({ min: 0, max: 300_000, noNaN: true }),
      shape: fc.double({ min: 0.1, max: 100, noNaN: true }),
    });
    fc.assert(
      fc.property(latency, fc.nat(), (settings, seed) => {
        const delay = drawDelay(settings as never, seeded(seed));
        const { distribution, delayMs, spreadMs } = settings;
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(300_000);
        if (distribution === 'fixed') expect(delay).toBe(delayMs);
        if (distribution === 'pareto') expect(delay).toBeGreaterThanOrEqual(delayMs);
        if (distribution === 'uniform') {
          expect(Math.abs(delay - delayMs)).toBeLessThanOrEqual(spreadMs + 1e-6);
        }
      }),
    );
    const random = seeded(3);
    const draw = () => drawDelay({ distribution: 'normal', delayMs: 1_000, spreadMs: 100 }, random);
    const drawn = Array.from({ length: 2_000 }, draw);
    const mean = drawn.reduce((sum, delay) => sum + delay, 0) / drawn.length;
    const deviation = Math.sqrt(
      drawn.reduce((sum, delay) => sum + (delay - mean) ** 2, 0) / drawn.length,
    );
    expect(mean).toBeCloseTo(1_000, -1);
    expect(deviation / 100).toBeCloseTo(1, 0);
  });

  test('a fault that neither flaps nor grows is whole at any time', () => {
    expect([isOn({}, 1e9), grown({}, 0)]).toEqual([true, 1]);
    expect(grown({ ramp: { overSeconds: 4 } }, 1_000)).toBe(0.25);
  });

  test('the delay of a latency grows with its ramp', async () => {
    const { chaos, clock } = openChaos();
    const pipeline = pipelineOf(chaos, clock, {});
    arm(chaos, {
      kind: 'latency',
      target: AT_SEARCH,
      latency: { delayMs: 1_000 },
      ramp: { overSeconds: 10 },
    });
    await clock.advance(5_000);
    let done = false;
    const call = pipeline
      .execute(() => 'x')
      .then(() => {
        done = true;
      });
    await clock.advance(499);
    expect(done).toBe(false);
    await clock.advance(1);
    await call;
  });
});

describe('the schema of a fault', () => {
  const problems = (input: unknown): string[] => {
    const parsed = faultSchema.safeParse(input);
    return parsed.success
      ? []
      : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  };

  test('fills in the time to live', () => {
    expect(faultSchema.parse(KIND).ttlSeconds).toBe(60);
  });

  test('says all that is wrong at once, with its path', () => {
    expect(
      problems({ kind: 'latency', target: {}, ttlSeconds: 0, dnsCode: 'EAI_AGAIN', status: 503 }),
    ).toEqual([
      'target: must name a tool, a dependency or an upstream; of several, all must match',
      'ttlSeconds: Too small: expected number to be >0',
      'status: belongs to the kind status; leave it out for latency',
      'dnsCode: belongs to the kind dns; leave it out for latency',
      'latency: is needed for the kind latency, such as { "delayMs": 500 }',
    ]);
    expect(
      problems({ kind: 'latency', target: { tool: 'x' }, dnsCode: 'EAI_AGAIN', retryAfter: 3 }),
    ).toEqual([
      'retryAfter: belongs to the kind status; leave it out for latency',
      'dnsCode: belongs to the kind dns; leave it out for latency',
      'latency: is needed for the kind latency, such as { "delayMs": 500 }',
    ]);
    expect(problems({ kind: 'session_loss', target: { tool: 'x' } })).toEqual([
      'target: must name an upstream for the kind session_loss',
    ]);
    expect(problems({ ...KIND, ttlSeconds: 901 }).join()).toContain('ttlSeconds');
    expect(problems({ ...KIND, ttl: 5 }).join()).toContain('ttl');
    expect(problems({ kind: 'status', target: { tool: 'x' }, status: 418 }).join()).toContain(
      'status',
    );
    expect(
      problems({ kind: 'status', target: { tool: 'x' }, retryAfter: 'a\r\nset-cookie: b' }).join(),
    ).toContain('retryAfter: must be printable ASCII');
  });
});
