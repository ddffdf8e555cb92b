/**
 * @module
 * `docs/comparison.md`, written from a run and read back by the test that keeps it current.
 */
import { type Requirement, requirements } from '../requirements.ts';
import { libraries, type Result, type Row, type Verdict } from './run.ts';

/** What the report says about where it comes from. */
export interface Origin {
  /** Versions by the name of the package. */
  readonly versions: Readonly<Record<string, string>>;
  readonly node: string;
  readonly date: string;
}

/** A verdict as the table shows it. */
const cell = ({ verdict, asItComes }: Result): string =>
  verdict === 'pass' && asItComes?.verdict === 'fail' ? 'pass, tuned' : verdict;

/** Cells of the table by case, in the order of the libraries. */
export type Table = Readonly<Record<string, readonly string[]>>;

export const tableOf = (rows: readonly Row[]): Table =>
  Object.fromEntries(rows.map((row) => [row.case.id, row.results.map(cell)]));

/** The same, out of a report. */
export const readTable = (report: string): Table =>
  Object.fromEntries(
    [...report.matchAll(/^\| ([LM]\d+) \|[^|]*\|(.*)\|$/gm)].map(([, id = '', cells = '']) => [
      id,
      cells.split('|').map((each) => each.replaceAll('*', '').trim()),
    ]),
  );

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const emphasised = (text: string): string => (text === 'fail' ? '**fail**' : text);

const totals = (rows: readonly Row[], name: string, index: number): string => {
  const results = rows.flatMap(({ results: { [index]: result } }) => (result ? [result] : []));
  const count = (verdict: Verdict) => results.filter((r) => r.verdict === verdict).length;
  const tuned = results.filter((r) => cell(r) === 'pass, tuned').length;
  return line([name, `${count('pass')}`, `${tuned}`, `${count('fail')}`, `${count('n/a')}`]);
};

const seen = ({ verdict, observed, tuning, asItComes }: Result): string => {
  const settings = tuning.map((each) => `\`${each}\``).join(', ');
  return `${verdict}: ${observed}${settings && ` (with ${settings}; as it comes, ${asItComes?.verdict}: ${asItComes?.observed})`}`;
};

/** Libraries of which the same was seen share a line. */
const details = (row: Row): string[] => {
  const lines = new Map<string, string[]>();
  row.results.forEach((result, index) => {
    const text = seen(result);
    const names = lines.get(text) ?? [];
    lines.set(text, [...names, libraries[index]?.name ?? '']);
  });
  const { source } = (requirements as Record<string, Requirement>)[row.case.id] ?? { source: '' };
  return [
    `**${row.case.id}** ${row.case.title} (${source})`,
    ...[...lines].map(([text, names]) => `- ${names.join(', ')}: ${text}`),
    '',
  ];
};

export const render = (rows: readonly Row[], { versions, node, date }: Origin): string => {
  const names = libraries.map(({ name }) => `${name} ${versions[name]}`);
  return [
    '# Comparison',
    '',
    `Faults that users of other systems reported, or that were found in current releases, as small inputs: the same ones for every library. Written by \`npm run compare\` on ${date} with Node ${node}; a test runs all of it again and fails when a verdict here is not what comes out.`,
    '',
    'Time is simulated for all alike, except where cost is measured. A library that has nothing for what a case is about has "n/a". Each is set up as its documentation says, with the settings that serve it best in that case; "pass, tuned" means that it fails without them. Cases that need a Redis, a process to restart or an MCP session are not here. The collection is our own and this library was built against it, so that it passes all of it says little about what is not in it. The inputs stand in `test/comparison/cases/`, how each library is set up in `test/comparison/adapters/`.',
    '',
    line(['', 'pass', 'of these tuned', 'fail', 'n/a']),
    line(['---', '---', '---', '---', '---']),
    ...names.map((name, index) => totals(rows, name, index)),
    '',
    line(['id', 'case', ...names]),
    line(['---', '---', ...names.map(() => '---')]),
    ...rows.map((row) =>
      line([row.case.id, row.case.title, ...row.results.map((r) => emphasised(cell(r)))]),
    ),
    '',
    '## How each library is set up',
    '',
    ...libraries.map(({ name, setup }) => `- **${name}**: ${setup}`),
    '',
    '## What was seen',
    '',
    ...rows.flatMap(details),
  ].join('\n');
};
