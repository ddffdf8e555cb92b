import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CallRecord } from '../../src/chaos/drill-load.ts';
import {
  figuresOf,
  quantileRange,
  type Times,
  unsteady,
} from '../../src/chaos/drills/slow-shard-figures.ts';
import {
  expectations,
  type ServerTimes,
  table,
} from '../../src/chaos/drills/slow-shard-verdict.ts';
import { verifies } from '../fixtures/verifies.ts';

const TIMES: Times = { steady: 0, stalled: 3_000, recovered: 7_000, ended: 10_500 };
const STALL = 4;
const SERVER: ServerTimes = { opened: 0.5, closed: 1.2, refused: 0.002 };
const REPORT = { pending: 18, oldest: 850 };

type Of = (at: number) => Partial<CallRecord>;

/** Calls of both tools, one of each every 33 ms, as the given functions of their time. */
const calls = (healthy: Of, stalled: Of): CallRecord[] =>
  Array.from({ length: 318 }, (_, index) => index * 33).flatMap((at) => [
    {
      load: 'h',
      tool: 'get_document',
      at,
      seconds: 0.025,
      outcome: 'success',
      repetition: 0,
      ...healthy(at),
    },
    {
      load: 's',
      tool: 'search_knowledge',
      at,
      seconds: 0.025,
      outcome: 'success',
      repetition: 0,
      ...stalled(at),
    },
  ]);

const inStall = (at: number): boolean => at >= TIMES.stalled && at < TIMES.recovered;

/** Refused at once, but for the first half second. */
const refused: Of = (at) => {
  if (!inStall(at))
    return at < TIMES.recovered || at > 8_200 ? {} : { outcome: 'rejected', seconds: 0.002 };
  return at < 3_500 ? { outcome: 'error', seconds: 0.45 } : { outcome: 'rejected', seconds: 0.002 };
};

const sideOf = (healthy: Of, stalled: Of, report = REPORT) =>
  figuresOf(calls(healthy, stalled), report, TIMES);

const calm: Of = () => ({});
const good = sideOf(calm, refused);
const undisturbed = sideOf(calm, calm);
/** As without protection: both tools wait for the pool, and nobody is refused. */
const bad = sideOf(
  (at) => (inStall(at) && at > 4_500 ? { seconds: 3 } : {}),
  (at) => (inStall(at) ? { seconds: 1.5, outcome: 'lost' } : at > 9_800 ? { outcome: 'lost' } : {}),
  { pending: 180, oldest: 5_100 },
);

const verdict = (side = good, server = SERVER, beside = undisturbed) =>
  expectations({ unprotected: bad, protected: side, undisturbed: beside }, server, STALL);

const unmet = (...args: Parameters<typeof verdict>): string[] =>
  verdict(...args)
    .filter(({ pass }) => !pass)
    .map(({ that }) => that.split(' ').slice(0, 4).join(' '));

describe('slow-shard', () => {
  verifies('drill.not-excused', () => {
    expect(unmet()).toEqual([]);
    expect(unmet(bad, {})).toEqual([
      'p99 of the healthy',
      'the breaker opens within',
      'calls of the stalled',
      'p95 of refused calls',
      'requests without an answer',
      'calls that agents gave',
      'the breaker closes within',
      'service is normal within',
    ]);
    // Each of them alone.
    expect(unmet(good, { ...SERVER, opened: 1.3 })).toEqual(['the breaker opens within']);
    expect(unmet(good, { ...SERVER, closed: 3.1 })).toEqual(['the breaker closes within']);
    expect(unmet(good, { ...SERVER, refused: 0.3 })).toEqual(['p95 of refused calls']);
    const full = sideOf(calm, refused, { pending: 61, oldest: 1 });
    expect(unmet(full)).toEqual(['requests without an answer']);
    const late = sideOf(calm, (at) => (at > 10_200 ? { outcome: 'rejected' } : refused(at)));
    expect(unmet(late)).toEqual(['service is normal within']);
    const slow = sideOf((at) => (at > 10_200 ? { seconds: 0.8 } : {}), refused);
    expect(unmet(slow)).toEqual(['service is normal within']);
  });

  test('a healthy tool that becomes slower fails, unless the undisturbed one became so too', () => {
    const slower: Of = (at) => (inStall(at) ? { seconds: 0.025 * 1.3 } : {});
    const side = sideOf(slower, refused);
    expect(unmet(side)).toEqual(['p99 of the healthy']);
    expect(unmet(side, SERVER, sideOf(slower, calm))).toEqual([]);
    expect(unmet(sideOf((at) => (inStall(at) ? { seconds: 0.025 * 1.1 } : {}), refused))).toEqual(
      [],
    );
    // One or two of 121 calls say nothing of their 99th percentile; ten do.
    const outliers = (count: number) =>
      sideOf((at) => (inStall(at) && at < 3_000 + count * 33 ? { seconds: 1 } : {}), refused);
    expect(unmet(outliers(2))).toEqual([]);
    expect(unmet(outliers(10))).toEqual(['p99 of the healthy']);
  });

  test('figures', () => {
    expect(good).toMatchObject({ pending: 18, oldest: 0.85, lost: 0, waited: 16 });
    expect(good.failFast).toBeCloseTo(0.531, 3);
    expect(good.normal).toBeCloseTo(1.217, 3);
    expect(undisturbed.normal).toBeCloseTo(0.029, 3);
    expect(bad.normal).toBeUndefined();
    expect(bad.failFast).toBeUndefined();
    // A call that the stall met on its way is none of the steady state.
    const met = sideOf(calm, (at) => (at > 2_980 && at < 3_000 ? { seconds: 1 } : {}));
    expect(met.stalledSteady.p99).toBe(0.025);
    const lines = table({ unprotected: bad, protected: good, undisturbed });
    expect(new Set(lines.map((line) => line.length)).size).toBe(1);
    expect(lines.join('\n')).toMatch(/until calls fail fast +\| never +\| 0\.531 s +\| never/);
    expect(lines.join('\n')).toMatch(/from recovery to normal service +\| not seen +\| 1\.22 s/);
  });

  test('the page on drills shows the table of a real run, row by row', () => {
    const page = readFileSync(new URL('../../docs/drills.md', import.meta.url), 'utf8');
    const [, , ...lines] = table({ unprotected: bad, protected: good, undisturbed });
    expect(lines).toHaveLength(10);
    for (const line of lines) expect(page).toContain(`| ${line.split('|')[1]?.trim()} `);
  });

  test('a steady state is one in which calls succeed in time', () => {
    const all = calls(calm, calm);
    expect(unsteady(all, 0.2)).toBeUndefined();
    expect(unsteady(all, 0.025)).toBeUndefined();
    expect(unsteady(all, 0.024)).toBe('p99 is 25 ms');
    expect(unsteady([], 0.2)).toBe('no call was answered');
    const [first] = all;
    if (first === undefined) throw new Error('no call');
    expect(unsteady([...all, { ...first, outcome: 'error' }], 0.2)).toBe('1 of 637 calls failed');
    // One slow call in 637 is beyond the 99th percentile.
    expect(unsteady([...all, { ...first, seconds: 9 }], 0.2)).toBeUndefined();
  });

  test('the range of a quantile holds the quantile of the sample, and shrinks with more of it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, min: 0, max: 100 }), { minLength: 1, maxLength: 500 }),
        fc.double({ noNaN: true, min: 0.01, max: 0.99 }),
        (values, quantile) => {
          const [low = Number.NaN, high = Number.NaN] = quantileRange(values, quantile) ?? [];
          const sorted = values.toSorted((one, other) => one - other);
          const estimate = sorted[Math.ceil(quantile * sorted.length) - 1] ?? Number.NaN;
          expect(low).toBeLessThanOrEqual(estimate);
          expect(high).toBeGreaterThanOrEqual(estimate);
        },
      ),
    );
    expect(quantileRange([], 0.5)).toBeUndefined();
    const width = (count: number): number => {
      const [low = 0, high = 0] =
        quantileRange(
          Array.from({ length: count }, (_, index) => index / count),
          0.5,
        ) ?? [];
      return high - low;
    };
    expect(width(1_000)).toBeLessThan(width(100));
    expect(width(100)).toBeLessThan(width(10));
  });
});
