/**
 * @module
 * Judges expectations: what was expected, what was measured, and whether that is within bounds.
 */

import type { Expectation } from './drill-expectation.ts';
import { figureOf, type RunRecord } from './drill-figures.ts';

/** An expectation and what became of it. */
export interface Judged {
  /** What was expected, in words. */
  readonly that: string;
  /** The bounds: `at most 1.2 s`. */
  readonly expected: string;
  /** What was measured, or why nothing was. */
  readonly measured: string;
  /** The figure itself; missing where there was nothing to be measured. */
  readonly value?: number;
  readonly pass: boolean;
}

/** The outcome of one drill. */
export interface DrillResult {
  readonly name: string;
  readonly hypothesis: string;
  readonly pass: boolean;
  /** When it began, ISO 8601. */
  readonly startedAt: string;
  readonly seconds: number;
  readonly expectations: readonly Judged[];
  /** Why it could not be run to its end. */
  readonly problem?: string;
  /** Lines to show with the verdict, such as a table. */
  readonly notes: readonly string[];
}

const IN_SECONDS = new Set([
  'p50',
  'p95',
  'p99',
  'longest',
  'first',
  'last',
  'shortestGap',
  'seconds',
]);

const unitOf = ({ measure, comparedTo, per }: Expectation): string => {
  if (comparedTo !== undefined) return ` x ${comparedTo}`;
  return IN_SECONDS.has(measure) && per === undefined ? ' s' : '';
};

/** A figure as people read it: no more digits than it is worth. */
export const show = (value: number): string => {
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(Math.abs(value) < 100 ? 3 : 4)));
};

const boundsOf = (expectation: Expectation): string => {
  const { equals, atLeast, atMost } = expectation;
  const unit = unitOf(expectation);
  return [
    equals !== undefined && `${show(equals)}${unit}`,
    atLeast !== undefined && `at least ${show(atLeast)}${unit}`,
    atMost !== undefined && `at most ${show(atMost)}${unit}`,
  ]
    .filter((part) => part !== false)
    .join(', ');
};

/** Judges one expectation. What could not be measured is not met. */
export const judge = (run: RunRecord, expectation: Expectation): Judged => {
  const { that, equals, atLeast, atMost } = expectation;
  const value = figureOf(run, expectation);
  const expected = boundsOf(expectation);
  if (value === undefined) {
    return { that, expected, measured: 'nothing to measure', pass: false };
  }
  const pass =
    (equals === undefined || value === equals) &&
    (atLeast === undefined || value >= atLeast) &&
    (atMost === undefined || value <= atMost);
  return { that, expected, measured: `${show(value)}${unitOf(expectation)}`, value, pass };
};

/** An expectation that was not judged, since the drill ended before. */
export const unjudged = (expectation: Expectation): Judged => ({
  that: expectation.that,
  expected: boundsOf(expectation),
  measured: 'not judged: the drill ended before',
  pass: false,
});
