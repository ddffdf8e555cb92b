/**
 * @module
 * What clients see of the tools: how many calls, how they ended, how long they took.
 */
import type { Graph, Row } from '../panel.ts';
import { prometheusName } from '../prometheus-names.ts';
import { quantile, rate, SCOPE, TOOLS } from '../queries.ts';
import { RECORDED } from '../rules.ts';
import { LABEL, ours, SPAN_METRICS } from '../sources.ts';
import { tracesOfErrors, tracesOfTool } from '../traces.ts';

const BY_TOOL = ['job', LABEL.service, LABEL.tool];
const TOOL = `{{${LABEL.tool}}} ({{job}})`;
const CALLS = ours('toolDuration', '_count');
const ANSWERED = `${TOOLS}, ${LABEL.outcome}!~"rejected|cancelled"`;

const percentile = (q: number, title: string, question: string): Graph => ({
  kind: 'graph',
  title,
  question,
  bad: 'A step up, or a curve at the attempt timeout or the deadline of the tool. Refused and cancelled calls are left out: they are fast.',
  unit: 's',
  queries: [
    { expr: quantile(q, ours('toolDuration', '_bucket'), ANSWERED, BY_TOOL), legend: TOOL },
  ],
  links: [tracesOfTool],
  width: 8,
  height: 8,
});

export const tools: Row = {
  title: 'Tools: rate, errors, duration',
  panels: [
    {
      kind: 'graph',
      title: 'Calls by tool',
      question: 'Which tools are called, and how often?',
      bad: 'A sudden drop to nothing (clients cannot reach us) or a jump (a model that loops).',
      unit: 'reqps',
      queries: [{ expr: rate(CALLS, TOOLS, BY_TOOL), legend: TOOL }],
      links: [tracesOfTool],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Calls by outcome',
      question: 'How do calls end?',
      bad: 'Red (error) and orange (rejected by our own policies). Yellow (degraded) and blue (cached) mean that a fallback or the cache covers for a failing dependency.',
      unit: 'reqps',
      stacked: true,
      queries: [{ expr: rate(CALLS, TOOLS, [LABEL.outcome]), legend: `{{${LABEL.outcome}}}` }],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Calls not answered, by tool',
      question:
        'Which share of the calls of a tool ended in an error or a refusal, whoever caused it?',
      bad: 'Above 1 % for long: the objective is missed, unless it is the caller that is wrong (see Errors by type).',
      unit: 'percentunit',
      max: 1,
      thresholds: ['green', [0.01, 'yellow'], [0.144, 'red']],
      queries: [
        {
          expr: `(${rate(CALLS, `${TOOLS}, ${LABEL.outcome}=~"error|rejected"`, BY_TOOL)} or 0 * ${rate(CALLS, TOOLS, BY_TOOL)}) / ${rate(CALLS, `${TOOLS}, ${LABEL.outcome}!="cancelled"`, BY_TOOL)}`,
          legend: TOOL,
        },
      ],
      links: [tracesOfErrors],
      width: 8,
      height: 8,
    },
    percentile(0.5, 'Duration by tool, p50', 'How long does a usual call take?'),
    percentile(0.95, 'Duration by tool, p95', 'How long do the slower calls take?'),
    percentile(0.99, 'Duration by tool, p99', 'How long do the slowest calls take?'),
    {
      kind: 'graph',
      title: 'Duration of requests with traces',
      question:
        'Which traces are behind the slow requests? The curve is p99; each dot is a trace, a click opens it.',
      bad: 'Dots far above the curve, and clusters of them.',
      unit: 's',
      queries: [
        {
          expr: quantile(
            0.99,
            `${prometheusName(SPAN_METRICS.duration)}_bucket`,
            `${TOOLS}, ${LABEL.tool}!="", span_kind="SPAN_KIND_SERVER"`,
            ['job', 'span_name'],
          ),
          legend: '{{span_name}} ({{job}})',
          exemplars: true,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Errors by type',
      question: 'What goes wrong? The codes stand in docs/failures.md.',
      bad: 'CIRCUIT_OPEN, BULKHEAD_FULL and RATE_LIMIT_EXCEEDED are our own refusals; UPSTREAM_* and network codes are the dependency; INVALID_INPUT and TOOL_ERROR are the caller or the tool speaking.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(CALLS, `${TOOLS}, ${LABEL.outcome}=~"error|rejected"`, [
            'job',
            LABEL.service,
            LABEL.errorType,
          ]),
          legend: `{{${LABEL.errorType}}}`,
        },
      ],
      links: [tracesOfErrors],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Error budget burn by tool, 1 h',
      question: 'How fast is the error budget used up? 1 uses up exactly all of it.',
      bad: 'Above the dashed lines: 6 is the slow alert, 14.4 the fast one. Injected faults never count here.',
      unit: 'none',
      decimals: 1,
      thresholds: ['green', [6, 'orange'], [14.4, 'red']],
      queries: [
        {
          // What is recorded has no name of the service but that in `job`.
          expr: `label_replace(${RECORDED.failureRatio('1h')}{job=~"$job", ${LABEL.tool}=~"$tool"} / (1 - scalar(${RECORDED.objective})), "${LABEL.service}", "$1", "job", "(?:.+/)?(.+)")`,
          legend: TOOL,
        },
      ],
      links: [tracesOfErrors],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Requests by method',
      question: 'What else do clients ask for, besides calling tools?',
      bad: 'Many initialize (sessions are lost), tools/list without tools/call, `_other` (a client that speaks something else).',
      unit: 'reqps',
      queries: [
        {
          expr: rate(ours('serverOperationDuration', '_count'), SCOPE, ['job', 'mcp_method_name']),
          legend: '{{mcp_method_name}} ({{job}})',
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Requests to dependencies over HTTP, by answer',
      question: 'What do the services that we call say?',
      bad: '429 and 5xx, or an error type without a status: nothing came back at all.',
      unit: 'reqps',
      queries: [
        {
          expr: rate('http_client_request_duration_seconds_count', SCOPE, [
            'server_address',
            'http_response_status_code',
            LABEL.errorType,
          ]),
          legend: `{{server_address}} {{http_response_status_code}} {{${LABEL.errorType}}}`,
        },
      ],
      width: 12,
      height: 7,
    },
  ],
};
