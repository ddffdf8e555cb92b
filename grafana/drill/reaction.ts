/**
 * @module
 * What the policies did about the fault.
 */
import { BREAKER_STATES } from '../colours.ts';
import type { Row } from '../panel.ts';
import { breakerStates, count, GAUGES, rate, SCOPE } from '../queries.ts';
import { LABEL, ours } from '../sources.ts';

export const DEPENDENCIES = `${SCOPE}, ${LABEL.dependency}=~"$dependency"`;

export const reaction: Row = {
  title: 'The reaction',
  panels: [
    {
      kind: 'timeline',
      title: 'Breaker states during the drill',
      question: 'When did the breaker open, probe and close?',
      bad: 'Still open long after the fault was cleared.',
      unit: 'none',
      states: BREAKER_STATES,
      queries: [
        {
          expr: breakerStates(['job', LABEL.dependency]),
          legend: `{{${LABEL.dependency}}} ({{job}})`,
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Transitions during the drill',
      question: 'How many steps did it take?',
      bad: 'half-open to open again and again after the fault was cleared.',
      unit: 'none',
      decimals: 0,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: count(ours('breakerTransitions'), DEPENDENCIES, [
            'job',
            LABEL.dependency,
            'from',
            'to',
          ]),
          legend: `{{${LABEL.dependency}}}: {{from}} to {{to}}`,
        },
      ],
      width: 12,
      height: 7,
    },
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
