/**
 * @module
 * Judges a query by what really exists: series of our contract, of the programs around us, and
 * those that otel/rules.yaml records.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { knownSeries, LABEL } from '../../grafana/sources.ts';
import { read } from './promql.ts';

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface RulesFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

/** Text of a file of the repository. */
export const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const file = parse(textOf('otel/rules.yaml')) as RulesFile;

/** Every rule, recording or alerting. */
export const rules: readonly Rule[] = file.groups.flatMap((group) => group.rules);

/** The level of a recorded name says its labels: `job_tool:...` has these two. */
const recorded = rules.flatMap(({ record }): [string, readonly string[]][] =>
  record === undefined
    ? []
    : [[record, record.startsWith('job_tool:') ? ['job', LABEL.tool] : []] as [string, string[]]],
);

const known = new Map([...knownSeries(), ...recorded]);

const FUNCTIONS = new Set(
  (
    'sum max count group rate increase histogram_quantile vector scalar absent clamp_max ' +
    'label_replace last_over_time label_values'
  ).split(' '),
);

/** What a query names that nothing makes: series, labels, functions. Empty if all is well. */
export const unknownIn = (expression: string): readonly string[] => {
  const { selectors, groups, made, functions } = read(expression);
  const everyLabel = new Set([
    ...made,
    ...selectors.flatMap(({ names }) => names.flatMap((name) => known.get(name) ?? [])),
  ]);
  return [
    ...selectors.flatMap(({ names, matchers }) => [
      ...(names.length === 0 ? ['a selector without a name'] : []),
      ...names.filter((name) => !known.has(name)).map((name) => `series ${name}`),
      ...names.flatMap((name) =>
        matchers
          .filter(({ label }) => !(known.get(name) ?? [label]).includes(label))
          .map(({ label }) => `label ${label} of ${name}`),
      ),
    ]),
    ...groups.flatMap(({ keyword, labels }) =>
      labels
        .filter((label) => !everyLabel.has(label))
        .map((label) => `label ${label} in ${keyword}`),
    ),
    ...functions.filter((name) => !FUNCTIONS.has(name)).map((name) => `function ${name}`),
  ];
};
