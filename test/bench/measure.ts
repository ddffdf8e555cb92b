/**
 * @module
 * The process that measures one variant: `node measure.ts NAME time MS` or `NAME bytes`.
 * Prints one line of JSON.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Bench } from 'tinybench';
import type { Operation, Variant } from './variant.ts';
import { variants } from './variants.ts';

/** Calls in one sample: reading the clock then costs less than a thousandth of it. */
const BATCH = 100;
/** Calls whose allocations are added up, and those before them that warm up. */
const COUNTED = 20_000;

/** What one process found out. */
export interface Measured {
  /** Microseconds per call: median and 99th percentile of the samples. */
  readonly p50?: number;
  readonly p99?: number;
  readonly samples?: number;
  /** Bytes allocated on the heap per call. */
  readonly bytes?: number;
}

const succeeding = (operation: Operation, calls: number) => async (): Promise<void> => {
  for (let i = 0; i < calls; i++) await operation();
};

const failing = (operation: Operation, calls: number) => async (): Promise<void> => {
  for (let i = 0; i < calls; i++) {
    try {
      await operation();
    } catch {
      continue;
    }
    throw new Error('a call that should fail succeeded');
  }
};

const time = async (variant: Variant, ms: number): Promise<Measured> => {
  const bench = new Bench({ time: ms, warmupTime: ms / 2, throws: true });
  bench.add(variant.name, (variant.fails ? failing : succeeding)(await variant.make(), BATCH));
  const [task] = await bench.run();
  if (task?.result.state !== 'completed') throw new Error(`${variant.name} did not complete`);
  const { p50, p99, samplesCount } = task.result.latency;
  const each = (sample: number) => (sample * 1_000) / BATCH;
  return { p50: each(p50), p99: each(p99), samples: samplesCount };
};

/** What a number of calls adds to the heap; undefined when garbage was collected meanwhile. */
const growth = async (calls: () => Promise<void>): Promise<number | undefined> => {
  globalThis.gc?.();
  await nextTurn();
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    collections += list.getEntries().length;
  });
  observer.observe({ entryTypes: ['gc'] });
  const before = process.memoryUsage().heapUsed;
  await calls();
  const after = process.memoryUsage().heapUsed;
  // Entries are handed out between turns.
  await nextTurn();
  await nextTurn();
  observer.disconnect();
  return collections === 0 ? after - before : undefined;
};

/** The heap only grows while nothing is collected: the young space is made to hold all of it. */
const bytes = async (variant: Variant): Promise<Measured> => {
  const operation = await variant.make();
  const loop = variant.fails ? failing : succeeding;
  await loop(operation, COUNTED)();
  for (let count = COUNTED; count > 100; count /= 5) {
    const grown = await growth(loop(operation, count));
    if (grown !== undefined) return { bytes: Math.max(0, grown / count) };
  }
  throw new Error(`${variant.name}: garbage was collected in every trial`);
};

const [, , name, what, ms] = process.argv;
const variant = variants.find((candidate) => candidate.name === name);
if (variant === undefined) throw new Error(`no variant is named "${name}"`);
const measured = what === 'bytes' ? await bytes(variant) : await time(variant, Number(ms));
process.stdout.write(`${JSON.stringify(measured)}\n`);
// Timers of some libraries would keep it alive.
process.exit(0);
