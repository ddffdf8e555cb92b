/**
 * @module
 * One colour for one meaning, on every panel: green works, yellow is a warning, red is broken,
 * blue is neutral, purple was done by hand or on purpose.
 */
import type { ValueMapping } from '@grafana/grafana-foundation-sdk/dashboard';
import { MappingType } from '@grafana/grafana-foundation-sdk/dashboard';

/** A named colour of Grafana, so that it fits the light and the dark theme. */
export type Colour = 'green' | 'yellow' | 'orange' | 'red' | 'blue' | 'purple' | 'text';

/** Outcomes of tools, attempts, decisions, look-ups and hedges, and reasons, by value. */
export const OUTCOME_COLOURS: Readonly<Record<string, Colour>> = {
  success: 'green',
  accepted: 'green',
  hit: 'green',
  won: 'green',
  cached: 'blue',
  shared: 'blue',
  miss: 'blue',
  lost: 'blue',
  stale: 'yellow',
  degraded: 'yellow',
  slow: 'yellow',
  rejected: 'orange',
  budget_exhausted: 'orange',
  attempt: 'orange',
  error: 'red',
  failure: 'red',
  deadline: 'red',
  cancelled: 'text',
  ignored: 'text',
  bypass: 'text',
};

/** States that a timeline shows: as a number, since a series has no text for a value. */
export interface State {
  readonly value: number;
  readonly name: string;
  readonly colour: Colour;
}

/** States of a breaker, the worst of several instances having the highest number. */
export const BREAKER_STATES = [
  { value: 0, name: 'closed', colour: 'green' },
  { value: 1, name: 'half-open', colour: 'yellow' },
  { value: 2, name: 'open', colour: 'red' },
  { value: 3, name: 'isolated', colour: 'purple' },
] as const satisfies readonly State[];

/** States of an upstream, the worst of several instances having the highest number. */
export const UPSTREAM_STATES = [
  { value: 0, name: 'ready', colour: 'green' },
  { value: 1, name: 'connecting', colour: 'blue' },
  { value: 2, name: 'degraded', colour: 'yellow' },
  { value: 3, name: 'down', colour: 'red' },
] as const satisfies readonly State[];

/** Whether anything is armed: a number of faults, of which any above 0 is the same. */
export const FAULT_STATES = [
  { value: 0, name: 'none', colour: 'green' },
  { value: 1, name: 'armed', colour: 'purple' },
] as const satisfies readonly State[];

/** Shows states by name and colour. */
export const stateMappings = (states: readonly State[]): ValueMapping[] => [
  {
    type: MappingType.ValueToText,
    options: Object.fromEntries(
      states.map(({ value, name, colour }, index) => [
        String(value),
        { text: name, color: colour, index },
      ]),
    ),
  },
];

/** Shows how bad an alert is, in the rows of a table. */
export const alertMappings = (): ValueMapping[] => [
  {
    type: MappingType.ValueToText,
    options: {
      firing: { text: 'firing', color: 'red', index: 0 },
      pending: { text: 'pending', color: 'yellow', index: 1 },
      critical: { text: 'critical', color: 'red', index: 2 },
      warning: { text: 'warning', color: 'orange', index: 3 },
    },
  },
];
