/**
 * @module
 * Reads OTLP in JSON: as much of spans, metrics and log records as a verdict needs.
 */

export type Attributes = Readonly<Record<string, unknown>>;

/** A span as it was received. Times are milliseconds since the Unix epoch. */
export interface SpanRecord {
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly traceId: string;
  readonly start: number;
  readonly end: number;
  readonly error: boolean;
  readonly attributes: Attributes;
}

/** A log record with an event name. */
export interface EventRecord {
  readonly name: string;
  readonly at: number;
  readonly attributes: Attributes;
}

/** One value of one series: of a histogram, the number of values in it. */
export interface PointRecord {
  readonly name: string;
  readonly value: number;
  readonly attributes: Attributes;
}

/** What one request brought. */
export interface Batch {
  readonly spans: readonly SpanRecord[];
  readonly events: readonly EventRecord[];
  readonly points: readonly PointRecord[];
}

// Everything is optional, as in protobuf.
interface Value {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
}
interface KeyValue {
  readonly key: string;
  readonly value?: Value;
}
interface Point {
  readonly attributes?: readonly KeyValue[];
  readonly count?: string | number;
  readonly asDouble?: number;
  readonly asInt?: string | number;
}
interface Points {
  readonly dataPoints?: readonly Point[];
}
interface Item {
  readonly name?: string;
  readonly kind?: number;
  readonly traceId?: string;
  readonly startTimeUnixNano?: string;
  readonly endTimeUnixNano?: string;
  readonly timeUnixNano?: string;
  readonly observedTimeUnixNano?: string;
  readonly status?: { readonly code?: number };
  readonly eventName?: string;
  readonly attributes?: readonly KeyValue[];
  readonly sum?: Points;
  readonly gauge?: Points;
  readonly histogram?: Points;
}
type Scoped = { readonly [Key in 'spans' | 'metrics' | 'logRecords']?: readonly Item[] };
type Resourced = {
  readonly [Key in 'scopeSpans' | 'scopeMetrics' | 'scopeLogs']?: readonly Scoped[];
};
type Body = {
  readonly [Key in 'resourceSpans' | 'resourceMetrics' | 'resourceLogs']?: readonly Resourced[];
};

const scalar = (value: Value | undefined): unknown =>
  value?.intValue !== undefined
    ? Number(value.intValue)
    : (value?.stringValue ?? value?.boolValue ?? value?.doubleValue);

const attributesOf = (list: readonly KeyValue[] = []): Attributes =>
  Object.fromEntries(list.map(({ key, value }) => [key, scalar(value)]));

/** Nanoseconds in a text do not fit a number; microseconds do. */
const milliseconds = (nanoseconds = '0'): number => Number(BigInt(nanoseconds) / 1_000n) / 1_000;

const KINDS = { 2: 'server', 3: 'client' } as const;
const kindOf = (kind: number | undefined): SpanRecord['kind'] =>
  kind === 2 || kind === 3 ? KINDS[kind] : 'internal';

const STATUS_ERROR = 2;

const spanOf = (item: Item): SpanRecord => ({
  name: item.name ?? '',
  kind: kindOf(item.kind),
  traceId: item.traceId ?? '',
  start: milliseconds(item.startTimeUnixNano),
  end: milliseconds(item.endTimeUnixNano),
  error: item.status?.code === STATUS_ERROR,
  attributes: attributesOf(item.attributes),
});

const eventOf = (item: Item): EventRecord => ({
  name: item.eventName ?? '',
  at: milliseconds(item.timeUnixNano ?? item.observedTimeUnixNano),
  attributes: attributesOf(item.attributes),
});

const pointsOf = ({ name = '', sum, gauge, histogram }: Item): PointRecord[] =>
  ((sum ?? gauge ?? histogram)?.dataPoints ?? []).map((point) => ({
    name,
    value: Number(point.count ?? point.asDouble ?? point.asInt),
    attributes: attributesOf(point.attributes),
  }));

/** Reads the body of one request. What is not there is empty. */
export const readOtlp = (body: unknown): Batch => {
  const { resourceSpans = [], resourceLogs = [], resourceMetrics = [] } = (body ?? {}) as Body;
  const scoped = (
    groups: readonly Resourced[],
    key: 'scopeSpans' | 'scopeMetrics' | 'scopeLogs',
    inner: keyof Scoped,
  ): readonly Item[] =>
    groups.flatMap((group) => (group[key] ?? []).flatMap((scope) => scope[inner] ?? []));
  return {
    spans: scoped(resourceSpans, 'scopeSpans', 'spans').map(spanOf),
    events: scoped(resourceLogs, 'scopeLogs', 'logRecords').map(eventOf),
    points: scoped(resourceMetrics, 'scopeMetrics', 'metrics').flatMap(pointsOf),
  };
};
