/**
 * @module
 * Whether telemetry itself gets through the Collector.
 */
import type { Row } from '../panel.ts';
import { scraped } from '../queries.ts';
import type { ScrapedName } from '../sources.ts';

const SIGNALS = ['spans', 'metric_points', 'log_records'] as const;

/** What the Collector counts for each signal under a name of its own. */
const lossOf = (what: 'exporter_send_failed' | 'exporter_enqueue_failed' | 'receiver_refused') =>
  SIGNALS.map((signal): ScrapedName => `otelcol_${what}_${signal}`);

/** Everything that the Collector gives up on, in a window. */
export const lost = (window: string): string =>
  [...lossOf('exporter_send_failed'), ...lossOf('exporter_enqueue_failed')]
    .map((name) => `(sum(increase(${name}[${window}])) or vector(0))`)
    .join(' + ');

const perSecond = (names: readonly ScrapedName[], by: string) =>
  names.map((name) => ({
    expr: `sum by (${by}) (rate(${name}[$__rate_interval]))`,
    legend: `${name.replace(/^otelcol_(exporter|receiver|processor)_/g, '').replaceAll('_', ' ')} {{${by}}}`,
  })) as [{ expr: string; legend: string }, ...{ expr: string; legend: string }[]];

export const pipeline: Row = {
  title: 'Telemetry pipeline (Collector)',
  panels: [
    {
      kind: 'graph',
      title: 'Telemetry received',
      question: 'Does telemetry arrive?',
      bad: 'Nothing while servers run: see "No data" in docs/stack.md.',
      unit: 'cps',
      queries: perSecond(
        SIGNALS.map((signal): ScrapedName => `otelcol_receiver_accepted_${signal}`),
        'receiver',
      ),
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Telemetry refused or dropped',
      question: 'Does the Collector turn telemetry away?',
      bad: 'Any. refused: its memory limit is reached; senders try again for a while, then drop. filtered: points that Prometheus would not take, because a clock is wrong (filter/time) or it is no sum from the start (filter/kind).',
      unit: 'cps',
      queries: [
        ...perSecond(lossOf('receiver_refused'), 'receiver'),
        ...perSecond(['otelcol_processor_filter_datapoints_filtered'], 'filter'),
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Telemetry that could not be sent',
      question: 'Do Jaeger and Prometheus take what the Collector sends?',
      bad: 'Any: send failed was given up after all retries, enqueue failed found the queue full. Both are lost.',
      unit: 'cps',
      queries: perSecond(
        [...lossOf('exporter_send_failed'), ...lossOf('exporter_enqueue_failed')],
        'exporter',
      ),
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Queue of the exporters',
      question: 'How full are the queues in front of Jaeger and Prometheus?',
      bad: 'Rising: one of them is down or slow. At 100 % telemetry is lost.',
      unit: 'percentunit',
      max: 1,
      thresholds: ['green', [0.5, 'yellow'], [0.8, 'red']],
      queries: [
        {
          expr: `max by (exporter) (${scraped('otelcol_exporter_queue_size')}) / max by (exporter) (${scraped('otelcol_exporter_queue_capacity')} > 0)`,
          legend: '{{exporter}}',
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Telemetry sent on',
      question: 'Does what arrives go on?',
      bad: 'Less than is received, beyond what sampling drops.',
      unit: 'cps',
      queries: perSecond(
        ['otelcol_exporter_sent_spans', 'otelcol_exporter_sent_metric_points'],
        'exporter',
      ),
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Memory of the Collector',
      question: 'How near is the Collector to its memory limit?',
      bad: 'Near the limit of its container: it refuses telemetry, then it is killed.',
      unit: 'bytes',
      queries: [
        {
          expr: `max by (job) (${scraped('otelcol_process_memory_rss')})`,
          legend: '{{job}}',
        },
      ],
      width: 8,
      height: 8,
    },
  ],
};
