/**
 * @module
 * What is held back: by rate limiters and bulkheads. And what steps in: cache and fallbacks.
 */
import type { Row } from '../panel.ts';
import { count, DEPENDENCIES, GAUGES, rate, worst } from '../queries.ts';
import { LABEL, ours } from '../sources.ts';

const BY_DEPENDENCY = ['job', LABEL.dependency];
const BY_INSTANCE = [...BY_DEPENDENCY, 'instance'];
const DEPENDENCY = `{{${LABEL.dependency}}} ({{job}})`;
const DEPENDENCY_OUTCOME = `{{${LABEL.dependency}}}: {{outcome}}`;

export const limits: Row = {
  title: 'Limits: rate limiter and bulkhead',
  panels: [
    {
      kind: 'graph',
      title: 'Rate limiter decisions',
      question: 'How much is let through, and how much is refused? `mcp.http` is the front door.',
      bad: 'rejected for minutes: one client or one model asks for more than the limit.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('rateLimiterDecisions'), DEPENDENCIES, [
            'job',
            LABEL.dependency,
            'outcome',
          ]),
          legend: DEPENDENCY_OUTCOME,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Bulkhead use',
      question: 'Which share of the places is taken? The fullest instance.',
      bad: 'At 100 %: calls wait or are refused, because the dependency is slow or demand is high.',
      unit: 'percentunit',
      max: 1,
      thresholds: ['green', [0.8, 'yellow'], [1, 'red']],
      queries: [
        {
          expr: `max by (${BY_DEPENDENCY.join(', ')}) (${worst(ours('bulkheadActive'), GAUGES, BY_INSTANCE)} / (${worst(ours('bulkheadLimit'), GAUGES, BY_INSTANCE)} > 0))`,
          legend: DEPENDENCY,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Bulkhead decisions',
      question: 'How many calls get a place, are refused, or leave the queue?',
      bad: 'rejected: no place and no room in the queue. cancelled: clients gave up while waiting.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('bulkheadDecisions'), DEPENDENCIES, ['job', LABEL.dependency, 'outcome']),
          legend: DEPENDENCY_OUTCOME,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Calls in flight and limit',
      question: 'How many calls run at one time, and how many may? An adaptive limit moves.',
      bad: 'A limit that shrinks: the dependency has become slow. In flight at the limit.',
      unit: 'short',
      decimals: 0,
      queries: [
        {
          expr: `sum by (${BY_DEPENDENCY.join(', ')}) (${ours('bulkheadActive')}{${GAUGES}})`,
          legend: `{{${LABEL.dependency}}} in flight`,
        },
        {
          expr: `sum by (${BY_DEPENDENCY.join(', ')}) (${ours('bulkheadLimit')}{${GAUGES}})`,
          legend: `{{${LABEL.dependency}}} limit`,
        },
      ],
      width: 8,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Calls waiting',
      question: 'How many calls wait for a place?',
      bad: 'Any for long: a queue that does not drain only adds latency.',
      unit: 'short',
      decimals: 0,
      queries: [
        {
          expr: `sum by (${BY_DEPENDENCY.join(', ')}) (${ours('bulkheadQueued')}{${GAUGES}})`,
          legend: DEPENDENCY,
        },
      ],
      width: 8,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Longest wait for a place',
      question: 'How long has the first in the queue been waiting?',
      bad: 'Seconds: those behind it will wait longer still.',
      unit: 's',
      thresholds: ['green', [1, 'yellow'], [10, 'red']],
      queries: [
        { expr: worst(ours('bulkheadOldestWait'), GAUGES, BY_DEPENDENCY), legend: DEPENDENCY },
      ],
      width: 8,
      height: 7,
    },
  ],
};

export const cache: Row = {
  title: 'Cache and fallback',
  panels: [
    {
      kind: 'graph',
      title: 'Cache look-ups',
      question: 'What does the cache answer?',
      bad: 'stale: the dependency fails and old answers cover for it. Only miss: the key never repeats.',
      unit: 'reqps',
      stacked: true,
      queries: [
        {
          expr: rate(ours('cacheRequests'), DEPENDENCIES, ['job', LABEL.dependency, 'outcome']),
          legend: DEPENDENCY_OUTCOME,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Cache hit ratio',
      question: 'Which share of look-ups needed no call of their own?',
      bad: 'A sudden drop: more calls reach the dependency.',
      unit: 'percentunit',
      max: 1,
      queries: [
        {
          expr: `(${rate(ours('cacheRequests'), `${DEPENDENCIES}, outcome=~"hit|stale|shared"`, BY_DEPENDENCY)} or 0 * ${rate(ours('cacheRequests'), DEPENDENCIES, BY_DEPENDENCY)}) / ${rate(ours('cacheRequests'), `${DEPENDENCIES}, outcome!="bypass"`, BY_DEPENDENCY)}`,
          legend: DEPENDENCY,
        },
      ],
      width: 8,
      height: 8,
    },
    {
      kind: 'graph',
      title: 'Fallbacks used, by reason',
      question: 'How many answers are a lesser one, and because of which failure?',
      bad: 'Any for long: nobody sees an error, and nobody gets the real answer.',
      unit: 'none',
      decimals: 0,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: count(ours('fallbacks'), DEPENDENCIES, ['job', LABEL.dependency, 'reason']),
          legend: `{{${LABEL.dependency}}}: {{reason}}`,
        },
      ],
      width: 8,
      height: 8,
    },
  ],
};
