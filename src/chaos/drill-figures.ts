/**
 * @module
 * Finds the figures that expectations are about, out of what was recorded in a run.
 */

import type { Expectation, Figure, Measure, Phase } from './drill-expectation.ts';
import type { CallRecord } from './drill-load.ts';
import type { Attributes, EventRecord, SpanRecord } from './drill-otlp.ts';
import type { ServerEnd } from './drill-process.ts';
import type { Series } from './drill-sink.ts';
import type { RequestRecord } from './drill-upstream.ts';

/** Beginning and end of a phase, in milliseconds since the Unix epoch. */
export interface PhaseTime {
  readonly from: number;
  readonly to: number;
}

/** Everything that was recorded in a run. */
export interface RunRecord {
  /** A phase that was not reached is missing. */
  readonly phases: Readonly<Partial<Record<Phase, PhaseTime>>>;
  readonly calls: readonly CallRecord[];
  readonly spans: readonly SpanRecord[];
  readonly events: readonly EventRecord[];
  readonly series: readonly Series[];
  readonly requests: readonly RequestRecord[];
  readonly exit?: ServerEnd;
}

/** Something that happened, as the measures see it. */
interface Item {
  readonly at: number;
  readonly seconds?: number;
  readonly traceId?: string;
}

/**
 * The value below which the share `quantile` of the values lies (nearest rank); undefined of none.
 */
export const percentile = (values: readonly number[], quantile: number): number | undefined => {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)];
};

const matches = (attributes: Attributes, wanted: Attributes = {}): boolean =>
  Object.entries(wanted).every(([name, value]) => attributes[name] === value);

const callItems = (
  { calls }: RunRecord,
  { load, outcome, code, retryAfter }: Extract<Figure, { source: 'calls' }>,
): Item[] =>
  calls.filter(
    (call) =>
      (load === undefined || call.load === load) &&
      ((outcome as readonly string[] | undefined)?.includes(call.outcome) ?? true) &&
      (code?.includes(call.code ?? '') ?? true) &&
      (retryAfter === undefined || (call.retryAfter !== undefined) === retryAfter),
  );

const spanItems = (
  { spans }: RunRecord,
  { name, kind, error, attributes }: Extract<Figure, { source: 'spans' }>,
): Item[] =>
  spans
    .filter(
      (span) =>
        (name === undefined || span.name === name) &&
        (kind === undefined || span.kind === kind) &&
        (error === undefined || span.error === error) &&
        matches(span.attributes, attributes),
    )
    .map(({ start, end, traceId }) => ({ at: start, seconds: (end - start) / 1_000, traceId }));

const itemsOf = (run: RunRecord, figure: Figure): readonly Item[] => {
  switch (figure.source) {
    case 'calls':
      return callItems(run, figure);
    case 'spans':
      return spanItems(run, figure);
    case 'events':
      return run.events.filter(
        ({ name, attributes }) => name === figure.name && matches(attributes, figure.attributes),
      );
    case 'upstream':
      return run.requests.filter(
        ({ upstream }) => figure.upstream === undefined || upstream === figure.upstream,
      );
    default:
      return [];
  }
};

/** Those that began in the phase; all of them where the figure names none. */
const inPhase = (run: RunRecord, figure: Figure): readonly Item[] => {
  const items = itemsOf(run, figure);
  if (!('phase' in figure) || figure.phase === undefined) return items;
  const time = run.phases[figure.phase];
  return time === undefined ? [] : items.filter(({ at }) => at >= time.from && at < time.to);
};

/** Shortest time between the end of one and the beginning of the next within one trace. */
const shortestGap = (items: readonly Item[]): number | undefined => {
  const gaps = [...Map.groupBy(items, ({ traceId }) => traceId).values()].flatMap((trace) => {
    const ordered = trace.toSorted((one, other) => one.at - other.at);
    return ordered.slice(1).map((item, index) => {
      const { at = 0, seconds = 0 } = ordered[index] ?? {};
      return (item.at - at) / 1_000 - seconds;
    });
  });
  return gaps.length === 0 ? undefined : Math.min(...gaps);
};

const QUANTILES: Readonly<Partial<Record<Measure, number>>> = {
  p50: 0.5,
  p95: 0.95,
  p99: 0.99,
  longest: 1,
};

const ofMetric = (
  { series }: RunRecord,
  { name, attributes }: Extract<Figure, { source: 'metric' }>,
  measure: Measure,
): number | undefined => {
  const found = series.filter((one) => one.name === name && matches(one.attributes, attributes));
  if (measure === 'total') return found.reduce((sum, { last }) => sum + last, 0);
  return found.length === 0 ? undefined : Math.max(...found.map(({ highest }) => highest));
};

const measureOf = (run: RunRecord, measure: Measure, figure: Figure): number | undefined => {
  if (figure.source === 'exit') {
    return measure === 'code' ? (run.exit?.code ?? undefined) : run.exit?.seconds;
  }
  if (figure.source === 'metric') return ofMetric(run, figure, measure);
  const items = inPhase(run, figure);
  const quantile = QUANTILES[measure];
  if (quantile !== undefined) {
    return percentile(
      items.map(({ seconds = 0 }) => seconds),
      quantile,
    );
  }
  const from = figure.phase === undefined ? undefined : run.phases[figure.phase]?.from;
  const times = items.map(({ at }) => at);
  switch (measure) {
    case 'count':
      return items.length;
    case 'share': {
      const { source, phase, load } = figure as Extract<Figure, { source: 'calls' }>;
      return quotient(items.length, inPhase(run, { source, phase, load }).length);
    }
    case 'shortestGap':
      return shortestGap(items);
    default: {
      if (times.length === 0 || from === undefined) return undefined;
      const at = measure === 'first' ? Math.min(...times) : Math.max(...times);
      return (at - from) / 1_000;
    }
  }
};

const quotient = (value: number | undefined, by: number | undefined): number | undefined =>
  value === undefined || by === undefined || by === 0 ? undefined : value / by;

/** The figure that an expectation is about; undefined where nothing was there to be measured. */
export const figureOf = (run: RunRecord, expectation: Expectation): number | undefined => {
  const { measure, of, per, comparedTo } = expectation;
  const value = measureOf(run, measure, of);
  if (per !== undefined) return quotient(value, measureOf(run, 'count', per));
  if (comparedTo === undefined) return value;
  return quotient(value, measureOf(run, measure, { ...of, phase: comparedTo } as Figure));
};
