/**
 * @module
 * The dashboard of a drill: the fault, and how the system took it.
 */
import { FAULT_STATES } from './colours.ts';
import { AFFECTED, CALLS, calls, UNAFFECTED } from './drill/calls.ts';
import { DEPENDENCIES, reaction } from './drill/reaction.ts';
import type { Board, Row } from './panel.ts';
import { count, orZero, SCOPE } from './queries.ts';
import { LABEL, ours } from './sources.ts';
import { tileOf } from './tile.ts';
import { tracesOfFaults } from './traces.ts';

const tile = tileOf(4);

const inRange = (series: string, selector: string): string =>
  `sum(increase(${series}{${selector}}[$__range]))`;

const verdict: Row = {
  title: 'The last fault, and how the system took it',
  panels: [
    tile(
      'Faults armed now',
      orZero(`sum(${ours('faultsActive')}{${SCOPE}})`),
      'Is a fault still armed?',
      'Any, once the drill is over: clear it with halt_chaos.',
      ['green', [1, 'purple']],
    ),
    tile(
      'Faults injected',
      orZero(inRange(ours('faultsInjected'), SCOPE)),
      'How many calls met a fault, in the time shown?',
      'None during a drill: the target was not called, or the fault has expired.',
      ['text', [1, 'purple']],
    ),
    tile(
      'Answered in spite of the fault',
      `(${inRange(CALLS, `${AFFECTED}, ${LABEL.outcome}=~"success|degraded|cached"`)} or 0 * ${inRange(CALLS, AFFECTED)}) / (${inRange(CALLS, AFFECTED)} > 0)`,
      'Which share of the calls that met a fault still got an answer: by a retry, the cache or a fallback?',
      'Low: nothing covers for this dependency.',
      ['red', [0.5, 'yellow'], [0.9, 'green']],
      { unit: 'percentunit', none: 'no call met a fault' },
    ),
    tile(
      'Answered, other calls',
      `(${inRange(CALLS, `${UNAFFECTED}, ${LABEL.outcome}=~"success|degraded|cached"`)} or 0 * ${inRange(CALLS, UNAFFECTED)}) / (${inRange(CALLS, `${UNAFFECTED}, ${LABEL.outcome}!="cancelled"`)} > 0)`,
      'Did the fault spread to calls that it did not meet?',
      'Below 99 %: it did. What was refused by a breaker that the fault opened counts as met.',
      ['red', [0.9, 'yellow'], [0.99, 'green']],
      { unit: 'percentunit', decimals: 1, none: 'no other call' },
    ),
    tile(
      'Breakers opened',
      orZero(inRange(ours('breakerTransitions'), `${DEPENDENCIES}, from="closed", to="open"`)),
      'How often did a breaker open, in the time shown?',
      'None although the fault lasted: its threshold is too high. Many: it flaps.',
      ['text', [1, 'yellow'], [4, 'red']],
    ),
    tile(
      'Slowest recovery',
      `histogram_quantile(1, sum by (le) (increase(${ours('breakerRecoveryDuration', '_bucket')}{${DEPENDENCIES}}[$__range])))`,
      'How long at most until a breaker was closed again (upper bound of its bucket)?',
      'Much more than its open time.',
      ['green', [120, 'yellow'], [600, 'red']],
      { unit: 's', none: 'no recovery' },
    ),
  ],
};

const fault: Row = {
  title: 'The fault',
  panels: [
    {
      kind: 'timeline',
      title: 'Faults armed',
      question: 'Which fault was armed, at what, and when?',
      bad: 'A fault outside of a drill, or one that outlasts it.',
      unit: 'none',
      states: FAULT_STATES,
      queries: [
        {
          expr: `clamp_max(max by (job, ${LABEL.faultKind}, ${LABEL.faultTarget}) (${ours('faultsActive')}{${SCOPE}}), 1)`,
          legend: `{{${LABEL.faultKind}}} at {{${LABEL.faultTarget}}} ({{job}})`,
        },
      ],
      width: 12,
      height: 7,
    },
    {
      kind: 'graph',
      title: 'Faults injected by kind and target',
      question: 'How many calls met which fault?',
      bad: 'More than the drill was to do: its dose is too high.',
      unit: 'none',
      decimals: 0,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: count(ours('faultsInjected'), SCOPE, [
            'job',
            LABEL.service,
            LABEL.faultKind,
            LABEL.faultTarget,
          ]),
          legend: `{{${LABEL.faultKind}}} at {{${LABEL.faultTarget}}}`,
        },
      ],
      links: [tracesOfFaults],
      width: 12,
      height: 7,
    },
  ],
};

export const drill: Board = {
  uid: 'mcp-drill',
  title: 'MCP drill',
  description:
    'The last injected fault, and how the system took it: compare with what the drill expected.',
  tags: ['chaos'],
  from: 'now-30m',
  refresh: '10s',
  // A drill lasts a minute or two: servers should export every 15 s or more often.
  step: '15s',
  variables: ['datasource', 'jaeger', 'job', 'instance', 'tool', 'dependency'],
  rows: [verdict, fault, calls, reaction],
};
