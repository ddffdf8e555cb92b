/**
 * @module
 * What the policies did about the fault.
 */
import { breakerTimeline, breakerTransitions } from '../breaker-panels.ts';
import type { Row } from '../panel.ts';
import { GAUGES, rate } from '../queries.ts';
import { LABEL, ours } from '../sources.ts';

/** Of counters as of gauges here: what the fault caused is what a drill is about. */
export const DEPENDENCIES = GAUGES;

export const reaction: Row = {
  title: 'The reaction',
  panels: [
    breakerTimeline({
      title: 'Breaker states during the drill',
      question: 'When did the breaker open, probe and close?',
      bad: 'Still open long after the fault was cleared.',
    }),
    breakerTransitions(
      {
        title: 'Transitions during the drill',
        question: 'How many steps did it take?',
        bad: 'half-open to open again and again after the fault was cleared.',
      },
      DEPENDENCIES,
      { width: 12, height: 7 },
    ),
    {
      kind: 'graph',
      title: 'Retries during the drill',
      question: 'How much did we repeat, and was it worth it?',
      bad: 'A wall of failure: retries only add load. budget_exhausted is the budget at work.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('retryAttempts'), DEPENDENCIES, ['job', LABEL.dependency, 'outcome']),
          legend: `{{${LABEL.dependency}}}: {{outcome}}`,
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'In flight and waiting during the drill',
      question: 'Did calls pile up?',
      bad: 'A ramp that does not end: timeouts or the bulkhead are too generous.',
      unit: 'short',
      decimals: 0,
      queries: [
        {
          expr: `sum by (job, ${LABEL.dependency}) (${ours('bulkheadActive')}{${GAUGES}})`,
          legend: `{{${LABEL.dependency}}} in flight`,
        },
        {
          expr: `sum by (job, ${LABEL.dependency}) (${ours('bulkheadQueued')}{${GAUGES}})`,
          legend: `{{${LABEL.dependency}}} waiting`,
        },
      ],
      width: 12,
      height: 7,
    },
  ],
};
