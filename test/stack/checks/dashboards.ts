/**
 * @module
 * Every query of every dashboard, asked of the real Prometheus with the real series in it.
 */
import { expect } from 'vitest';
import { expectedEmpty, panelQueries, type Query, variableQueries } from '../grafana.ts';
import { until } from '../processes.ts';
import type { Prometheus } from '../prometheus.ts';
import type { Stack } from '../stack.ts';

/** The last ten minutes, in which all of the scenario lies. */
const RANGE = 600;

const answerOf = (
  prometheus: Prometheus,
  { expression, instant }: Query,
): Promise<readonly unknown[]> =>
  instant
    ? prometheus
        .query(expression)
        .then((samples) => samples.filter(({ value }) => !Number.isNaN(value)))
    : prometheus.range(expression, RANGE, 5);

const nameOf = ({ dashboard, panel }: { dashboard: string; panel: string }): string =>
  `${dashboard} / ${panel}`;

/**
 * Every panel shows something, at some time between the trouble and its end, without those that
 * are listed with the reason.
 *
 * @throws AssertionError also when a panel is listed that there is not
 */
export const filledPanels = async ({ prometheus }: Stack): Promise<void> => {
  const queries = panelQueries(RANGE);
  expect(queries.length).toBeGreaterThan(0);
  const names = new Set(queries.map(nameOf));
  const excused = new Set(expectedEmpty().map(nameOf));
  expect([...excused].filter((name) => !names.has(name))).toEqual([]);
  let empty = queries.filter((query) => !excused.has(nameOf(query)));
  await until('every panel to show something', async () => {
    const still: Query[] = [];
    for (const query of empty) {
      if ((await answerOf(prometheus, query)).length === 0) still.push(query);
    }
    empty = still;
    return empty.length === 0;
  }).catch(() => {
    const left = empty.map((query) => `${nameOf(query)}: ${query.expression}`);
    expect(left, 'queries without an answer').toEqual([]);
  });
};

/** Every variable offers something to choose. */
export const variablesHaveValues = async ({ prometheus }: Stack): Promise<void> => {
  const queries = variableQueries();
  expect(queries.length).toBeGreaterThan(0);
  for (const { dashboard, variable, label, selector } of queries) {
    const values = await prometheus.labelValues(label, selector);
    expect(values, `${dashboard}, variable ${variable}`).not.toEqual([]);
  }
};
