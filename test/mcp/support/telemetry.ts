import type { Attributes } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { NodeSDK } from '@opentelemetry/sdk-node';

type Options = NonNullable<ConstructorParameters<typeof NodeSDK>[0]>;
type Processor = NonNullable<Options['spanProcessors']>[number];
/** A span that has ended, as the SDK hands it to exporters. */
export type EndedSpan = Parameters<Processor['onEnd']>[0];

/** A real SDK whose spans and metrics stay in memory. One per test file. */
export const startTelemetry = () => {
  const spans: EndedSpan[] = [];
  const started: string[] = [];
  const processor: Processor = {
    onStart: (span) => void started.push(span.name),
    onEnd: (span) => void spans.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const reader = new PeriodicExportingMetricReader({
    exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
    exportIntervalMillis: 2 ** 30,
  });
  const sdk = new NodeSDK({
    autoDetectResources: false,
    instrumentations: [],
    spanProcessors: [processor],
    metricReaders: [reader],
    logRecordProcessors: [],
  });
  sdk.start();

  /** Attributes and counts of the points of a histogram. */
  const points = async (name: string): Promise<{ attributes: Attributes; count: number }[]> => {
    const { resourceMetrics } = await reader.collect();
    return resourceMetrics.scopeMetrics
      .flatMap((scope) => scope.metrics)
      .filter((metric) => metric.descriptor.name === name)
      .flatMap((metric) =>
        metric.dataPointType === DataPointType.HISTOGRAM
          ? metric.dataPoints.map(({ attributes, value }) => ({ attributes, count: value.count }))
          : [],
      );
  };

  return {
    spans,
    /** Spans begun but not ended. */
    open: () => started.length - spans.length,
    named: (name: string) => spans.filter((span) => span.name === name),
    points,
    shutdown: () => sdk.shutdown(),
  };
};
