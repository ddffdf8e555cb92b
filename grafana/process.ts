/**
 * @module
 * The dashboard of the processes: the Node.js runtime, and whether telemetry itself arrives.
 */
import type { Board, Row } from './panel.ts';
import { lost, pipeline } from './process/pipeline.ts';
import { runtime } from './process/runtime.ts';
import { prometheusName } from './prometheus-names.ts';
import { SCOPE, scraped } from './queries.ts';
import { RUNTIME } from './sources.ts';
import { NONE_IS_GOOD } from './tile.ts';

const now: Row = {
  title: 'Processes and telemetry now',
  panels: [
    {
      kind: 'stat',
      title: 'Processes by version',
      question: 'Which versions run, and how many of each?',
      bad: 'Two versions long after a release, or fewer processes than you started.',
      unit: 'short',
      decimals: 0,
      thresholds: ['blue'],
      none: 'no telemetry',
      queries: [
        {
          expr: `count by (service_version) (group by (job, instance, service_version) (${scraped('target_info')}{${SCOPE}}))`,
          legend: '{{service_version}}',
        },
      ],
      width: 6,
      height: 4,
    },
    {
      kind: 'stat',
      title: 'Event loop delay, p99',
      question: 'Is any process blocked?',
      bad: 'Above 0.1 s: something computes for long and every call waits for it.',
      unit: 's',
      thresholds: ['green', [0.1, 'yellow'], [0.5, 'red']],
      none: 'no telemetry',
      queries: [{ expr: `max(${prometheusName(RUNTIME.loopDelayP99)}{${SCOPE}})`, legend: 'p99' }],
      width: 6,
      height: 4,
    },
    {
      kind: 'stat',
      title: 'Scrape targets down',
      question: 'Can Prometheus reach what it scrapes: the Collector, Jaeger, itself?',
      bad: 'Any. Servers are not among them, they push.',
      unit: 'short',
      decimals: 0,
      thresholds: NONE_IS_GOOD,
      none: 'nothing is scraped',
      queries: [
        {
          expr: `count(${scraped('up')} == 0) or 0 * count(${scraped('up')})`,
          legend: 'down',
        },
      ],
      width: 6,
      height: 4,
    },
    {
      kind: 'stat',
      title: 'Telemetry lost, in the time shown',
      question: 'How many spans, points and records did the Collector give up on?',
      bad: 'Any: the other dashboards show less than there was.',
      unit: 'short',
      decimals: 0,
      thresholds: NONE_IS_GOOD,
      none: 'no Collector',
      queries: [{ expr: lost('$__range'), legend: 'lost' }],
      width: 6,
      height: 4,
    },
  ],
};

export const processes: Board = {
  uid: 'mcp-process',
  title: 'MCP process',
  description: 'The Node.js runtime of each process, and whether telemetry itself gets through.',
  tags: ['runtime'],
  from: 'now-1h',
  refresh: '30s',
  variables: ['datasource', 'process', 'instance'],
  rows: [now, runtime, pipeline],
};
