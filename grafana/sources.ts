/**
 * @module
 * Every series that a query may name: those of our own contract, and those that the programs
 * around us make. A test refuses a query that names anything else.
 */
import {
  ATTR_ERROR_TYPE,
  ATTR_GEN_AI_TOOL_NAME,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVICE_NAME,
} from '../src/telemetry/semconv.ts';
import { ATTR, METRIC, type MetricSpec } from '../src/telemetry/signals.ts';
import { type NamedMetric, prometheusLabel, prometheusName } from './prometheus-names.ts';

/** A metric with the labels that it carries besides those of its resource. */
export interface Source extends NamedMetric {
  readonly attributes: readonly string[];
}

/** The HTTP instrumentations of OpenTelemetry, as far as a query names them. */
export const HTTP = {
  clientDuration: {
    name: 'http.client.request.duration',
    instrument: 'histogram',
    unit: 's',
    attributes: [
      'http.request.method',
      'http.response.status_code',
      ATTR_ERROR_TYPE,
      ATTR_SERVER_ADDRESS,
      'server.port',
      'url.scheme',
    ],
  },
  serverDuration: {
    name: 'http.server.request.duration',
    instrument: 'histogram',
    unit: 's',
    attributes: [
      'http.request.method',
      'http.response.status_code',
      'http.route',
      ATTR_ERROR_TYPE,
      'network.protocol.version',
      'url.scheme',
    ],
  },
} as const satisfies Record<string, Source>;

/** `@opentelemetry/instrumentation-runtime-node`, as far as a query names them. */
export const RUNTIME = {
  loopUtilization: gauge('nodejs.eventloop.utilization', '1'),
  loopDelayP50: gauge('nodejs.eventloop.delay.p50', 's'),
  loopDelayP99: gauge('nodejs.eventloop.delay.p99', 's'),
  loopDelayMax: gauge('nodejs.eventloop.delay.max', 's'),
  heapUsed: gauge('v8js.memory.heap.used', 'By', ['v8js.heap.space.name']),
  heapSize: {
    name: 'v8js.memory.heap.space.size',
    instrument: 'observable up-down counter',
    unit: 'By',
    attributes: ['v8js.heap.space.name'],
  },
  gcDuration: {
    name: 'v8js.gc.duration',
    instrument: 'histogram',
    unit: 's',
    attributes: ['v8js.gc.type'],
  },
  activeResources: gauge('v8js.resource.active', '{resource}', ['v8js.resource.type']),
} as const satisfies Record<string, Source>;

// The connector's own, and the `dimensions` of otel/collector.yaml.
const SPAN_DIMENSIONS = [
  'service.name',
  'span.name',
  'span.kind',
  'status.code',
  ATTR_GEN_AI_TOOL_NAME,
  ATTR.toolOutcome,
  ATTR.faultInjected,
];

/** The `span_metrics` connector of the Collector, in its default namespace. */
export const SPAN_METRICS = {
  calls: {
    name: 'traces.span.metrics.calls',
    instrument: 'counter',
    unit: '',
    attributes: SPAN_DIMENSIONS,
  },
  duration: {
    name: 'traces.span.metrics.duration',
    instrument: 'histogram',
    unit: 's',
    attributes: SPAN_DIMENSIONS,
  },
} as const satisfies Record<string, Source>;

/**
 * Series that are scraped or computed, by the name that they have: nothing translates it. The
 * Collector's own have no suffix; those that count failures appear with the first one.
 */
const SCRAPED = {
  up: [],
  target_info: ['service_version', 'telemetry_sdk_language'],
  ALERTS: ['alertname', 'alertstate', 'severity'],
  // The moment since when, in seconds.
  ALERTS_FOR_STATE: ['alertname', 'severity'],
  otelcol_exporter_send_failed_spans: ['exporter'],
  otelcol_exporter_send_failed_metric_points: ['exporter'],
  otelcol_exporter_send_failed_log_records: ['exporter'],
  otelcol_exporter_enqueue_failed_spans: ['exporter'],
  otelcol_exporter_enqueue_failed_metric_points: ['exporter'],
  otelcol_exporter_enqueue_failed_log_records: ['exporter'],
  otelcol_exporter_sent_spans: ['exporter'],
  otelcol_exporter_sent_metric_points: ['exporter'],
  otelcol_exporter_queue_size: ['exporter', 'data_type'],
  otelcol_exporter_queue_capacity: ['exporter', 'data_type'],
  otelcol_receiver_accepted_spans: ['receiver', 'transport'],
  otelcol_receiver_accepted_metric_points: ['receiver', 'transport'],
  otelcol_receiver_accepted_log_records: ['receiver', 'transport'],
  otelcol_receiver_refused_spans: ['receiver', 'transport'],
  otelcol_receiver_refused_metric_points: ['receiver', 'transport'],
  otelcol_receiver_refused_log_records: ['receiver', 'transport'],
  otelcol_processor_filter_datapoints_filtered: ['filter'],
  otelcol_process_memory_rss: [],
} as const satisfies Record<string, readonly string[]>;

/**
 * Labels of every series that came in over OTLP, and of whatever an injected fault caused. The name
 * of the service is there because otel/prometheus.yaml promotes it.
 */
const COMMON_LABELS: readonly string[] = [
  'job',
  'instance',
  prometheusLabel(ATTR_SERVICE_NAME),
  prometheusLabel(ATTR.faultInjected),
  prometheusLabel(ATTR.faultId),
];

export type ScrapedName = keyof typeof SCRAPED;
type Ours = keyof typeof METRIC;

/** Name in Prometheus of a metric of the contract. */
export const ours = (key: Ours, part: '' | '_bucket' | '_sum' | '_count' = ''): string =>
  prometheusName(METRIC[key]) + part;

/** Labels that queries name, made from their attributes. */
export const LABEL = {
  /** What Jaeger calls a service: `job` has the namespace in front of it, where there is one. */
  service: prometheusLabel(ATTR_SERVICE_NAME),
  tool: prometheusLabel(ATTR_GEN_AI_TOOL_NAME),
  outcome: prometheusLabel(ATTR.toolOutcome),
  errorType: prometheusLabel(ATTR_ERROR_TYPE),
  dependency: prometheusLabel(ATTR.dependency),
  upstream: prometheusLabel(ATTR.upstreamName),
  faultKind: prometheusLabel(ATTR.faultKind),
  faultTarget: prometheusLabel(ATTR.faultTarget),
  faultInjected: prometheusLabel(ATTR.faultInjected),
} as const;

const HISTOGRAM_PARTS = ['_bucket', '_sum', '_count'];

const seriesOf = (metric: Source): [string, readonly string[]][] => {
  const name = prometheusName(metric);
  const labels = [...metric.attributes.map(prometheusLabel), ...COMMON_LABELS];
  if (metric.instrument !== 'histogram') return [[name, labels]];
  return HISTOGRAM_PARTS.map((part) => [
    name + part,
    part === '_bucket' ? [...labels, 'le'] : labels,
  ]);
};

/** Every series that a query may name, with the labels that it carries. */
export const knownSeries = (): ReadonlyMap<string, readonly string[]> =>
  new Map([
    ...(Object.values(METRIC) as readonly MetricSpec[]).flatMap(seriesOf),
    ...[HTTP, RUNTIME, SPAN_METRICS].flatMap((group) => Object.values(group).flatMap(seriesOf)),
    ...Object.entries(SCRAPED).map(([name, labels]): [string, readonly string[]] => [
      name,
      name.startsWith('ALERTS')
        ? [...labels, ...COMMON_LABELS, ...Object.values(LABEL)]
        : [...labels, 'job', 'instance'],
    ]),
  ]);

function gauge(name: string, unit: string, attributes: readonly string[] = []) {
  return { name, instrument: 'observable gauge', unit, attributes } as const;
}
