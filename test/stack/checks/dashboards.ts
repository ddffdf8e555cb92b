/**
 * @module
 * Every query of every dashboard, asked of the real Prometheus with the real series in it.
 */
import { expect } from 'vitest';
import { expectedEmpty, panelQueries, type Query, variableQueries } from '../grafana.ts';
import type { Prometheus, Sample } from '../prometheus.ts';
import type { Stack } from '../stack.ts';

/** The last ten minutes, in which all of the scenario lies. */
const RANGE = 600;

const answerOf = (
  prometheus: Prometheus,
  { expression, instant }: Query,
): Promise<readonly Sample[]> =>
  instant
    ? prometheus
        .query(expression)
        .then((samples) => samples.filter(({ value }) => !Number.isNaN(value)))
    : prometheus.range(expression, RANGE, 5);

const nameOf = ({ dashboard, panel }: { dashboard: string; panel: string }): string =>
  `${dashboard} / ${panel}`;

/**
 * Queries that give nothing now, without those of panels that are listed with the reason.
 *
 * @throws AssertionError when a panel is listed that there is not
 */
export const emptyQueries = async ({ prometheus }: Stack): Promise<readonly Query[]> => {
  const queries = panelQueries(RANGE);
  expect(queries.length).toBeGreaterThan(0);
  const names = new Set(queries.map(nameOf));
  const excused = new Set(expectedEmpty().map(nameOf));
  expect([...excused].filter((name) => !names.has(name))).toEqual([]);
  const empty: Query[] = [];
  for (const query of queries) {
    if (excused.has(nameOf(query))) continue;
    if ((await answerOf(prometheus, query)).length === 0) empty.push(query);
  }
  return empty;
};

/** Of queries that gave nothing while things went wrong, each does now that they have recovered. */
export const filledSince = async (
  { prometheus }: Stack,
  queries: readonly Query[],
): Promise<void> => {
  const empty: string[] = [];
  for (const query of queries) {
    if ((await answerOf(prometheus, query)).length > 0) continue;
    empty.push(`${nameOf(query)}: ${query.expression}`);
  }
  expect(empty).toEqual([]);
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
