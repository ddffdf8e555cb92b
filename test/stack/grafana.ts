/**
 * @module
 * The dashboards as Grafana asks Prometheus for them: every query of every panel, variable and
 * annotation, with variables filled in.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { fileOf, root } from './compose.ts';

interface Target {
  readonly expr?: string | undefined;
  readonly instant?: boolean | undefined;
  readonly interval?: string | undefined;
}

interface Panel {
  readonly type: string;
  readonly title?: string;
  readonly interval?: string;
  readonly targets?: readonly Target[];
  readonly panels?: readonly Panel[];
  readonly fieldConfig?: {
    readonly defaults: { readonly links?: readonly { readonly url: string }[] };
  };
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query?: string | { readonly query?: string };
  readonly allValue?: string;
  readonly current?: { readonly value?: string | readonly string[] };
}

interface Dashboard {
  readonly title: string;
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
  readonly annotations: { readonly list: readonly ({ readonly name: string } & Target)[] };
}

interface Datasources {
  readonly datasources: readonly {
    readonly name: string;
    readonly uid: string;
    readonly type: string;
    readonly url: string;
    readonly jsonData: Readonly<Record<string, unknown>>;
  }[];
}

/** A query with nothing of Grafana left in it. */
export interface Query {
  readonly dashboard: string;
  /** Title of the panel, or what else asks. */
  readonly panel: string;
  readonly expression: string;
  readonly instant: boolean;
  /** Where a click on a series leads, with the labels of the series to be filled in. */
  readonly links: readonly string[];
}

/** A query of a variable: the values of a label. */
export interface VariableQuery {
  readonly dashboard: string;
  readonly variable: string;
  readonly label: string;
  readonly selector: string | undefined;
}

export const datasources = (): Datasources =>
  parse(fileOf('grafana/provisioning/datasources/datasources.yaml'));

/** Every dashboard, by the name of its file. */
export const dashboards = (): ReadonlyMap<string, Dashboard> =>
  new Map(
    readdirSync(join(root, 'grafana/dashboards'))
      .filter((file) => file.endsWith('.json'))
      .map((file) => [file, JSON.parse(fileOf(`grafana/dashboards/${file}`)) as Dashboard]),
  );

const secondsOf = (duration: string): number => {
  const [, count = '0', unit = 's'] = /^(\d+)(ms|s|m|h|d)$/.exec(duration) ?? [];
  return Number(count) * ({ ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400 }[unit] ?? 1);
};

/** What `$__range` and the like are, for a range in seconds. */
const builtIn = (range: number, interval: string | undefined): Readonly<Record<string, string>> => {
  const given = datasources().datasources.find(({ type }) => type === 'prometheus')?.jsonData;
  const scrape = secondsOf(interval ?? String(given?.timeInterval ?? '15s'));
  const step = Math.max(scrape, Math.ceil(range / 1_000));
  // Grafana: the interval and one scrape more, and never fewer than four scrapes.
  const rate = Math.max(step + scrape, 4 * scrape);
  return {
    __rate_interval: `${rate}s`,
    __interval: `${step}s`,
    __range: `${range}s`,
    __range_s: String(range),
  };
};

const chosenOf = ({ current, allValue }: Variable): string => {
  const value = current?.value ?? '';
  const values = typeof value === 'string' ? [value] : value;
  return values.includes('$__all') ? (allValue ?? '.*') : values.join('|');
};

const fill = (text: string, values: Readonly<Record<string, string>>): string =>
  // `$1` is a group of label_replace.
  text.replace(/\$\{(\w+)(?::\w+)?\}|\$([a-zA-Z_]\w*)/g, (whole, braced, bare) => {
    const value = values[braced ?? bare];
    if (value === undefined) throw new Error(`${whole} is no variable, in ${text}`);
    return value;
  });

const flat = (panels: readonly Panel[]): readonly Panel[] =>
  panels.flatMap((panel) => [panel, ...flat(panel.panels ?? [])]);

/**
 * Every query of every dashboard, its variables at the values that it opens with.
 *
 * @param range seconds that the dashboards show
 * @param selected values of variables that somebody has selected
 */
export const panelQueries = (
  range: number,
  selected: Readonly<Record<string, string>> = {},
): readonly Query[] =>
  [...dashboards().values()].flatMap(({ title, panels, templating, annotations }) => {
    const chosen = Object.fromEntries(
      templating.list.map((entry) => [entry.name, chosenOf(entry)]),
    );
    const query = (
      panel: string,
      { expr, instant = false, interval }: Target,
      links: readonly string[] = [],
    ): Query[] => {
      if (expr === undefined) return [];
      const values = { ...chosen, ...selected, ...builtIn(range, interval) };
      return [{ dashboard: title, panel, expression: fill(expr, values), instant, links }];
    };
    return [
      ...flat(panels).flatMap(({ title = '', interval, targets = [], fieldConfig }) => {
        const links = (fieldConfig?.defaults.links ?? []).map(({ url }) => url);
        return targets.flatMap((target) => query(title, { interval, ...target }, links));
      }),
      ...annotations.list.flatMap((entry) => query(`annotation: ${entry.name}`, entry)),
    ];
  });

/** Every query of a variable. One that is not understood here is an error. */
export const variableQueries = (): readonly VariableQuery[] =>
  [...dashboards().values()].flatMap(({ title, templating }) => {
    const chosen = Object.fromEntries(
      templating.list.map((entry) => [entry.name, chosenOf(entry)]),
    );
    return templating.list
      .filter(({ type }) => type === 'query')
      .map(({ name, query }) => {
        const text = fill(typeof query === 'string' ? query : (query?.query ?? ''), chosen);
        const [, selector, label] = /^label_values\((?:(.+), *)?(\w+)\)$/s.exec(text) ?? [];
        if (label === undefined) throw new Error(`the query of ${name} is not understood: ${text}`);
        return { dashboard: title, variable: name, label, selector };
      });
  });

/** A panel that has no data in the scenario of the stack test, and why that is right. */
interface ExpectedEmpty {
  readonly dashboard: string;
  readonly panel: string;
  readonly reason: string;
}

export const expectedEmpty = (): readonly ExpectedEmpty[] =>
  JSON.parse(fileOf('grafana/expected-empty.json')) as readonly ExpectedEmpty[];
