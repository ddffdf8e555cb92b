/**
 * @module
 * What both benchmarks (this one and that of the gateway, `test/bench-gateway/`) write down of a
 * run, and the head of the page that is made from it.
 */
import { availableParallelism, cpus, loadavg } from 'node:os';

/** What was run, where, and what came out. */
export interface Results<Row, Verdict> {
  readonly date: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly node: string;
    readonly v8: string;
    readonly loadBefore: number;
    readonly loadAfter: number;
  };
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly milliseconds: number;
  readonly rows: readonly Row[];
  readonly verdicts: readonly Verdict[];
}

/** Load average of the last minute. */
export const loadNow = (): number => loadavg()[0] ?? 0;

/** When and where this runs; called at the end of a run. */
export const surroundings = (
  loadBefore: number,
): Pick<Results<unknown, unknown>, 'date' | 'machine'> => ({
  date: new Date().toISOString().slice(0, 10),
  machine: {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    node: process.versions.node,
    v8: process.versions.v8,
    loadBefore,
    loadAfter: loadNow(),
  },
});

/** NaN of none. */
export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
};

/** @param worse what other work on the machine makes of every figure */
export const describeRun = (
  { date, machine, versions }: Results<unknown, unknown>,
  worse: 'larger' | 'worse',
): string[] => {
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const { loadBefore, loadAfter } = machine;
  return [
    `- machine: ${machine.cpu}, ${machine.cores} cores seen by Node`,
    `- Node ${machine.node}, V8 ${machine.v8}; ${packages.join(', ')}`,
    `- ${date}; load average ${loadBefore.toFixed(2)} before, ${loadAfter.toFixed(2)} after (other work on the machine makes every figure ${worse}; read ratios)`,
  ];
};
