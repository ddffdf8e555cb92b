/**
 * @module
 * Calls that met the fault, and the others: whom it hurt, and whether it spread.
 */
import type { Row } from '../panel.ts';
import { quantile, rate, SCOPE } from '../queries.ts';
import { LABEL, ours } from '../sources.ts';
import { tracesOfFaults, tracesOfTool } from '../traces.ts';

export const CALLS = ours('toolDuration', '_count');
const BUCKETS = ours('toolDuration', '_bucket');
const TOOLS = `${SCOPE}, ${LABEL.tool}=~"$tool"`;

const BY_TOOL = ['job', LABEL.service, LABEL.tool];

/** Calls that met a fault. */
export const AFFECTED = `${TOOLS}, ${LABEL.faultInjected}="true"`;

/** Calls that met none. What a breaker refused that a fault had opened counts as met. */
export const UNAFFECTED = `${TOOLS}, ${LABEL.faultInjected}!="true"`;

export const calls: Row = {
  title: 'Calls that met it, and the others',
  panels: [
    {
      kind: 'graph',
      title: 'Outcomes of calls that met a fault',
      question: 'What became of the calls that met the fault?',
      bad: 'Red throughout. Then orange (rejected) is the breaker at work, yellow and blue are fallback and cache.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(CALLS, AFFECTED, ['job', LABEL.service, LABEL.outcome]),
          legend: `{{${LABEL.outcome}}}`,
        },
      ],
      links: [tracesOfFaults],
      width: 12,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Outcomes of all other calls',
      question: 'Did anybody else notice?',
      bad: 'Red or orange while the fault is armed, on tools that it is not aimed at.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(CALLS, UNAFFECTED, [LABEL.outcome]),
          legend: `{{${LABEL.outcome}}}`,
        },
      ],
      width: 12,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Duration of calls that met a fault, p50 and p95',
      question: 'How long do clients wait when the fault meets them?',
      bad: 'At the deadline of the tool. It should fall once the breaker is open.',
      unit: 's',
      queries: [
        {
          expr: quantile(0.5, BUCKETS, AFFECTED, BY_TOOL),
          legend: `{{${LABEL.tool}}} p50`,
        },
        {
          expr: quantile(0.95, BUCKETS, AFFECTED, BY_TOOL),
          legend: `{{${LABEL.tool}}} p95`,
        },
      ],
      links: [tracesOfTool],
      width: 12,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Duration of all other calls, p95',
      question: 'Do other tools become slow as well?',
      bad: 'Any rise while the fault is armed: the bulkhead does not keep it apart.',
      unit: 's',
      queries: [
        {
          expr: quantile(0.95, BUCKETS, UNAFFECTED, BY_TOOL),
          legend: `{{${LABEL.tool}}}`,
        },
      ],
      links: [tracesOfTool],
      width: 12,
      height: 8,
    },
  ],
};
