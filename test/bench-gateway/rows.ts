/**
 * @module
 * What was measured, and the figures that are made of it.
 */
import { median } from '../bench/results.ts';
import type { Cost, Sample } from './load.ts';
import type { World } from './worlds.ts';

/** Where something was measured. */
export interface Place {
  readonly world: World['name'];
  readonly arrangement: string;
  readonly load: string;
}

/** All turns of one subject under one load. */
export interface Row extends Place {
  readonly subject: string;
  readonly samples: readonly Sample[];
}

/** The rows of a place, in the order in which they were measured. */
export const rowsAt = (rows: readonly Row[], { world, arrangement, load }: Place): Row[] =>
  rows.filter((row) => row.world === world && row.arrangement === arrangement && row.load === load);

/** Calls per second. */
export const rate = (row: Row): number => median(row.samples.map(({ perSecond }) => perSecond));

/** Median over the turns of the ratio within each: what slowed a turn down slowed down both. */
export const ratio = (a: Row, b: Row): number =>
  median(
    a.samples.map(({ perSecond }, turn) => perSecond / (b.samples[turn]?.perSecond ?? Number.NaN)),
  );

/** Microseconds of processor time per call; undefined where they are not known. */
export const cost = ({ samples }: Row, of: keyof Cost): number | undefined => {
  const known = samples.map(({ cpu }) => cpu[of]).filter((cpu) => cpu !== undefined);
  return known.length === 0 ? undefined : median(known);
};

/** How many cores client, proxy and server kept busy together. */
export const coresBusy = (row: Row): number =>
  (['client', 'proxy', 'server'] as const)
    .map((of) => cost(row, of) ?? 0)
    .reduce((sum, each) => sum + (each * rate(row)) / 1_000_000, 0);

/** Three digits that count, or all before the point. */
export const number = (value: number): string =>
  value.toFixed(Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0);
