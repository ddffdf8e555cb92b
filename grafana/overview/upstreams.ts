/**
 * @module
 * The servers behind the gateway.
 */
import { UPSTREAM_STATES } from '../colours.ts';
import type { Row } from '../panel.ts';
import { count, quantile, rate, SCOPE, upstreamStates } from '../queries.ts';
import { LABEL, ours } from '../sources.ts';
import { tracesOfTool } from '../traces.ts';

export const upstreams: Row = {
  title: 'Upstream servers of the gateway',
  panels: [
    {
      kind: 'timeline',
      title: 'Upstream states',
      question: 'Which upstream is down, and since when? The worst of all instances.',
      bad: 'Red (down): its tools are hidden. Red and blue in turn: it is restarted and fails again. Yellow: degraded.',
      unit: 'none',
      states: UPSTREAM_STATES,
      queries: [
        {
          expr: upstreamStates(['job', LABEL.upstream]),
          legend: `{{${LABEL.upstream}}} ({{job}})`,
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Restarts and reconnects',
      question: 'Which upstream does not stay up?',
      bad: 'Any that goes on: it crashes at start, or the address is wrong.',
      unit: 'none',
      decimals: 0,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: count(ours('upstreamRestarts'), SCOPE, ['job', LABEL.upstream]),
          legend: `{{${LABEL.upstream}}} ({{job}})`,
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Requests to upstreams, by error',
      question: 'What do upstream servers answer to the gateway?',
      bad: 'Any error type: a JSON-RPC code, `tool_error` (the tool speaking) or a failure code.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('clientOperationDuration', '_count'), SCOPE, [
            'job',
            'mcp_method_name',
            LABEL.errorType,
          ]),
          legend: `{{mcp_method_name}} {{${LABEL.errorType}}}`,
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Duration of calls to upstreams by tool, p95',
      question: 'Is it the upstream that is slow, or we?',
      bad: 'As slow as Duration by tool: the upstream is. Much faster: time is lost in queues and retries here.',
      unit: 's',
      queries: [
        {
          expr: quantile(
            0.95,
            ours('clientOperationDuration', '_bucket'),
            `${SCOPE}, ${LABEL.tool}=~"$tool", mcp_method_name="tools/call"`,
            ['job', LABEL.service, LABEL.tool],
          ),
          legend: `{{${LABEL.tool}}} ({{job}})`,
        },
      ],
      links: [tracesOfTool],
      width: 12,
      height: 7,
    },
  ],
};
