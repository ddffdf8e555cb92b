/**
 * @module
 * What became of the promises of the gateway. Each is judged in the one world that it speaks of,
 * and its figures in the other are given beside that, so that nothing that falls short is hidden.
 */
import { cost, number, type Place, type Row, rate, ratio, rowsAt } from './rows.ts';
import { ARRANGEMENTS, BARE, DIRECT, OURS, PEERS } from './subjects.ts';
import { IDLE, WORKING, WORLDS, type World } from './worlds.ts';

/** What one world shows of a promise. */
export interface Finding {
  readonly world: World['name'];
  readonly met: boolean;
  readonly figures: string;
}

/** One promise and what became of it. */
export interface Verdict {
  readonly promise: string;
  /** Only the finding of this world counts. */
  readonly judgedIn: World['name'];
  readonly findings: readonly Finding[];
}

/** Whether a promise was measured in its world, and not kept. */
export const fallsShort = ({ judgedIn, findings }: Verdict): boolean =>
  findings.some(({ world, met }) => world === judgedIn && !met);

const LOSS = 0.15;
const TIMES = 2;

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
const time = (row: Row, of: 'client' | 'proxy' | 'server'): string =>
  number(cost(row, of) ?? Number.NaN);

const loss = (rows: readonly Row[], place: Place): Omit<Finding, 'world'> | undefined => {
  const here = rowsAt(rows, place);
  const [ours, direct, bare] = [OURS, DIRECT, BARE].map((name) =>
    here.find(({ subject }) => subject === name),
  );
  if (ours === undefined || direct === undefined) return undefined;
  const lost = 1 - ratio(ours, direct);
  const least = bare === undefined ? '' : ` (${BARE}: ${percent(1 - ratio(bare, direct))})`;
  const rates = `${rate(ours).toFixed(0)} against ${rate(direct).toFixed(0)} calls per second`;
  const times = `processor time per call: client ${time(direct, 'client')} us and server ${time(direct, 'server')} when direct, proxy ${time(ours, 'proxy')}`;
  return { met: lost <= LOSS, figures: `${percent(lost)} lost${least}: ${rates}; ${times}` };
};

const lead = (
  rows: readonly Row[],
  place: Place,
  peer: string,
): Omit<Finding, 'world'> | undefined => {
  const here = rowsAt(rows, place);
  const [ours, theirs] = [OURS, peer].map((name) => here.find(({ subject }) => subject === name));
  if (ours === undefined || theirs === undefined) return undefined;
  const times = ratio(ours, theirs);
  const rates = `${rate(ours).toFixed(0)} against ${rate(theirs).toFixed(0)} calls per second`;
  const costs = `processor time of the proxy ${time(ours, 'proxy')} us per call against ${time(theirs, 'proxy')}`;
  return { met: times >= TIMES, figures: `${times.toFixed(2)} times: ${rates}; ${costs}` };
};

const verdict = (
  promise: string,
  judgedIn: World['name'],
  find: (world: World['name']) => Omit<Finding, 'world'> | undefined,
): Verdict[] => {
  const findings = WORLDS.flatMap(({ name: world }) => {
    const found = find(world);
    return found === undefined ? [] : [{ world, ...found }];
  });
  return findings.length === 0 ? [] : [{ promise, judgedIn, findings }];
};

/** Of what was not measured nothing is said. */
export const judge = (rows: readonly Row[]): Verdict[] => [
  ...[IDLE, WORKING].flatMap(({ name: load }) =>
    verdict(
      `at most 15 % of the throughput of a direct connection over HTTP is lost (${load})`,
      'ordinary',
      (world) => loss(rows, { world, arrangement: 'HTTP behind HTTP', load }),
    ),
  ),
  ...ARRANGEMENTS.flatMap(({ name: arrangement }) =>
    Object.keys(PEERS).flatMap((peer) =>
      verdict(`at least twice the throughput of ${peer} (${arrangement})`, 'lean', (world) =>
        lead(rows, { world, arrangement, load: IDLE.name }, peer),
      ),
    ),
  ),
];
