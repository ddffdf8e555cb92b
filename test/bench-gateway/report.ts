/**
 * @module
 * What the figures must show, and the results as `docs/benchmarks-gateway.md`. What is written by
 * hand stands in `notes.md` beside this file and is taken over.
 */
import { LOADS, type Sample } from './load.ts';
import { ARRANGEMENTS, BARE } from './subjects.ts';

/** All rounds of one subject under one load. */
export interface Row {
  readonly arrangement: string;
  readonly load: string;
  readonly subject: string;
  readonly samples: readonly Sample[];
}

/** One promise and what became of it. */
export interface Verdict {
  readonly promise: string;
  readonly met: boolean;
  readonly figures: string;
}

/** What was run, where, and what came out. */
export interface Results {
  readonly date: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly node: string;
    readonly loadBefore: number;
    readonly loadAfter: number;
  };
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly milliseconds: number;
  readonly warmUpTime: number;
  readonly rows: readonly Row[];
  readonly verdicts: readonly Verdict[];
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
};

const rate = (row: Row): number => median(row.samples.map(({ perSecond }) => perSecond));

/** Median over the rounds of the ratio within each: what slowed a round down slowed down both. */
const ratio = (a: Row, b: Row): number =>
  median(
    a.samples.map(
      ({ perSecond }, round) => perSecond / (b.samples[round]?.perSecond ?? Number.NaN),
    ),
  );

const find = (rows: readonly Row[], arrangement: string, load: string, subject: string) =>
  rows.find(
    (row) => row.arrangement === arrangement && row.load === load && row.subject === subject,
  );

/** Microseconds of processor time per call; undefined where they are not known. */
const cost = ({ samples }: Row): number | undefined => {
  const known = samples.map(({ cpu }) => cpu).filter((cpu) => cpu !== undefined);
  return known.length === 0 ? undefined : median(known);
};

const figures = (a: Row, b: Row): string => {
  const rates = `${rate(a).toFixed(0)} against ${rate(b).toFixed(0)} calls per second`;
  const [ofA, ofB] = [cost(a), cost(b)];
  if (ofA === undefined || ofB === undefined) return rates;
  const whose = b.subject === 'direct' ? `; processor time of the proxy` : '; processor time';
  const other = b.subject === 'direct' ? 'where the server takes' : 'against';
  return `${rates}${whose} ${number(ofA)} us per call ${other} ${number(ofB)}`;
};

/** The loads that the promises are judged by: a server that does nothing, and one that works. */
const JUDGED = LOADS.filter(({ length, concurrency }) => length === 100 && concurrency > 1);

/** What became of the promises of the issue that asked for the gateway. */
export const judge = (rows: readonly Row[]): Verdict[] => {
  const verdicts: Verdict[] = [];
  const ours = 'mcp-resilience';
  for (const { name: load } of JUDGED) {
    const [a, b] = [ours, 'direct'].map((one) => find(rows, 'HTTP behind HTTP', load, one));
    if (a === undefined || b === undefined) continue;
    const lost = 1 - ratio(a, b);
    verdicts.push({
      promise: `at most 15 % of the throughput of a direct connection over HTTP is lost (${load})`,
      met: lost <= 0.15,
      figures: `${(lost * 100).toFixed(0)} % lost: ${figures(a, b)}`,
    });
  }
  const [saturated] = JUDGED;
  for (const { name: arrangement } of ARRANGEMENTS) {
    const a = find(rows, arrangement, saturated?.name ?? '', ours);
    const others = rows.filter(
      (row) =>
        row.arrangement === arrangement &&
        row.load === saturated?.name &&
        ![ours, 'direct', BARE].includes(row.subject),
    );
    for (const b of a === undefined ? [] : others) {
      const times = ratio(a as Row, b);
      verdicts.push({
        promise: `at least twice the throughput of ${b.subject} (${arrangement})`,
        met: times >= 2,
        figures: `${times.toFixed(2)} times: ${figures(a as Row, b)}`,
      });
    }
  }
  return verdicts;
};

const number = (value: number): string => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);

const tableOf = (rows: readonly Row[]): string[] => {
  const direct = rows.find(({ subject }) => subject === 'direct');
  const latency = (row: Row) => median(row.samples.map(({ p50 }) => p50));
  return [
    '| subject | calls per second | of direct | spread | p50 ms | added ms | p99 ms | processor us per call |',
    '|---|---:|---:|---:|---:|---:|---:|---:|',
    ...rows.map((row) => {
      const rates = row.samples.map(({ perSecond }) => perSecond);
      const cpu = cost(row);
      const isDirect = row === direct || direct === undefined;
      const cells = [
        row.subject,
        number(rate(row)),
        isDirect ? '' : `${(ratio(row, direct) * 100).toFixed(0)} %`,
        `${number(Math.min(...rates))} to ${number(Math.max(...rates))}`,
        number(latency(row)),
        isDirect ? '' : number(latency(row) - latency(direct)),
        number(median(row.samples.map(({ p99 }) => p99))),
        cpu === undefined ? '' : number(cpu),
      ];
      return `| ${cells.join(' | ')} |`;
    }),
  ];
};

/** The page. */
export const render = (results: Results, notes: string): string => {
  const { machine, versions, rounds, milliseconds, warmUpTime, rows, verdicts } = results;
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const tables = ARRANGEMENTS.flatMap(({ name: arrangement }) =>
    LOADS.flatMap(({ name: load }) => {
      const chosen = rows.filter((row) => row.arrangement === arrangement && row.load === load);
      return chosen.length === 0 ? [] : [`### ${arrangement}, ${load}`, '', ...tableOf(chosen), ''];
    }),
  );
  return `${[
    '# Benchmarks of the gateway',
    '',
    'Written by `npm run bench:gateway` (`test/bench-gateway/`); do not edit. The figures are in `test/bench-gateway/results.json` too.',
    '',
    `- machine: ${machine.cpu}, ${machine.cores} cores seen by Node`,
    `- Node ${machine.node}; ${packages.join(', ')}`,
    `- ${results.date}; load average ${machine.loadBefore.toFixed(2)} before, ${machine.loadAfter.toFixed(2)} after (other work on the machine makes every figure worse; read ratios)`,
    '',
    '## What was promised',
    '',
    '| promise | verdict | figures |',
    '|---|---|---|',
    ...verdicts.map(
      ({ promise, met, figures: shown }) =>
        `| ${promise} | ${met ? 'PASS' : 'FALLS SHORT'} | ${shown} |`,
    ),
    '',
    notes.trim(),
    '',
    '## How it was measured',
    '',
    `One server on the SDK of the protocol (\`upstream.ts\`), one client (\`load.ts\`), and between them nothing (\`direct\`) or a proxy in a process of its own. ${rounds} rounds; in each, the subjects of an arrangement take turns, every second round in reverse order. A subject is started anew for each round, runs for ${warmUpTime} ms at 16 at a time until its code is compiled (a proxy runs for days), and then meets every load for ${milliseconds} ms after a quarter of that to settle. Client, proxy and server share the cores of the machine. Figures are medians over the rounds, shares and ratios medians of those within each round, the spread the lowest and the highest round. Processor time is that of the proxy's process alone, in the rows of \`direct\` that of the server's, and is known on Linux; it is the figure that other work on the machine disturbs least.`,
    '',
    'mcp-proxy only wraps stdio servers on the command line; in front of an HTTP server its library is used, as its command uses it. FastMCP is a framework: its proxy is what its users write, tools that call those of an SDK client. supergateway keeps sessions (`--stateful`); without, it would start a child for each call. Ours runs from source, with its defaults (deadlines, a breaker, a bulkhead, metrics in the process), without the rate limit of its HTTP door: none of the others has one.',
    '',
    '## All figures',
    '',
    ...tables,
    'To repeat it: `npm ci && npm run bench:gateway`. `-- --quick` is one short round that writes nothing, `-- --only=REGEX` takes the arrangements that match, `-- --peers=FOLDER` keeps the installed peers there for the next run.',
  ].join('\n')}\n`;
};
