/**
 * @module
 * Puts together what carries the signals away: the exporters that the plan names, each in the
 * processor or reader that feeds it. Loads nothing itself; `start.ts` hands in the parts.
 *
 * NodeSDK could do this from the environment, but not beside a reader of our own, and its
 * exporters would hold up the exit (see `background-export.ts`).
 */
import { type ExportPlan, readNumbers, type Signal } from './export-plan.ts';

/** Where the classes come from. */
export interface Parts {
  /** A package of the SDK, by name. */
  load(name: string): unknown;
  /** The OTLP exporter of a signal, for the protocol planned. */
  otlp(signal: Signal): object;
}

/** Arguments of NodeSDK; their types are those of the SDK, which this file does not know. */
export interface Exporters {
  readonly spanProcessors: readonly unknown[];
  readonly logRecordProcessors: readonly unknown[];
  readonly metricReaders: readonly unknown[];
}

/** A module whose classes take one bag of options. */
type Module = Readonly<Record<string, new (options?: object) => object>>;

/** @throws if the module has no such class: a version of the SDK that we do not know. */
export const make = (module: unknown, name: string, options: object = {}): object => {
  const Class = (module as Module)[name];
  if (!Class) throw new Error(`OpenTelemetry has no ${name}`);
  return new Class(options);
};

/** Options of the batch processors and the variables of the specification behind them. */
const batching = (env: NodeJS.ProcessEnv, prefix: 'OTEL_BSP' | 'OTEL_BLRP') =>
  readNumbers(env, {
    maxQueueSize: `${prefix}_MAX_QUEUE_SIZE`,
    maxExportBatchSize: `${prefix}_MAX_EXPORT_BATCH_SIZE`,
    scheduledDelayMillis: `${prefix}_SCHEDULE_DELAY`,
    exportTimeoutMillis: `${prefix}_EXPORT_TIMEOUT`,
  });

export const createExporters = (
  plan: ExportPlan,
  env: NodeJS.ProcessEnv,
  { load, otlp }: Parts,
): Exporters => ({
  spanProcessors: plan.traces.exporters.map((name) => {
    const sdk = load('@opentelemetry/sdk-trace');
    if (name === 'console') {
      return make(sdk, 'SimpleSpanProcessor', { exporter: make(sdk, 'ConsoleSpanExporter') });
    }
    const exporter =
      name === 'zipkin'
        ? make(load('@opentelemetry/exporter-zipkin'), 'ZipkinExporter')
        : otlp('traces');
    return make(sdk, 'BatchSpanProcessor', { exporter, ...batching(env, 'OTEL_BSP') });
  }),

  logRecordProcessors: plan.logs.exporters.map((name) => {
    const sdk = load('@opentelemetry/sdk-logs');
    if (name === 'console') {
      const exporter = make(sdk, 'ConsoleLogRecordExporter');
      return make(sdk, 'SimpleLogRecordProcessor', { exporter });
    }
    const exporter = otlp('logs');
    return make(sdk, 'BatchLogRecordProcessor', { exporter, ...batching(env, 'OTEL_BLRP') });
  }),

  metricReaders: plan.metrics.exporters.map((name) => {
    if (name === 'prometheus') {
      return make(load('@opentelemetry/exporter-prometheus'), 'PrometheusExporter', {
        host: env.OTEL_EXPORTER_PROMETHEUS_HOST,
        ...readNumbers(env, { port: 'OTEL_EXPORTER_PROMETHEUS_PORT' }),
      });
    }
    const sdk = load('@opentelemetry/sdk-metrics');
    const { interval = 60_000, timeout = 30_000 } = readNumbers(env, {
      interval: 'OTEL_METRIC_EXPORT_INTERVAL',
      timeout: 'OTEL_METRIC_EXPORT_TIMEOUT',
    });
    return make(sdk, 'PeriodicExportingMetricReader', {
      exporter: name === 'console' ? make(sdk, 'ConsoleMetricExporter') : otlp('metrics'),
      exportIntervalMillis: interval,
      exportTimeoutMillis: Math.min(timeout, interval),
    });
  }),
});
