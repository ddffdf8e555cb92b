/**
 * @module
 * The Node.js runtime of each process, and its front door.
 */
import type { Row } from '../panel.ts';
import { prometheusName } from '../prometheus-names.ts';
import { quantile, rate, SCOPE, worst } from '../queries.ts';
import { HTTP, ours, RUNTIME } from '../sources.ts';

const INSTANCE = ['job', 'instance'];
const LEGEND = '{{job}} {{instance}}';

export const runtime: Row = {
  title: 'Node.js runtime',
  panels: [
    {
      kind: 'graph',
      title: 'Event loop utilization',
      question: 'How busy is the one thread?',
      bad: 'Near 100 %: the process is at its limit, add another.',
      unit: 'percentunit',
      max: 1,
      thresholds: ['green', [0.8, 'yellow'], [0.95, 'red']],
      queries: [
        { expr: worst(prometheusName(RUNTIME.loopUtilization), SCOPE, INSTANCE), legend: LEGEND },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Event loop delay',
      question: 'How long does a timer or an answer wait for its turn?',
      bad: 'p99 above 0.1 s. Timeouts fire late by as much.',
      unit: 's',
      thresholds: ['green', [0.1, 'yellow'], [0.5, 'red']],
      queries: [
        {
          expr: worst(prometheusName(RUNTIME.loopDelayP50), SCOPE, INSTANCE),
          legend: `p50 ${LEGEND}`,
        },
        {
          expr: worst(prometheusName(RUNTIME.loopDelayP99), SCOPE, INSTANCE),
          legend: `p99 ${LEGEND}`,
        },
        {
          expr: worst(prometheusName(RUNTIME.loopDelayMax), SCOPE, INSTANCE),
          legend: `max ${LEGEND}`,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Heap',
      question: 'How much memory do objects take, of what is reserved for them?',
      bad: 'used that grows for hours and never falls: a leak.',
      unit: 'bytes',
      queries: [
        {
          expr: `sum by (${INSTANCE.join(', ')}) (${prometheusName(RUNTIME.heapUsed)}{${SCOPE}})`,
          legend: `used ${LEGEND}`,
        },
        {
          expr: `sum by (${INSTANCE.join(', ')}) (${prometheusName(RUNTIME.heapSize)}{${SCOPE}})`,
          legend: `reserved ${LEGEND}`,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Garbage collection, share of time',
      question: 'Which share of the time goes into collecting garbage, by type?',
      bad: 'major above some per cent: the heap is nearly full, or too much is thrown away.',
      unit: 'percentunit',
      queries: [
        {
          expr: rate(`${prometheusName(RUNTIME.gcDuration)}_sum`, SCOPE, [
            ...INSTANCE,
            'v8js_gc_type',
          ]),
          legend: `{{v8js_gc_type}} ${LEGEND}`,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Garbage collection pause, p99',
      question: 'How long does one collection stop everything?',
      bad: 'Above 0.1 s.',
      unit: 's',
      thresholds: ['green', [0.1, 'yellow'], [0.5, 'red']],
      queries: [
        {
          expr: quantile(0.99, `${prometheusName(RUNTIME.gcDuration)}_bucket`, SCOPE, [
            ...INSTANCE,
            'v8js_gc_type',
          ]),
          legend: `{{v8js_gc_type}} ${LEGEND}`,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Active resources',
      question: 'What keeps the process busy: sockets, timers, children?',
      bad: 'One type that only grows: connections or timers are not let go.',
      unit: 'short',
      decimals: 0,
      queries: [
        {
          expr: worst(prometheusName(RUNTIME.activeResources), SCOPE, [
            ...INSTANCE,
            'v8js_resource_type',
          ]),
          legend: `{{v8js_resource_type}} ${LEGEND}`,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'HTTP requests by status',
      question: 'What does the front door answer?',
      bad: '401 and 403 (clients without access), 404 (sessions that are gone), 429 (the rate limit of the door), 5xx.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(`${prometheusName(HTTP.serverDuration)}_count`, SCOPE, [
            'job',
            'http_request_method',
            'http_response_status_code',
          ]),
          legend: '{{http_request_method}} {{http_response_status_code}} ({{job}})',
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Sessions ended',
      question: 'How many sessions end, and how?',
      bad: 'Many with an error type, or far more than there are clients: they reconnect all the time.',
      unit: 'none',
      decimals: 0,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: `sum by (job, error_type) (increase(${ours('serverSessionDuration', '_count')}{${SCOPE}}[$__rate_interval]))`,
          legend: '{{job}} {{error_type}}',
        },
      ],
      width: 12,
      height: 7,
    },
  ],
};
