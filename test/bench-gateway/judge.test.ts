import { expect, test } from 'vitest';
import { fallsShort, judge } from './judge.ts';
import { render } from './report.ts';
import type { Row } from './rows.ts';

const row = (world: Row['world'], subject: string, ...rates: number[]): Row => ({
  world,
  arrangement: 'HTTP behind HTTP',
  load: '16 at a time',
  subject,
  samples: rates.map((perSecond) => ({
    perSecond,
    p50: 1,
    p99: 2,
    cpu: { client: 100, proxy: subject === 'direct' ? undefined : 200, server: 300 },
  })),
});

/** Ours loses 10 % in the ordinary world, has 3 times of FastMCP in the lean one, and fails elsewhere. */
const ROWS = [
  row('ordinary', 'direct', 1_000, 2_000, 1_000),
  row('ordinary', 'mcp-resilience', 900, 1_800, 900),
  row('ordinary', 'fastmcp', 800, 1_600, 800),
  row('lean', 'direct', 9_000),
  row('lean', 'bare node:http', 4_500),
  row('lean', 'mcp-resilience', 3_000),
  row('lean', 'fastmcp', 1_000),
];

const shortOf = (rows: readonly Row[]): string[] =>
  judge(rows)
    .filter(fallsShort)
    .map(({ promise }) => promise);

test('each promise is judged in its world, and the figures of the other are given', () => {
  expect(
    judge(ROWS).map(({ judgedIn, findings }) => [
      judgedIn,
      ...findings.map(({ world, met }) => `${world} ${met}`),
    ]),
  ).toEqual([
    ['ordinary', 'ordinary true', 'lean false'],
    ['lean', 'ordinary false', 'lean true'],
  ]);
  expect(shortOf(ROWS)).toEqual([]);
});

test('what falls short in its own world does so', () => {
  const slow = ROWS.map((each) =>
    each.subject === 'mcp-resilience' ? row(each.world, each.subject, 840, 1_680, 840) : each,
  );
  expect(shortOf(slow)).toEqual([
    'at most 15 % of the throughput of a direct connection over HTTP is lost (16 at a time)',
    'at least twice the throughput of fastmcp (HTTP behind HTTP)',
  ]);
});

test('the page shows both worlds of every promise, and what was not measured as such', () => {
  const page = (rows: readonly Row[]) =>
    render(
      {
        date: '2026-01-01',
        machine: { cpu: 'c', cores: 2, node: '24', v8: '13', loadBefore: 0, loadAfter: 0 },
        versions: {},
        rounds: 3,
        turns: 1,
        milliseconds: 1,
        rows,
        verdicts: judge(rows),
      },
      { calls: 1, ms: 1_000 },
      'notes',
    );
  expect(page(ROWS)).toMatch(
    /is lost \(16 at a time\) \| ordinary \| PASS \| 10 % lost: .* \| lean: not kept, 67 % lost \(bare node:http: 50 %\): /,
  );
  expect(page(ROWS)).toMatch(
    /of fastmcp .* \| lean \| PASS \| 3\.00 times: .* \| ordinary: not kept, 1\.13 times/,
  );
  expect(page(ROWS.filter(({ world }) => world === 'lean'))).toContain(
    '| ordinary | not measured |  | lean: not kept',
  );
});
