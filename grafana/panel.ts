/**
 * @module
 * What a panel is here: the question it answers, its queries and what bad looks like. The
 * dashboards and docs/dashboards.md are both made of these.
 */
import type { Colour, State } from './colours.ts';
import type { VariableName } from './variables.ts';

/** One query. */
export interface Query {
  readonly expr: string;
  /** Text of the legend, with labels in double braces. */
  readonly legend: string;
  /** Whether points are linked to the traces behind them. */
  readonly exemplars?: boolean;
}

/** From this value on, this colour. The first step begins at minus infinity. */
export type Steps = readonly [Colour, ...(readonly [number, Colour])[]];

/** A link at a series or value, to where the next question is answered. */
export interface Link {
  readonly title: string;
  readonly url: string;
}

interface Common {
  readonly title: string;
  /** What somebody who looks at it wants to know. */
  readonly question: string;
  /** What bad looks like, and what to do then. */
  readonly bad: string;
  /** Unit as Grafana names it: `s`, `percentunit`, `reqps`, `short`, `none`. */
  readonly unit: string;
  readonly queries: readonly [Query, ...Query[]];
  /** Of 24 columns. */
  readonly width: number;
  /** In grid units of 30 pixels. */
  readonly height: number;
  readonly decimals?: number;
  readonly links?: readonly Link[];
}

/** Curves over time. */
export interface Graph extends Common {
  readonly kind: 'graph';
  /** Whether series add up to a whole. */
  readonly stacked?: boolean;
  /** Bars instead of lines: for what happens now and then. */
  readonly bars?: boolean;
  readonly thresholds?: Steps;
  readonly max?: number;
}

/** One number, in the colour of its step. */
export interface Stat extends Common {
  readonly kind: 'stat';
  readonly thresholds: Steps;
  /** Shown when there is no value: the absence of one is news as well. */
  readonly none: string;
}

/** Bands of states over time. */
export interface Timeline extends Common {
  readonly kind: 'timeline';
  readonly states: readonly State[];
}

/** Rows of labels, of now. */
export interface Table extends Common {
  readonly kind: 'table';
  /** Labels shown, in order, with their headings; `Value` is the value. */
  readonly columns: Readonly<Record<string, string>>;
  readonly none: string;
}

export type Panel = Graph | Stat | Timeline | Table;

/** Panels under one heading. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** A whole dashboard. */
export interface Board {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly tags: readonly string[];
  /** What time it shows when it is opened, such as `now-1h`. */
  readonly from: string;
  readonly refresh: string;
  /** Smallest step of its queries; else that of the data source. Rates look at four steps. */
  readonly step?: string;
  readonly rows: readonly Row[];
  /** Names of the variables it has; see `variables.ts`. */
  readonly variables: readonly VariableName[];
}
