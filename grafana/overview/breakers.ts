/**
 * @module
 * Circuit breakers, retries and timeouts: how failing dependencies are met.
 */
import { breakerTransitions } from '../breaker-panels.ts';
import type { Row } from '../panel.ts';
import { count, DEPENDENCIES, GAUGES, rate } from '../queries.ts';
import { LABEL, ours } from '../sources.ts';

const BY_DEPENDENCY = ['job', LABEL.dependency];
const DEPENDENCY = `{{${LABEL.dependency}}} ({{job}})`;
const DEPENDENCY_OUTCOME = `{{${LABEL.dependency}}}: {{outcome}}`;

const recovery = (q: number): string =>
  `histogram_quantile(${q}, sum by (le, ${BY_DEPENDENCY.join(', ')}) (${ours('breakerRecoveryDuration', '_bucket')}{${GAUGES}}))`;

export const breakers: Row = {
  title: 'Circuit breakers',
  panels: [
    breakerTransitions(
      {
        title: 'Breaker transitions',
        question: 'How often do breakers open and close?',
        bad: 'closed to open again and again: it flaps. half-open to open: probes still fail.',
      },
      DEPENDENCIES,
      { width: 8, height: 8 },
    ),
    {
      kind: 'graph',
      title: 'Calls at the breaker, by outcome',
      question: 'What do breakers see, and what do they refuse?',
      bad: 'failure and slow lead to an open breaker; rejected is what it then keeps away. ignored says nothing of the dependency.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('breakerCalls'), DEPENDENCIES, ['job', LABEL.dependency, 'outcome']),
          legend: DEPENDENCY_OUTCOME,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'stat',
      title: 'Time to recovery',
      question:
        'How long from opening to closed again, by dependency? Half of the recoveries (p50) and nearly all (p95) took at most this, since the processes started.',
      bad: 'Much more than the open time of the breaker: probes fail, or nobody calls and so nothing is probed.',
      unit: 's',
      decimals: 0,
      thresholds: ['green', [120, 'yellow'], [600, 'red']],
      none: 'no breaker has opened and closed',
      queries: [
        { expr: recovery(0.5), legend: `{{${LABEL.dependency}}} p50` },
        { expr: recovery(0.95), legend: `{{${LABEL.dependency}}} p95` },
      ],
      width: 8,
      height: 8,
    },
  ],
};

export const retries: Row = {
  title: 'Retries, hedges and timeouts',
  panels: [
    {
      kind: 'graph',
      title: 'Attempts beyond the first, by outcome',
      question: 'Do retries help?',
      bad: 'More failure than success: retrying only adds load. budget_exhausted: retries are suppressed.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('retryAttempts'), DEPENDENCIES, ['job', LABEL.dependency, 'outcome']),
          legend: DEPENDENCY_OUTCOME,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Retries per call',
      question: 'How much load do retries add to a dependency?',
      bad: 'At the budget (0.2 unless it is set otherwise): it holds, and calls fail without a retry. Its floor lets more through while calls are few.',
      unit: 'percentunit',
      thresholds: ['green', [0.2, 'orange']],
      queries: [
        {
          expr: `${rate(ours('retryAttempts'), `${DEPENDENCIES}, outcome!="budget_exhausted"`, BY_DEPENDENCY)} / ${rate(ours('breakerCalls'), `${DEPENDENCIES}, outcome!="rejected"`, BY_DEPENDENCY)}`,
          legend: DEPENDENCY,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Timeouts',
      question: 'Which calls take too long: one attempt, or the whole call (deadline)?',
      bad: 'attempt: the dependency is slow. deadline: no attempt made it in the time that the call has.',
      unit: 'none',
      decimals: 0,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: count(ours('timeouts'), DEPENDENCIES, ['job', LABEL.dependency, 'reason']),
          legend: `{{${LABEL.dependency}}}: {{reason}}`,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Hedges',
      question: 'Do second attempts, sent while the first still runs, win?',
      bad: 'lost throughout: they cost and bring nothing; raise the delay. budget_exhausted: none is sent.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('hedges'), DEPENDENCIES, ['job', LABEL.dependency, 'outcome']),
          legend: DEPENDENCY_OUTCOME,
        },
      ],
      width: 24,
      height: 6,
    },
  ],
};
