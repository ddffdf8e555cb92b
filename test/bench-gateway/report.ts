/**
 * @module
 * The results as `docs/benchmarks-gateway.md`. What is written by hand stands in `notes.md` beside
 * this file and is taken over.
 */
import { describeRun, median, type Results } from '../bench/results.ts';
import { type Finding, fallsShort, type Verdict } from './judge.ts';
import type { WarmUp } from './load.ts';
import { coresBusy, cost, number, type Row, rate, ratio, rowsAt } from './rows.ts';
import { ARRANGEMENTS, DIRECT } from './subjects.ts';
import { WORLDS } from './worlds.ts';

/** What a run of this benchmark brought. */
export interface GatewayResults extends Results<Row, Verdict> {
  /** Of each subject under each load, in each round. */
  readonly turns: number;
}

const other = ({ world, met, figures }: Finding): string =>
  `${world}: ${met ? 'kept' : 'not kept'}, ${figures}`;

const promises = (verdicts: readonly Verdict[]): string[] => [
  '| promise | judged in | verdict | figures there | the other world, for information |',
  '|---|---|---|---|---|',
  ...verdicts.map((verdict) => {
    const { promise, judgedIn, findings } = verdict;
    const counted = findings.find(({ world }) => world === judgedIn);
    const met = fallsShort(verdict) ? 'FALLS SHORT' : 'PASS';
    const others = findings.filter((finding) => finding !== counted).map(other);
    const cells = [
      promise,
      judgedIn,
      counted === undefined ? 'not measured' : met,
      counted?.figures ?? '',
      others.join('; '),
    ];
    return `| ${cells.join(' | ')} |`;
  }),
];

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.round((values.length - 1) * share)] ?? Number.NaN;

const tableOf = (rows: readonly Row[]): string[] => {
  const direct = rows.find(({ subject }) => subject === DIRECT);
  const latency = (row: Row) => median(row.samples.map(({ p50 }) => p50));
  const shown = (value: number | undefined) => (value === undefined ? '' : number(value));
  return [
    '| subject | calls per second | of direct | spread | p50 ms | added ms | p99 ms | client us | proxy us | server us | cores busy |',
    '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
    ...rows.map((row) => {
      const rates = row.samples.map(({ perSecond }) => perSecond);
      const isDirect = row === direct || direct === undefined;
      const cells = [
        row.subject,
        number(rate(row)),
        isDirect ? '' : `${(ratio(row, direct) * 100).toFixed(0)} %`,
        `${number(quantile(rates, 0.25))} to ${number(quantile(rates, 0.75))}`,
        number(latency(row)),
        isDirect ? '' : number(latency(row) - latency(direct)),
        number(median(row.samples.map(({ p99 }) => p99))),
        shown(cost(row, 'client')),
        shown(cost(row, 'proxy')),
        shown(cost(row, 'server')),
        number(coresBusy(row)),
      ];
      return `| ${cells.join(' | ')} |`;
    }),
  ];
};

const tables = (rows: readonly Row[]): string[] =>
  WORLDS.flatMap(({ name: world, about, loads }) => {
    const each = ARRANGEMENTS.flatMap(({ name: arrangement }) =>
      loads.flatMap(({ name: load }) => {
        const chosen = rowsAt(rows, { world, arrangement, load });
        const title = `#### ${world}: ${arrangement}, ${load}`;
        return chosen.length === 0 ? [] : [title, '', ...tableOf(chosen), ''];
      }),
    );
    return each.length === 0 ? [] : [`### The ${world} world`, '', `It has ${about}.`, '', ...each];
  });

/** The page. */
export const render = (results: GatewayResults, { calls, ms }: WarmUp, notes: string): string => {
  const { rounds, turns, milliseconds, rows, verdicts } = results;
  return `${[
    '# Benchmarks of the gateway',
    '',
    'Written by `npm run bench:gateway` (`test/bench-gateway/`); do not edit. The figures are in `test/bench-gateway/results.json` too.',
    '',
    ...describeRun(results, 'worse'),
    '',
    '## What was promised',
    '',
    ...promises(verdicts),
    '',
    notes.trim(),
    '',
    '## How it was measured',
    '',
    `Everything is measured in two worlds, in one run. ${WORLDS.map(({ name, about }) => `**${name}** has ${about}`).join('. ')}. Between client and server stands nothing (\`direct\`) or a proxy in a process of its own; an arrangement is named by the transport of the server, then that of the client, and \`direct\` speaks to the server by the server's. In each of ${rounds} rounds all subjects of an arrangement are started anew, each with a client and a server of its own, and run for ${calls} calls, but no longer than ${ms / 1_000} s, at 16 at a time until their code is compiled (a proxy runs for days). Then they take ${turns} turns of ${milliseconds} ms under every load, after a quarter of that to settle, while the others rest; every second turn goes in reverse order. What slows the machine down for seconds so meets all of them alike. A client has one session, in one process. All of them share the cores of the machine. Figures are medians over all turns, shares and ratios medians of those within each turn, the spread is where the middle half of the turns lies. Processor time is that of each process, in microseconds per call, as Linux tells it; it is the figure that other work on the machine disturbs least. Cores busy is that of all three together.`,
    '',
    'Client and server of the lean world are some hundred lines each, by hand: `client-lean.ts` and `wire-http.ts` on bare sockets, `servers/lean.ts` on `node:http`. The server answers a POST with an SSE stream of one event, which servers on the SDK do too and the clients of all these proxies take, so that in both worlds a proxy has the same to read; it has no stream for GET (405).',
    '',
    'mcp-proxy only wraps stdio servers on the command line; in front of an HTTP server its library is used, as its command uses it. FastMCP is a framework: its proxy is what its users write, tools that call those of an SDK client. supergateway keeps sessions (`--stateful`); without, it would start a child for each call. Ours runs from source, with its defaults (deadlines, a breaker, a bulkhead, metrics in the process).',
    '',
    '## All figures',
    '',
    ...tables(rows),
    'To repeat it: `npm ci && npm run bench:gateway`, some 25 minutes. After `--`, `--world=ordinary|lean`, `--arrangement=REGEX` and `--subjects=REGEX` measure what matches, `--answers=json` has the lean server answer in JSON, `--quick` is one short round, `--rounds=N`, `--turns=N` and `--ms=N` set how many and how long; what is less than all of it writes nothing, unless `--out=FOLDER` says where. `--peers=FOLDER` keeps the installed peers there for the next run.',
  ].join('\n')}\n`;
};
