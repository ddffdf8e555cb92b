/**
 * @module
 * Makes collected metrics readable inside the process: percentiles for `health_check` and the
 * console, states and counts by name. Pure functions over the shape of `ResourceMetrics` of
 * `@opentelemetry/sdk-metrics`, declared structurally so that nothing here needs the SDK.
 *
 * @example
 * const taken = await telemetry.snapshot();
 * taken.toolDuration.tools.get('search')?.p95; // milliseconds
 * taken.value('resilience.circuit_breaker.state', { 'resilience.dependency': 'api', state: 'open' });
 */
import { ATTR_GEN_AI_TOOL_NAME } from './semconv.ts';
import { METRIC } from './signals.ts';

type AttributeValue = string | number | boolean;

/** Attributes that a data point must have, among others, to be counted. */
type Match = Readonly<Record<string, AttributeValue>>;

/** The part of a histogram with explicit buckets that is read. */
export interface HistogramLike {
  readonly buckets: { readonly boundaries: readonly number[]; readonly counts: readonly number[] };
  readonly sum?: number | undefined;
  readonly count: number;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

/** The part of `ResourceMetrics` that is read. */
export interface MetricsLike {
  readonly scopeMetrics: readonly {
    readonly metrics: readonly {
      readonly descriptor: { readonly name: string };
      readonly dataPoints: readonly {
        readonly attributes: Readonly<Record<string, unknown>>;
        readonly value: unknown;
      }[];
    }[];
  }[];
}

/**
 * Durations in milliseconds. `count` and `avg` are exact. A percentile is interpolated inside
 * the bucket that holds the exact one (nearest rank), so it is off by no more than the width
 * of that bucket: for `tool.duration` 1 ms below 6 ms, two thirds of the lower end up to 30 s
 * (see `TOOL_DURATION_BUCKETS`). Beyond the last boundary it is known only to lie between
 * that boundary and the maximum. All five cover the whole life of the process.
 */
export interface DurationStats {
  readonly count: number;
  readonly avg: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** One series: its attributes and its value (of a histogram, the count). */
interface Series {
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly value: number;
}

export interface Snapshot {
  /** `tool.duration`, over all outcomes: of every call, and of each tool that was called. */
  readonly toolDuration: {
    readonly overall: DurationStats | undefined;
    readonly tools: ReadonlyMap<string, DurationStats>;
  };
  /**
   * The sum over the series of `metric` that carry all of `match`; of a histogram, the number
   * of recordings. Undefined if there is none, which for a counter means: never counted.
   */
  value(metric: string, match?: Match): number | undefined;
  /** The series of `metric` that carry all of `match`. */
  series(metric: string, match?: Match): readonly Series[];
  /** A histogram whose unit is seconds, merged over the series that carry all of `match`. */
  duration(metric: string, match?: Match): DurationStats | undefined;
}

const isHistogram = (value: unknown): value is HistogramLike =>
  typeof value === 'object' && value !== null && 'buckets' in value;

const matches = (attributes: Readonly<Record<string, unknown>>, match: Match): boolean =>
  Object.entries(match).every(([key, value]) => attributes[key] === value);

const least = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : Math.min(a, b);
const greatest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : Math.max(a, b);

/** Adds histograms up. Those with other boundaries than the first are left out. */
export const mergeHistograms = (all: readonly HistogramLike[]): HistogramLike | undefined => {
  const [first, ...others] = all;
  if (!first) return undefined;
  const { boundaries } = first.buckets;
  const counts = [...first.buckets.counts];
  let { sum = 0, count, min, max } = first;
  for (const other of others) {
    if (other.buckets.boundaries.join() !== boundaries.join()) continue;
    other.buckets.counts.forEach((more, index) => {
      counts[index] = (counts[index] ?? 0) + more;
    });
    sum += other.sum ?? 0;
    count += other.count;
    min = least(min, other.min);
    max = greatest(max, other.max);
  }
  return { buckets: { boundaries, counts }, sum, count, min, max };
};

/**
 * The percentile `q` (0 < q <= 1), in the unit of the histogram: linear between the ends of
 * the bucket in which the recording of rank `q * count` lies, after the ends were drawn in to
 * min and max where known. Never decreases as `q` grows. NaN if nothing was recorded.
 */
export const percentile = (histogram: HistogramLike, q: number): number => {
  const { buckets, count, min, max } = histogram;
  const rank = q * count;
  let before = 0;
  for (const [index, inside] of buckets.counts.entries()) {
    if (inside > 0 && before + inside >= rank) {
      const last = buckets.boundaries.at(-1) ?? 0;
      const lower = index === 0 ? (min ?? 0) : (buckets.boundaries[index - 1] ?? last);
      const upper = buckets.boundaries[index] ?? max ?? last;
      const low = Math.max(lower, min ?? lower);
      const high = Math.max(low, Math.min(upper, max ?? upper));
      return low + (high - low) * Math.max(0, (rank - before) / inside);
    }
    before += inside;
  }
  return Number.NaN;
};

/** Milliseconds of a histogram of seconds; undefined if nothing was recorded. */
export const durationStats = (seconds: HistogramLike | undefined): DurationStats | undefined => {
  if (!seconds || seconds.count === 0) return undefined;
  const ms = (q: number): number => percentile(seconds, q) * 1000;
  return {
    count: seconds.count,
    avg: ((seconds.sum ?? 0) / seconds.count) * 1000,
    p50: ms(0.5),
    p95: ms(0.95),
    p99: ms(0.99),
  };
};

/** Reads what was collected; see {@link Snapshot}. */
export const createSnapshot = (collected: MetricsLike): Snapshot => {
  const pointsOf = (metric: string, match: Match = {}) =>
    collected.scopeMetrics
      .flatMap((scope) => scope.metrics)
      .filter(({ descriptor }) => descriptor.name === metric)
      .flatMap(({ dataPoints }) => dataPoints)
      .filter(({ attributes }) => matches(attributes, match));

  const series = (metric: string, match?: Match): readonly Series[] =>
    pointsOf(metric, match).flatMap(({ attributes, value }) => {
      const number = isHistogram(value) ? value.count : value;
      return typeof number === 'number' ? [{ attributes, value: number }] : [];
    });

  const duration = (metric: string, match?: Match): DurationStats | undefined => {
    const values = pointsOf(metric, match).map(({ value }) => value);
    return durationStats(mergeHistograms(values.filter(isHistogram)));
  };

  const toolDuration = METRIC.toolDuration.name;
  const tools = new Map<string, DurationStats>();
  for (const { attributes } of pointsOf(toolDuration)) {
    const tool = attributes[ATTR_GEN_AI_TOOL_NAME];
    if (typeof tool !== 'string' || tools.has(tool)) continue;
    const stats = duration(toolDuration, { [ATTR_GEN_AI_TOOL_NAME]: tool });
    if (stats) tools.set(tool, stats);
  }

  return {
    toolDuration: { overall: duration(toolDuration), tools },
    value: (metric, match) => {
      const found = series(metric, match);
      return found.length > 0 ? found.reduce((sum, { value }) => sum + value, 0) : undefined;
    },
    series,
    duration,
  };
};

/** What is seen where nothing is collected: `OTEL_SDK_DISABLED`, or metrics of somebody else's SDK. */
export const EMPTY_SNAPSHOT: Snapshot = createSnapshot({ scopeMetrics: [] });
