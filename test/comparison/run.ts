/**
 * @module
 * Runs every case against every library.
 */
import { cockatiel } from './adapters/cockatiel.ts';
import { mollitia } from './adapters/mollitia.ts';
import { opossum } from './adapters/opossum.ts';
import { ours } from './adapters/ours.ts';
import { cases } from './cases.ts';
import { type Case, type Finding, Lab } from './lab.ts';
import { type Library, NoSuchPolicy } from './spec.ts';
import { VirtualTime } from './virtual-time.ts';

export const libraries: readonly Library[] = [ours, cockatiel, opossum, mollitia];

export type Verdict = 'pass' | 'fail' | 'n/a';

export interface Result {
  readonly verdict: Verdict;
  readonly observed: string;
  /** Settings that were chosen for this case, if they change anything. */
  readonly tuning: readonly string[];
  /** What was seen without them. */
  readonly asItComes?: { readonly verdict: Verdict; readonly observed: string };
}

export interface Row {
  readonly case: Case;
  /** In the order of `libraries`. */
  readonly results: readonly Result[];
}

/** Real milliseconds after which a case counts as one that never settled. */
const GUARD = 20_000;
const { setTimeout, clearTimeout } = globalThis;

const guarded = async (run: Promise<Finding>): Promise<Finding> => {
  let timer: NodeJS.Timeout | undefined;
  const guard = new Promise<Finding>((resolve) => {
    const given = { pass: false, observed: 'never settled' };
    timer = setTimeout(() => resolve(given), GUARD);
  });
  return Promise.race([run, guard]).finally(() => clearTimeout(timer));
};

const attempt = async (each: Case, library: Library, tuned: boolean): Promise<Result> => {
  const time = new VirtualTime();
  if (!each.realTime) time.install();
  const lab = new Lab(library, tuned, time);
  try {
    const { pass, observed } = await guarded(each.run(lab));
    return { verdict: pass ? 'pass' : 'fail', observed, tuning: lab.tuning };
  } catch (error) {
    if (!(error instanceof NoSuchPolicy)) throw error;
    return { verdict: 'n/a', observed: error.message, tuning: [] };
  } finally {
    lab.destroy();
    time.uninstall();
  }
};

/** One case, one library: with the best settings for it, and as it comes if that differs. */
const judge = async (each: Case, library: Library): Promise<Result> => {
  const best = await attempt(each, library, true);
  if (best.tuning.length === 0) return best;
  const plain = await attempt(each, library, false);
  if (plain.observed === best.observed) return { ...best, tuning: [] };
  const { verdict, observed } = plain;
  return { ...best, asItComes: { verdict, observed } };
};

/** All of it, one after the other: time can only stand still for one case. */
export const compare = async (): Promise<Row[]> => {
  const rows: Row[] = [];
  for (const each of cases) {
    const results: Result[] = [];
    for (const library of libraries) results.push(await judge(each, library));
    rows.push({ case: each, results });
  }
  return rows;
};
