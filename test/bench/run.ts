/**
 * @module
 * `npm run bench`: measures every variant, judges the promises, writes `results.json` and
 * `docs/benchmarks.md`. `--quick` is one short round that writes nothing, `--only=REGEX`
 * measures what matches and judges nothing. Exits with 1 when a full run misses a ratio: bounds
 * in microseconds are of one machine, and short runs are noise.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { pipelineSize } from '../../scripts/size.ts';
import type { Measured } from './measure.ts';
import { type Row, render } from './report.ts';
import { loadNow, median, type Results, surroundings } from './results.ts';
import { judge, judgeSize, type Verdict } from './targets.ts';
import type { Variant } from './variant.ts';
import { variants } from './variants.ts';

const here = import.meta.dirname;
const root = join(here, '..', '..');
const run = promisify(execFile);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const { values: flags } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
});
const [rounds, milliseconds] = flags.quick ? [1, 150] : [5, 600];
const only = flags.only === undefined ? undefined : new RegExp(flags.only);
const chosen = variants.filter(({ name }) => only === undefined || only.test(name));

const YOUNG_SPACE = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256'];

const measure = async (
  { name }: Variant,
  args: readonly string[],
  nodeFlags: readonly string[] = [],
): Promise<Measured> => {
  const command = [...nodeFlags, join(here, 'measure.ts'), name, ...args];
  const { stdout } = await run(process.execPath, command, { timeout: 120_000 });
  return JSON.parse(stdout) as Measured;
};

const loadBefore = loadNow();
const times = new Map<string, number[]>(chosen.map(({ name }) => [name, []]));
for (let round = 0; round < rounds; round++) {
  for (const variant of round % 2 === 0 ? chosen : chosen.toReversed()) {
    const { p50 = Number.NaN } = await measure(variant, ['time', String(milliseconds)]);
    times.get(variant.name)?.push(p50);
  }
  console.error(`round ${round + 1} of ${rounds} done`);
}
const rows: Row[] = [];
for (const variant of chosen) {
  const { bytes = Number.NaN } = await measure(variant, ['bytes'], YOUNG_SPACE);
  const measured = times.get(variant.name) ?? [];
  const { name, about } = variant;
  rows.push({ name, about, rounds: measured, p50: median(measured), bytes });
}

for (const { name, p50, bytes } of rows) {
  say(`${name.padEnd(56)} ${p50.toFixed(3).padStart(10)} us ${bytes.toFixed(0).padStart(8)} B`);
}
const verdicts = only
  ? []
  : [...judge(new Map(rows.map(({ name, p50 }) => [name, p50]))), judgeSize(await pipelineSize())];
for (const { promise, met, figures } of verdicts) {
  say(`${met ? 'PASS       ' : 'FALLS SHORT'} ${promise}: ${figures}`);
}

if (!flags.quick && !only) {
  const require = createRequire(import.meta.url);
  const versionOf = (name: string): string => {
    const manifest = join(root, 'node_modules', name, 'package.json');
    return (require(manifest) as { version: string }).version;
  };
  const compared = ['cockatiel', 'opossum', 'mollitia', '@opentelemetry/sdk-metrics', 'tinybench'];
  const results: Results<Row, Verdict> = {
    ...surroundings(loadBefore),
    versions: Object.fromEntries(compared.map((name) => [name, versionOf(name)])),
    rounds,
    milliseconds,
    rows,
    verdicts,
  };
  writeFileSync(join(here, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
  const notes = readFileSync(join(here, 'notes.md'), 'utf8');
  writeFileSync(join(root, 'docs', 'benchmarks.md'), render(results, notes));
}
if (!flags.quick && verdicts.some(({ kind, met }) => kind === 'ratio' && !met))
  process.exitCode = 1;
