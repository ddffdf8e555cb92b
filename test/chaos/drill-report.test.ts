import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonReport, junitReport, totalLine, verdictLines } from '../../src/chaos/drill-report.ts';
import type { DrillResult } from '../../src/chaos/drill-verdict.ts';
import { verifies } from '../fixtures/verifies.ts';
import { xmlProblems } from './drill-support.ts';

const result = (fields: Partial<DrillResult> = {}): DrillResult => ({
  name: 'hang',
  hypothesis: 'nothing breaks',
  pass: true,
  startedAt: '2026-01-02T03:04:05.000Z',
  seconds: 1.25,
  expectations: [{ that: 'a', expected: '1', measured: '1', value: 1, pass: true }],
  notes: ['| a table |'],
  ...fields,
});

const failed = result({
  name: 'burst',
  pass: false,
  problem: 'the server did not start',
  expectations: [{ that: 'b', expected: 'at most 1', measured: '2', value: 2, pass: false }],
});

describe('reports', () => {
  verifies('drill.reports', () => {
    expect(JSON.parse(jsonReport([result(), failed]))).toMatchObject({
      verdict: 'FAIL',
      drills: [
        { name: 'hang', verdict: 'PASS', seconds: 1.25, expectations: [{ value: 1 }] },
        { name: 'burst', verdict: 'FAIL', problem: 'the server did not start' },
      ],
    });
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(']]>', '<a b="', "&amp;'"),
    );
    fc.assert(
      fc.property(text, text, text, fc.boolean(), (that, told, problem, pass) => {
        const judged = { that, expected: told, measured: told, pass };
        const drill = result({ expectations: [judged, judged], pass, problem });
        expect(xmlProblems(junitReport([drill, failed]))).toEqual([]);
        const [back] = JSON.parse(jsonReport([drill])).drills;
        expect(back.expectations[0].that).toBe(that.toWellFormed());
      }),
    );
  });

  test('the checker of the XML finds what is wrong', () => {
    const head = '<?xml version="1.0" encoding="UTF-8"?>\n';
    expect(xmlProblems(`${head}<a x="1"><b/></a>`)).toEqual([]);
    for (const broken of [
      '<a>',
      '<a></b>',
      '<a>&</a>',
      '<a x="<"/>',
      '<a/><a/>',
      '<a>\u0001</a>',
    ]) {
      expect(xmlProblems(`${head}${broken}`)).not.toEqual([]);
    }
    expect(xmlProblems('<a/>')).toEqual(['no declaration']);
  });

  test('words for people', () => {
    expect(verdictLines(failed)).toEqual([
      '| a table |',
      '  problem: the server did not start',
      '  FAIL  b: expected at most 1, measured 2',
      'FAIL burst (1.3 s)',
    ]);
    expect(totalLine([result(), result()])).toBe('PASS: all 2 drills');
    expect(totalLine([result(), failed])).toBe('FAIL: 1 of 2 drills: burst');
  });
});
