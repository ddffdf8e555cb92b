/**
 * @module
 * A tile: one number in the colour of its step, in a row of its like.
 */
import type { Stat, Steps } from './panel.ts';

/** Any at all is bad. */
export const NONE_IS_GOOD: Steps = ['green', [1, 'red']];

/** Tiles of one width, of 24 columns. What `more` says goes before what tiles have in common. */
export const tileOf =
  (width: number) =>
  (
    title: string,
    expr: string,
    question: string,
    bad: string,
    thresholds: Steps = NONE_IS_GOOD,
    more: Partial<Pick<Stat, 'unit' | 'decimals' | 'none'>> = {},
  ): Stat => ({
    kind: 'stat',
    title,
    question,
    bad,
    unit: 'short',
    decimals: 0,
    queries: [{ expr, legend: title }],
    thresholds,
    none: 'no telemetry',
    width,
    height: 4,
    ...more,
  });
