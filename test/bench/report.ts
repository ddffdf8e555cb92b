/**
 * @module
 * The results as `docs/benchmarks.md`. What is written by hand, the reasons for what falls
 * short, stands in `notes.md` beside this file and is taken over.
 */
import { describeRun, type Results } from './results.ts';
import type { Verdict } from './targets.ts';

/** One variant over all rounds. */
export interface Row {
  readonly name: string;
  readonly about: string;
  /** Microseconds per call in each round. */
  readonly rounds: readonly number[];
  /** Their median. */
  readonly p50: number;
  /** Bytes allocated per call. */
  readonly bytes: number;
}

const figure = (value: number): string => value.toFixed(value < 10 ? 3 : 1);

const table = (results: Results<Row, Verdict>): string[] => {
  const bare = results.rows[0]?.p50 ?? Number.NaN;
  return [
    '| variant | us per call | beyond the bare call | spread | bytes per call | what one call is |',
    '|---|---:|---:|---:|---:|---|',
    ...results.rows.map(({ name, about, rounds, p50, bytes }) => {
      const spread = `${figure(Math.min(...rounds))} to ${figure(Math.max(...rounds))}`;
      const beyond = name === 'bare call' ? '' : figure(p50 - bare);
      const cells = [name, figure(p50), beyond, spread, Math.round(bytes), about];
      return `| ${cells.join(' | ')} |`;
    }),
  ];
};

export const render = (results: Results<Row, Verdict>, notes: string): string => {
  const { rounds, milliseconds } = results;
  return `${[
    '# Benchmarks',
    '',
    'Written by `npm run bench` (`test/bench/`); do not edit. The figures are in `test/bench/results.json` too.',
    '',
    ...describeRun(results, 'larger'),
    '',
    '## What was promised',
    '',
    '| promise | verdict | figures |',
    '|---|---|---|',
    ...results.verdicts.map(
      ({ promise, met, figures }) =>
        `| ${promise} | ${met ? 'PASS' : 'FALLS SHORT'} | ${figures} |`,
    ),
    '',
    notes.trim(),
    '',
    '## All figures',
    '',
    ...table(results),
    '',
    '## How it was measured',
    '',
    `Each variant runs in a process of its own that loads no library but the one it measures, ${rounds} times; the variants take turns, every second round in reverse order, so that a change of the machine's mood meets all of them. In a process tinybench warms up for ${milliseconds / 2} ms and then measures for ${milliseconds} ms; a sample is 100 calls made one after the other, each awaited, so that reading the clock is no part of the figure and collecting garbage is. A figure is the median over the rounds of the median (p50) of the samples, divided by 100; the spread is the lowest and the highest of the rounds. Calls that fail are made in a \`try\`; the error is made once, so that no stack trace is taken.`,
    '',
    'Bytes per call: a further process with a young space of 256 MB (`--min-semi-space-size`, `--max-semi-space-size`) makes 20 000 calls after as many to warm up, and divides the growth of `process.memoryUsage().heapUsed` by them. Nothing may be collected in between, which the `gc` entries of `PerformanceObserver` tell; when something was, it is done again with a fifth of the calls.',
    '',
    'The work is an async function that returns 1. No time limit is reached, no limit refuses, no hedge fires. All libraries have the same settings where they have the setting: 100 places and a queue of 100, five failures in a row, two retries, 10 s. cockatiel and mollitia have no way to count a success by hand, so that their failing call is measured together with a succeeding one that keeps the breaker closed.',
    '',
    'To repeat it: `npm ci && npm run bench`, some six minutes. `npm run bench -- --quick` takes a minute, prints, and writes nothing: its figures are noise beyond the first digit. `npm run bench -- --only=REGEX` measures what matches.',
  ].join('\n')}\n`;
};
