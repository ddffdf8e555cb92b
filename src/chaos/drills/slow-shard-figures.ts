/**
 * @module
 * The figures of one side of the drill `slow-shard`, out of what its agents saw.
 */
import { percentile } from '../drill-figures.ts';
import { type CallRecord, isFailed } from '../drill-load.ts';
import { PATIENCE } from './knowledge-run.ts';
import type { KnowledgeReport, KnowledgeTool } from './knowledge-server.ts';

/** When each part began, in milliseconds since the Unix epoch. */
export interface Times {
  readonly steady: number;
  readonly stalled: number;
  readonly recovered: number;
  readonly ended: number;
}

/** How long the calls of one tool in one part took, in seconds. */
export interface Spread {
  readonly calls: number;
  readonly p50?: number;
  readonly p95?: number;
  readonly p99?: number;
  /**
   * Between these the true p99 lies, with 95 % certainty on each side: what is measured of so few
   * calls is an estimate.
   */
  readonly p99Range?: readonly [low: number, high: number];
}

/** What one side was like. */
export interface SideFigures {
  readonly healthySteady: Spread;
  readonly healthyStalled: Spread;
  readonly stalledSteady: Spread;
  readonly stalledStalled: Spread;
  /** Calls of the stalled tool that failed only after they had waited. */
  readonly waited: number;
  /** Seconds from the stall until a call was refused at once; missing if none was. */
  readonly failFast?: number;
  /** Requests without an answer at one time, at most. */
  readonly pending: number;
  /** Seconds that a request has been without an answer, at most. */
  readonly oldest: number;
  /** Calls that the agents gave up on. */
  readonly lost: number;
  /** Seconds from the recovery until every call succeeded; missing if that never came. */
  readonly normal?: number;
}

const REFUSED = 'rejected';

/** Calls of a tool that began in a part. */
const between = (
  calls: readonly CallRecord[],
  tool: KnowledgeTool,
  from: number,
  to: number,
): readonly CallRecord[] =>
  calls.filter((call) => call.tool === tool && call.at >= from && call.at < to);

/** One-sided 95 % of the normal distribution. */
const CERTAINTY = 1.645;

/**
 * Bounds of a quantile out of order statistics (Conover, "Practical Nonparametric Statistics",
 * 3rd ed., 3.2): how many values lie below it is binomial, whatever their distribution.
 */
export const quantileRange = (
  values: readonly number[],
  quantile: number,
): readonly [low: number, high: number] | undefined => {
  const sorted = values.toSorted((one, other) => one - other);
  const rank = sorted.length * quantile;
  const spread = CERTAINTY * Math.sqrt(rank * (1 - quantile));
  const at = (index: number) => sorted[Math.min(sorted.length - 1, Math.max(0, index))];
  const [low, high] = [at(Math.floor(rank - spread) - 1), at(Math.ceil(rank + spread) - 1)];
  return low === undefined || high === undefined ? undefined : [low, high];
};

const spread = (calls: readonly CallRecord[]): Spread => {
  const seconds = calls.map((call) => call.seconds);
  const at = (quantile: number) => percentile(seconds, quantile);
  const [p50, p95, p99] = [at(0.5), at(0.95), at(0.99)];
  const p99Range = quantileRange(seconds, 0.99);
  return {
    calls: calls.length,
    ...(p50 !== undefined && { p50 }),
    ...(p95 !== undefined && { p95 }),
    ...(p99 !== undefined && { p99 }),
    ...(p99Range && { p99Range }),
  };
};

/** A call that succeeds is normal only below this, in seconds: half of what agents wait. */
const SLOW = PATIENCE / 2_000;

/** Seconds from the recovery until all calls of each tool are normal; undefined if one never is. */
const timeToNormal = (
  calls: readonly CallRecord[],
  { recovered, ended }: Times,
): number | undefined => {
  const times = Object.values(
    Object.groupBy(
      calls.filter(({ at }) => at >= recovered && at < ended),
      ({ tool }) => tool,
    ),
  ).map((ofTool = []) => {
    const ordered = ofTool.toSorted((one, other) => one.at - other.at);
    const last = ordered.findLastIndex(
      ({ outcome, seconds }) => isFailed(outcome) || seconds > SLOW,
    );
    return ordered[last + 1]?.at ?? Number.POSITIVE_INFINITY;
  });
  const latest = Math.max(...times);
  return Number.isFinite(latest) ? (latest - recovered) / 1_000 : undefined;
};

/**
 * What keeps calls from being those of a steady state; undefined if nothing does.
 *
 * @param limit longest p99, in seconds
 */
export const unsteady = (calls: readonly CallRecord[], limit: number): string | undefined => {
  const failed = calls.filter(({ outcome }) => outcome !== 'success').length;
  if (failed > 0) return `${failed} of ${calls.length} calls failed`;
  const { p99 } = spread(calls);
  if (p99 === undefined) return 'no call was answered';
  return p99 <= limit ? undefined : `p99 is ${Math.round(p99 * 1_000)} ms`;
};

/** The figures of one side. */
export const figuresOf = (
  calls: readonly CallRecord[],
  report: KnowledgeReport,
  times: Times,
): SideFigures => {
  const { steady, stalled, recovered } = times;
  const part = (tool: KnowledgeTool, from: number, to: number) => between(calls, tool, from, to);
  // A call that the stall met on its way was no longer one of the steady state.
  const steadyOf = (tool: KnowledgeTool) =>
    spread(part(tool, steady, stalled).filter((call) => call.at + call.seconds * 1_000 < stalled));
  const inStall = part('search_knowledge', stalled, recovered);
  const first = inStall.find(({ outcome }) => outcome === REFUSED);
  const healthySteady = steadyOf('get_document');
  const normal = timeToNormal(calls, times);
  return {
    healthySteady,
    healthyStalled: spread(part('get_document', stalled, recovered)),
    stalledSteady: steadyOf('search_knowledge'),
    stalledStalled: spread(inStall),
    waited: inStall.filter(({ outcome }) => outcome === 'error' || outcome === 'lost').length,
    ...(first && { failFast: (first.at - stalled) / 1_000 }),
    pending: report.pending,
    oldest: report.oldest / 1_000,
    lost: calls.filter(({ at, outcome }) => at >= stalled && outcome === 'lost').length,
    ...(normal !== undefined && { normal }),
  };
};
