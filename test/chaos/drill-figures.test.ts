import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Expectation, expectationSchema } from '../../src/chaos/drill-expectation.ts';
import { figureOf, percentile, type RunRecord } from '../../src/chaos/drill-figures.ts';
import { judge } from '../../src/chaos/drill-verdict.ts';

type Input = Parameters<typeof expectationSchema.parse>[0];

const expectation = (fields: object): Expectation =>
  expectationSchema.parse({ that: 'x', atLeast: 0, ...fields } as Input);

const call = (at: number, fields: object = {}) => ({
  load: 'a',
  tool: 'a',
  at,
  seconds: 1,
  outcome: 'success',
  repetition: 0,
  ...fields,
});

const span = (traceId: string, start: number, end: number, fields: object = {}) => ({
  name: 'GET',
  kind: 'client' as const,
  traceId,
  start,
  end,
  error: false,
  attributes: {},
  ...fields,
});

const run: RunRecord = {
  phases: { steady: { from: 0, to: 1_000 }, fault: { from: 1_000, to: 3_000 } },
  calls: [
    call(100),
    call(999, { seconds: 3 }),
    call(1_000, { outcome: 'error', code: 'TIMEOUT', seconds: 2 }),
    call(1_500, { outcome: 'rejected', code: 'CIRCUIT_OPEN', retryAfter: 2, seconds: 4 }),
    call(2_000, { outcome: 'rejected', code: 'CIRCUIT_OPEN', seconds: 6 }),
    call(2_500, { load: 'b', outcome: 'degraded' }),
    // Of no phase.
    call(3_000),
  ],
  spans: [
    span('1', 1_000, 1_100),
    span('1', 2_100, 2_200, { error: true, attributes: { status: 429 } }),
    span('2', 1_050, 1_060),
    span('1', 2_700, 2_800),
    span('3', 1_200, 1_900, { name: 'tools/call a', kind: 'server' }),
  ],
  events: [
    { name: 'opened', at: 1_250, attributes: { to: 'open', injected: true } },
    { name: 'opened', at: 2_250, attributes: { to: 'open' } },
    { name: 'opened', at: 2_500, attributes: { to: 'closed' } },
  ],
  series: [
    { name: 'retries', attributes: { outcome: 'success', tool: 'a' }, last: 3, highest: 3 },
    { name: 'retries', attributes: { outcome: 'failure', tool: 'a' }, last: 4, highest: 4 },
    { name: 'queued', attributes: {}, last: 0, highest: 9 },
  ],
  requests: [
    { upstream: 'weather', at: 500 },
    { upstream: 'search', at: 1_500 },
  ],
  exit: { code: 0, signal: null, seconds: 0.4 },
};

const fault = { source: 'calls', phase: 'fault' };

describe('figures', () => {
  test.each<[string, object, number | undefined]>([
    ['calls, all of them', { measure: 'count', of: { source: 'calls' } }, 7],
    ['calls of a phase, its end excluded', { measure: 'count', of: fault }, 4],
    ['calls of a load', { measure: 'count', of: { ...fault, load: 'b' } }, 1],
    ['calls by outcome', { measure: 'count', of: { ...fault, outcome: ['error', 'degraded'] } }, 2],
    ['calls by code', { measure: 'count', of: { ...fault, code: 'CIRCUIT_OPEN' } }, 2],
    ['calls that were told when', { measure: 'count', of: { ...fault, retryAfter: true } }, 1],
    [
      'share of the calls of the same load',
      { measure: 'share', of: { ...fault, load: 'a', code: 'CIRCUIT_OPEN' } },
      2 / 3,
    ],
    [
      'share of nothing',
      { measure: 'share', of: { source: 'calls', phase: 'recovery' } },
      undefined,
    ],
    ['median', { measure: 'p50', of: { ...fault, load: 'a' } }, 4],
    ['longest', { measure: 'longest', of: fault }, 6],
    ['median of nothing', { measure: 'p50', of: { ...fault, code: 'NONE' } }, undefined],
    ['compared', { measure: 'longest', of: fault, comparedTo: 'steady' }, 2],
    ['compared to nothing', { measure: 'longest', of: fault, comparedTo: 'recovery' }, undefined],
    ['seconds until the first', { measure: 'first', of: { ...fault, code: 'CIRCUIT_OPEN' } }, 0.5],
    ['seconds until the last', { measure: 'last', of: { ...fault, code: 'CIRCUIT_OPEN' } }, 1],
    ['first of nothing', { measure: 'first', of: { ...fault, code: 'NONE' } }, undefined],
    ['one count per another', { measure: 'count', of: fault, per: { source: 'upstream' } }, 2],
    [
      'a count per nothing',
      { measure: 'count', of: fault, per: { ...fault, code: 'NONE' } },
      undefined,
    ],
    ['spans by kind', { measure: 'count', of: { source: 'spans', kind: 'server' } }, 1],
    ['spans by name', { measure: 'longest', of: { source: 'spans', name: 'tools/call a' } }, 0.7],
    ['spans that are errors', { measure: 'count', of: { source: 'spans', error: true } }, 1],
    [
      'spans by attribute',
      { measure: 'count', of: { source: 'spans', attributes: { status: 429 } } },
      1,
    ],
    [
      'shortest gap within a trace',
      { measure: 'shortestGap', of: { source: 'spans', kind: 'client' } },
      0.5,
    ],
    ['gap of one', { measure: 'shortestGap', of: { source: 'spans', kind: 'server' } }, undefined],
    [
      'events by attributes',
      { measure: 'count', of: { source: 'events', name: 'opened', attributes: { to: 'open' } } },
      2,
    ],
    [
      'events by a flag',
      {
        measure: 'count',
        of: { source: 'events', name: 'opened', attributes: { injected: true } },
      },
      1,
    ],
    [
      'first event',
      { measure: 'first', of: { source: 'events', name: 'opened', phase: 'fault' } },
      0.25,
    ],
    [
      'a counter over its series',
      { measure: 'total', of: { source: 'metric', name: 'retries' } },
      7,
    ],
    [
      'one series of it',
      {
        measure: 'total',
        of: { source: 'metric', name: 'retries', attributes: { outcome: 'failure' } },
      },
      4,
    ],
    [
      'a counter that never counted',
      { measure: 'total', of: { source: 'metric', name: 'none' } },
      0,
    ],
    ['highest of a gauge', { measure: 'highest', of: { source: 'metric', name: 'queued' } }, 9],
    [
      'highest of nothing',
      { measure: 'highest', of: { source: 'metric', name: 'none' } },
      undefined,
    ],
    [
      'requests',
      { measure: 'count', of: { source: 'upstream', upstream: 'search', phase: 'fault' } },
      1,
    ],
    ['exit code', { measure: 'code', of: { source: 'exit' } }, 0],
    ['seconds to the end', { measure: 'seconds', of: { source: 'exit' } }, 0.4],
  ])('%s', (_name, fields, value) => {
    const figure = figureOf(run, expectation(fields));
    if (value === undefined) expect(figure).toBeUndefined();
    else expect(figure).toBeCloseTo(value, 9);
  });

  test('a percentile is one of the values, with at least its share of them at or below', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, min: 0, max: 1e6 }), { minLength: 1 }),
        fc.double({ noNaN: true, min: 0, max: 1 }),
        (values, quantile) => {
          const found = percentile(values, quantile) ?? Number.NaN;
          expect(values).toContain(found);
          const below = values.filter((value) => value <= found).length;
          const strictly = values.filter((value) => value < found).length;
          expect(below).toBeGreaterThanOrEqual(quantile * values.length - 1e-9);
          expect(strictly).toBeLessThan(Math.max(quantile * values.length, 1e-9) + 1e-9);
        },
      ),
    );
    expect(percentile([], 0.5)).toBeUndefined();
  });
});

describe('a verdict', () => {
  test.each<[object, boolean, string, string]>([
    [{ equals: 4 }, true, '4', '4'],
    [{ equals: 5 }, false, '5', '4'],
    [{ atLeast: 4 }, true, 'at least 4', '4'],
    [{ atLeast: 5 }, false, 'at least 5', '4'],
    [{ atMost: 4 }, true, 'at most 4', '4'],
    [{ atMost: 3 }, false, 'at most 3', '4'],
    [{ atLeast: 1, atMost: 3 }, false, 'at least 1, at most 3', '4'],
    [{ measure: 'longest', atMost: 1.25 }, false, 'at most 1.25 s', '6 s'],
    [
      { measure: 'longest', comparedTo: 'steady', atMost: 2 },
      true,
      'at most 2 x steady',
      '2 x steady',
    ],
    [
      { of: { ...fault, code: 'NONE' }, measure: 'p50', atMost: 9 },
      false,
      'at most 9 s',
      'nothing to measure',
    ],
  ])('of %j', (fields, pass, expected, measured) => {
    const bounds = { atLeast: undefined };
    const judged = judge(run, expectation({ measure: 'count', of: fault, ...bounds, ...fields }));
    expect(judged).toMatchObject({ pass, expected, measured });
  });
});
