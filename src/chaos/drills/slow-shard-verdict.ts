/**
 * @module
 * What is expected of the drill `slow-shard`, and the table that the founding story left out.
 */
import { type Judged, show } from '../drill-verdict.ts';
import { KNOWLEDGE_POLICY } from './knowledge-policy.ts';
import type { SideFigures, Spread } from './slow-shard-figures.ts';

/** The figures of all three servers. */
export interface SlowShardFigures {
  readonly unprotected: SideFigures;
  readonly protected: SideFigures;
  /** The one to which nothing happens. */
  readonly undisturbed: SideFigures;
}

/** Out of the telemetry of the protected server, in seconds; missing where it did not happen. */
export interface ServerTimes {
  /** From the stall until its breaker opened. */
  readonly opened?: number;
  /** From the recovery until its breaker was closed for good. */
  readonly closed?: number;
  /** p95 of the calls that it refused. */
  readonly refused?: number;
}

const { search_knowledge: search, get_document: document } = KNOWLEDGE_POLICY;
const OPEN_TIME = search.breaker.openDuration / 1_000;
const TIMEOUT = search.timeout / 1_000;

/** How much slower the healthy tool may become. */
const SLOWER = 1.2;

const seconds = (value: number): string => `${show(value)} s`;

const milliseconds = (value: number | undefined): string =>
  value === undefined ? '-' : `${Math.round(value * 1_000)} ms`;

const atMost = (
  that: string,
  value: number | undefined,
  limit: number,
  unit: (value: number) => string,
): Judged => ({
  that,
  expected: `at most ${unit(limit)}`,
  measured: value === undefined ? 'it did not happen' : unit(value),
  ...(value !== undefined && { value }),
  pass: value !== undefined && value <= limit,
});

/**
 * The healthy tool against its own steady state just before, or against what the undisturbed
 * server took in the same seconds, whichever is more: a busy machine slows all three servers
 * alike, and that is not what is judged. Of some 100 calls the p99 is an estimate, so it is held
 * to be too slow only where that is certain (95 % on each side).
 */
const healthyTool = ({ unprotected, protected: side, undisturbed }: SlowShardFigures): Judged => {
  const usual = (pick: (spread: Spread) => number | undefined): number =>
    Math.max(pick(side.healthySteady) ?? 0, pick(undisturbed.healthyStalled) ?? 0);
  const estimate = (side.healthyStalled.p99 ?? Number.POSITIVE_INFINITY) / usual(({ p99 }) => p99);
  const [low = Number.POSITIVE_INFINITY] = side.healthyStalled.p99Range ?? [];
  const certain = low / usual(({ p99Range }) => p99Range?.[1]);
  const without = (unprotected.healthyStalled.p99 ?? 0) / (unprotected.healthySteady.p99 ?? 1);
  return {
    that: 'p99 of the healthy tool in the stall, against its steady state',
    expected: `at most x ${SLOWER} (without protection: x ${show(without)})`,
    measured: `x ${show(estimate)}, at least x ${show(certain)} with certainty`,
    value: certain,
    pass: certain <= SLOWER,
  };
};

/**
 * Judges the protected server. Fail-fast and recovery follow from its settings: an attempt timeout
 * opens the breaker; a probe that began just before the recovery may have to run into its timeout,
 * and the next one comes an open time later.
 *
 * @param stall seconds that the shard stalled
 */
export const expectations = (
  figures: SlowShardFigures,
  { opened, closed, refused }: ServerTimes,
  stall: number,
): Judged[] => {
  const side = figures.protected;
  const places = search.bulkhead.limit + search.bulkhead.queue;
  // Those that open the breaker, those that are under way by then, and one probe an open time.
  const mayWait = search.breaker.threshold + places + Math.ceil(stall / OPEN_TIME);
  const allPlaces = places + document.bulkhead.limit + document.bulkhead.queue;
  return [
    healthyTool(figures),
    atMost('the breaker opens within three attempt timeouts', opened, 3 * TIMEOUT, seconds),
    atMost('calls of the stalled tool that waited before they failed', side.waited, mayWait, show),
    atMost('p95 of refused calls is half an attempt timeout', refused, TIMEOUT / 2, seconds),
    atMost('requests without an answer fit the bulkheads', side.pending, allPlaces, show),
    atMost('calls that agents gave up on', side.lost, 0, show),
    atMost(
      'the breaker closes within two open times of the recovery',
      closed,
      2 * OPEN_TIME,
      seconds,
    ),
    atMost(
      'service is normal within two open times of the recovery',
      side.normal,
      2 * OPEN_TIME,
      seconds,
    ),
  ];
};

const spreadOf = ({ p50, p95, p99 }: Spread): string =>
  p50 === undefined ? '-' : [p50, p95, p99].map(milliseconds).join(', ');

type Row = readonly [name: string, cell: (side: SideFigures) => string];

const ROWS: readonly Row[] = [
  ['healthy tool, steady: p50, p95, p99', (side) => spreadOf(side.healthySteady)],
  ['healthy tool, in the stall: p50, p95, p99', (side) => spreadOf(side.healthyStalled)],
  ['stalled tool, steady: p50, p95, p99', (side) => spreadOf(side.stalledSteady)],
  ['stalled tool, in the stall: p50, p95, p99', (side) => spreadOf(side.stalledStalled)],
  [
    'calls in the stall: healthy tool, stalled tool',
    (side) => `${side.healthyStalled.calls}, ${side.stalledStalled.calls}`,
  ],
  [
    'until calls fail fast',
    ({ failFast, stalledStalled }) =>
      failFast === undefined ? (stalledStalled.calls > 0 ? 'never' : '-') : seconds(failFast),
  ],
  ['requests without an answer, at most', ({ pending }) => String(pending)],
  ['oldest request without an answer', ({ oldest }) => milliseconds(oldest)],
  ['answers lost', ({ lost }) => String(lost)],
  [
    'from recovery to normal service',
    ({ normal }) => (normal === undefined ? 'not seen' : seconds(normal)),
  ],
];

/** The table, in Markdown. */
export const table = (figures: SlowShardFigures): string[] => {
  const sides = [figures.unprotected, figures.protected, figures.undisturbed];
  const head = ['', 'unprotected', 'protected', 'undisturbed'];
  const lines = [head, ...ROWS.map(([name, cell]) => [name, ...sides.map(cell)])];
  const widths = head.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  return lines
    .toSpliced(
      1,
      0,
      widths.map((width) => '-'.repeat(width)),
    )
    .map((cells) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`);
};
