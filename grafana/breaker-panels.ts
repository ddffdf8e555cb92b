/**
 * @module
 * How breakers are shown: as states over time and as steps between them. The overview asks of
 * every day, the drill of one fault; what they look at is the same.
 */
import { BREAKER_STATES } from './colours.ts';
import type { Graph, Panel, Timeline } from './panel.ts';
import { breakerStates, count } from './queries.ts';
import { LABEL, ours } from './sources.ts';

type Words = Pick<Panel, 'title' | 'question' | 'bad'>;

/** The state of each breaker over time, the worst of all instances. */
export const breakerTimeline = (words: Words): Timeline => ({
  kind: 'timeline',
  ...words,
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
});

/** Steps of breakers from state to state, of the dependencies that `selector` leaves in. */
export const breakerTransitions = (
  words: Words,
  selector: string,
  size: Pick<Panel, 'width' | 'height'>,
): Graph => ({
  kind: 'graph',
  ...words,
  unit: 'none',
  decimals: 0,
  bars: true,
  stacked: true,
  queries: [
    {
      expr: count(ours('breakerTransitions'), selector, ['job', LABEL.dependency, 'from', 'to']),
      legend: `{{${LABEL.dependency}}}: {{from}} to {{to}}`,
    },
  ],
  ...size,
});
