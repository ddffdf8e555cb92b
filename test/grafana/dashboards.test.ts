import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BREAKER_STATES, OUTCOME_COLOURS, UPSTREAM_STATES } from '../../grafana/colours.ts';
import { boards, files } from '../../grafana/dashboards.ts';
import { ATTR, METRIC } from '../../src/telemetry/signals.ts';
import { verifies } from '../fixtures/verifies.ts';
import { textOf, unknownIn } from './known.ts';
import { read } from './promql.ts';
import { type DashboardFile, dashboardSchema, type PanelFile } from './schema.ts';

const dashboards: readonly DashboardFile[] = boards.map(({ uid }) =>
  dashboardSchema.parse(JSON.parse(textOf(`grafana/dashboards/${uid}.json`))),
);

const panelsOf = ({ panels }: DashboardFile): PanelFile[] =>
  panels.flatMap((panel) => (panel.type === 'row' ? [] : [panel as PanelFile]));

const allPanels = dashboards.flatMap((dashboard) =>
  panelsOf(dashboard).map((panel) => ({
    dashboard,
    panel,
    name: `${dashboard.title} / ${panel.title}`,
  })),
);

/** Grafana's own, as far as we use them. */
const BUILT_IN: Readonly<Record<string, string>> = { __rate_interval: '4m', __range: '1h' };

/** A query as Prometheus gets it, with any value in place of each variable. */
const filled = (text: string): string =>
  text.replace(/\$\{?(\w+)\}?/g, (_, name: string) => BUILT_IN[name] ?? 'any');

const queriesOf = (dashboard: DashboardFile): { where: string; expr: string }[] => [
  ...panelsOf(dashboard).flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({ where: `${dashboard.title} / ${title}`, expr })),
  ),
  ...dashboard.annotations.list.map(({ name, expr }) => ({
    where: `${dashboard.title} / annotation ${name}`,
    expr,
  })),
  ...dashboard.templating.list.flatMap((variable) =>
    variable.type === 'query'
      ? [
          {
            where: `${dashboard.title} / variable ${variable.name}`,
            // The label to list stands where an operand would.
            expr: variable.query.query.replace(/^label_values\((.*), *\w+\)$/s, '$1'),
          },
        ]
      : [],
  ),
];
const queries = dashboards.flatMap(queriesOf);

/** Labels of the series that a query gives, as far as it says so itself. */
const labelsKept = (expr: string): readonly string[] => {
  const { groups, made } = read(filled(expr));
  const grouped = groups.filter(({ keyword }) => keyword === 'by').flatMap(({ labels }) => labels);
  // The level of a recorded name says its labels.
  const recorded = expr.includes('job_tool:') ? ['job', 'gen_ai_tool_name'] : [];
  return [...grouped, ...made, ...recorded];
};

describe('the files', () => {
  verifies('dashboards.fresh', () => {
    for (const [path, text] of files()) {
      expect(textOf(path) === text, `${path} is stale: npm run dashboards`).toBe(true);
    }
    const names = readdirSync(new URL('../../grafana/dashboards', import.meta.url));
    expect(names.sort()).toEqual(boards.map(({ uid }) => `${uid}.json`).sort());
  });

  verifies('dashboards.complete', () => {
    expect(allPanels.length).toBeGreaterThan(50);
    for (const { panel, name } of allPanels) {
      expect(panel.fieldConfig.defaults.unit, name).toMatch(
        /^(s|none|short|percentunit|reqps|cps|bytes|dateTimeFromNow)$/,
      );
      if (panel.type !== 'stat') continue;
      expect(panel.fieldConfig.defaults.noValue, name).toBeDefined();
      expect(panel.fieldConfig.defaults.thresholds, name).toBeDefined();
    }
  });

  test('the page tells of every panel: its question, each query and what bad looks like', () => {
    const page = textOf('docs/dashboards.md').replaceAll('\\|', '|');
    for (const { panel } of allPanels) {
      const [question, bad] = panel.description.split('\n\n');
      for (const text of [panel.title, question, bad, ...panel.targets.map(({ expr }) => expr)]) {
        expect(page).toContain(text);
      }
    }
  });

  test('every title and every uid is there once', () => {
    const once = (values: readonly string[]) => expect([...new Set(values)]).toEqual(values);
    once(dashboards.map(({ uid }) => uid));
    once(allPanels.map(({ name }) => name));
    for (const { panels } of dashboards) once(panels.map(({ id }) => String(id)));
  });
});

describe('the queries', () => {
  verifies('dashboards.known-names', () => {
    expect(queries.length).toBeGreaterThan(80);
    expect(
      queries.flatMap(({ where, expr }) =>
        unknownIn(filled(expr)).map((problem) => `${where}: ${problem}`),
      ),
    ).toEqual([]);
  });

  test.each([
    ['sum by (job) (rate(tool_duration_count[5m]))', 'series tool_duration_count'],
    ['tool_duration_milliseconds_bucket', 'series tool_duration_milliseconds_bucket'],
    ['resilience_retry_attempts_total_total', 'series resilience_retry_attempts_total_total'],
    ['resilience_bulkhead_limit_ratio', 'series resilience_bulkhead_limit_ratio'],
    ['up{tool="x"}', 'label tool of up'],
    ['sum by (tool) (tool_duration_seconds_count)', 'label tool in by'],
    ['summ(up)', 'function summ'],
    ['{__name__=~"up|down"}', 'series down'],
    ['{job="x"}', 'a selector without a name'],
    ['job_tool:tool_failures:ratio_rate2h', 'series job_tool:tool_failures:ratio_rate2h'],
  ])('%s is refused: %s', (expression, problem) => {
    expect(unknownIn(expression)).toContain(problem);
  });

  test.each(['sum(up', 'up)', 'up{job}', 'up{job="x"', 'up ~ 1'])(
    '%s is not understood',
    (text) => {
      expect(() => read(text)).toThrow();
    },
  );

  verifies('dashboards.variables', () => {
    for (const dashboard of dashboards) {
      const defined = dashboard.templating.list.map(({ name }) => name);
      expect(dashboard.templating.list.slice(0, 1)).toMatchObject([
        { type: 'datasource', query: 'prometheus' },
      ]);
      const fills = [...JSON.stringify(dashboard).matchAll(/\$\{?([a-zA-Z_]\w*)/g)].map(
        ([, name = '']) => name,
      );
      const known = [
        ...defined,
        '__rate_interval',
        '__range',
        '__all',
        '__from',
        '__to',
        '__field',
      ];
      expect(
        [...new Set(fills)].filter((name) => !known.includes(name)),
        dashboard.title,
      ).toEqual([]);
      expect(
        defined.filter((name) => !fills.includes(name)),
        `unused in ${dashboard.title}`,
      ).toEqual([]);
    }
  });

  test('all services are those that the list has, not all that report to the same Prometheus', () => {
    for (const { templating } of dashboards) {
      const anything = templating.list.flatMap((variable) =>
        variable.type === 'query' && variable.allValue !== undefined ? [variable.name] : [],
      );
      expect(anything).not.toContain('job');
      expect(anything).toContain('instance');
    }
  });

  test('every panel of ours can be narrowed down to a service and an instance', () => {
    // Those of the Collector and of Prometheus have another job, and alerts are of anything.
    const foreign = /otelcol_|\bup\b|ALERTS|job_tool:/;
    const loose = queries
      .filter(({ where }) => !where.includes(' / variable '))
      .filter(
        ({ expr }) => !foreign.test(expr) && !/job=~"\$job", instance=~"\$instance"/.test(expr),
      );
    expect(loose).toEqual([]);
  });

  test('a rate looks at the interval that fits the zoom, or at all that is shown', () => {
    const ranges = queries.flatMap(({ expr }) =>
      [...expr.matchAll(/\[([^\]]*)\]/g)].map(([, range]) => range),
    );
    expect(ranges.length).toBeGreaterThan(40);
    expect(new Set(ranges)).toEqual(new Set(['$__rate_interval', '$__range']));
  });

  test('a percentile is taken of sums by le', () => {
    const percentiles = queries.filter(({ expr }) => expr.includes('histogram_quantile'));
    expect(percentiles.length).toBeGreaterThan(5);
    for (const { expr, where } of percentiles) {
      expect(expr, where).toMatch(/histogram_quantile\([\d.]+, sum by \(le\b/);
    }
  });

  test('a legend names only labels that its query keeps', () => {
    for (const { panel, name } of allPanels) {
      for (const { expr, legendFormat } of panel.targets) {
        const kept = labelsKept(expr);
        const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
        expect(
          named.filter((label) => !kept.includes(label)),
          name,
        ).toEqual([]);
      }
    }
  });

  test('a link names only labels that its series have', () => {
    const linked = allPanels.filter(({ panel }) => panel.fieldConfig.defaults.links);
    expect(linked.length).toBeGreaterThan(5);
    for (const { panel, name } of linked) {
      for (const { url } of panel.fieldConfig.defaults.links ?? []) {
        const kept = labelsKept(panel.targets[0]?.expr ?? '');
        const named = [...url.matchAll(/\$\{__field\.labels\.(\w+)\}/g)].map(
          ([, label = '']) => label,
        );
        expect(
          named.filter((label) => !kept.includes(label)),
          name,
        ).toEqual([]);
        const panes = JSON.parse(
          decodeURIComponent(new URL(url, 'http://grafana').searchParams.get('panes') ?? ''),
        );
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the variable, as Grafana reads it
        expect(panes.a.queries[0].datasource, name).toEqual({ type: 'jaeger', uid: '${jaeger}' });
      }
    }
  });
});

describe('the layout', () => {
  verifies('dashboards.layout', () => {
    for (const { title, panels } of dashboards) {
      const cells = new Map<string, string>();
      for (const { gridPos, ...panel } of panels) {
        expect(gridPos.x + gridPos.w, `${panel.title} is too wide`).toBeLessThanOrEqual(24);
        for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
          for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
            expect(cells.get(`${x} ${y}`), `${panel.title} lies over another`).toBeUndefined();
            cells.set(`${x} ${y}`, panel.title);
          }
        }
      }
      // Every line is full: no hole where the eye would look for something.
      const height = Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h));
      expect(cells.size, title).toBe(24 * height);
    }
  });

  test('what is broken now is seen without scrolling: one line of numbers, then which it is', () => {
    const [first] = dashboards;
    const top = panelsOf(first as DashboardFile).filter(({ gridPos }) => gridPos.y < 12);
    expect(top.map(({ type }) => type)).toEqual([
      ...Array.from({ length: 8 }, () => 'stat'),
      'table',
      'state-timeline',
    ]);
    expect(Math.max(...top.map(({ gridPos }) => gridPos.y + gridPos.h))).toBe(12);
  });

  test('a dead service is not taken for one without trouble', () => {
    const [first] = dashboards;
    const zeros = panelsOf(first as DashboardFile).filter(({ targets }) =>
      / or .*0 \*/.test(targets[0]?.expr ?? ''),
    );
    const tiles = zeros.filter(({ type }) => type === 'stat');
    expect(tiles.length).toBeGreaterThan(5);
    for (const { targets } of tiles)
      expect(targets[0]?.expr).toMatch(/ or 0 \* count\(target_info\{/);
  });
});

describe('colours and states', () => {
  const page = textOf('docs/telemetry.md');

  test('every state that the contract names has a colour', () => {
    const [, breaker = '', upstream = ''] =
      /^\| `state` +\| Breaker: ([^.]*)\. Upstream: ([^.]*)\./m.exec(page) ?? [];
    const names = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name).sort();
    expect(names(breaker)).toEqual(BREAKER_STATES.map(({ name }) => name).sort());
    expect(names(upstream)).toEqual(UPSTREAM_STATES.map(({ name }) => name).sort());
  });

  test('every outcome that the contract names has a colour', () => {
    const [, tool = ''] =
      new RegExp(`^\\| \`${ATTR.toolOutcome}\` +\\| (.*)\\.`, 'm').exec(page) ?? [];
    const described = Object.values(METRIC).map(({ description }) => description);
    const outcomes = [
      ...[...tool.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
      ...described.flatMap(
        (text) =>
          (/by (?:outcome|reason): ([\w, ()]+)/.exec(text)?.[1] ?? '').match(/\w+(?=,|$| \()/g) ??
          [],
      ),
    ];
    expect(outcomes.length).toBeGreaterThan(20);
    expect(outcomes.filter((name) => OUTCOME_COLOURS[name] === undefined)).toEqual([]);
  });
});

describe('what may be empty', () => {
  verifies('dashboards.expected-empty', () => {
    const excused = JSON.parse(textOf('grafana/expected-empty.json')) as Record<string, string>[];
    const names = [...allPanels.map(({ name }) => name)];
    for (const { dashboard, panel, reason, ...more } of excused) {
      expect(names).toContain(`${dashboard} / ${panel}`);
      expect(reason?.length, panel).toBeGreaterThan(15);
      expect(more).toEqual({});
    }
    // An excuse for everything would excuse nothing.
    expect(excused.length).toBeLessThan(allPanels.length / 5);
  });
});
