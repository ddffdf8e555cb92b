/**
 * @module
 * Makes Grafana's classic dashboard JSON of our panels. Classic, because Grafana provisions
 * files in no other schema.
 */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  GraphDrawStyle,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TableCellDisplayMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  FieldColorBuilder,
  FieldColorModeId,
  type Panel as GrafanaPanel,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimelineBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as GraphBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { annotations } from './annotations.ts';
import { alertMappings, OUTCOME_COLOURS, stateMappings } from './colours.ts';
import type { Board, Graph, Panel, Query, Stat, Steps, Table, Timeline } from './panel.ts';
import { PROMETHEUS, variables } from './variables.ts';

const COLUMNS = 24;

const thresholds = ([first, ...rest]: Steps) =>
  new ThresholdsConfigBuilder()
    .mode(ThresholdsMode.Absolute)
    .steps([{ value: null, color: first }, ...rest.map(([value, color]) => ({ value, color }))]);

const targets = (queries: readonly Query[], prepare: (target: DataqueryBuilder) => void) =>
  queries.map(({ expr, legend, exemplars }, index) => {
    const target = new DataqueryBuilder()
      .datasource(PROMETHEUS)
      .refId(String.fromCharCode(65 + index))
      .expr(expr)
      .legendFormat(legend);
    prepare(target);
    if (exemplars) target.exemplar(true);
    return target;
  });

const links = (panel: Panel) =>
  (panel.links ?? []).map(({ title, url }) =>
    new DashboardLinkBuilder(title).url(url).targetBlank(true),
  );

/** Series named by an outcome or a reason have its colour on every panel that tells them apart. */
const paint = (builder: GraphBuilder, panel: Graph): GraphBuilder => {
  if (!panel.queries.some(({ legend }) => /(outcome|reason)\}\}$/.test(legend))) return builder;
  for (const [colour, outcomes] of BY_COLOUR) {
    // The outcome is the whole legend, or the end of it.
    builder.overrideByRegexp(`/(^|[ :])(${outcomes.join('|')})$/`, [
      { id: 'color', value: { mode: 'fixed', fixedColor: colour } },
    ]);
  }
  return builder;
};

const BY_COLOUR = Map.groupBy(Object.keys(OUTCOME_COLOURS), (name) => OUTCOME_COLOURS[name]);

const graph = (panel: Graph): GraphBuilder => {
  const builder = new GraphBuilder()
    .targets(targets(panel.queries, (target) => target.range()))
    .drawStyle(panel.bars ? GraphDrawStyle.Bars : GraphDrawStyle.Line)
    .lineWidth(panel.bars ? 0 : 2)
    .fillOpacity(panel.bars ? 80 : panel.stacked ? 30 : 0)
    .showPoints(VisibilityMode.Auto)
    .min(0)
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.Table)
        .placement(LegendPlacement.Bottom)
        .calcs(['lastNotNull', 'max']),
    )
    .tooltip(
      new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending),
    );
  if (panel.stacked) builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
  if (panel.max !== undefined) builder.max(panel.max);
  if (panel.thresholds) {
    builder
      .thresholds(thresholds(panel.thresholds))
      .thresholdsStyle(
        new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed),
      );
  }
  return paint(builder.colorScheme(palette()), panel);
};

const palette = () => new FieldColorBuilder().mode(FieldColorModeId.PaletteClassicByName);

const stat = (panel: Stat): StatBuilder =>
  new StatBuilder()
    .targets(targets(panel.queries, (target) => target.instant()))
    .thresholds(thresholds(panel.thresholds))
    .noValue(panel.none)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .colorMode(BigValueColorMode.Background)
    .graphMode(BigValueGraphMode.None)
    .justifyMode(BigValueJustifyMode.Center)
    .textMode(BigValueTextMode.Auto)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']));

const timeline = (panel: Timeline): TimelineBuilder =>
  new TimelineBuilder()
    .targets(targets(panel.queries, (target) => target.range()))
    .mappings(stateMappings(panel.states))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .showValue(VisibilityMode.Auto)
    .mergeValues(true)
    .rowHeight(0.8)
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom),
    );

const table = (panel: Table): TableBuilder => {
  const names = Object.keys(panel.columns);
  return new TableBuilder()
    .targets(targets(panel.queries, (target) => target.instant().format(PromQueryFormat.Table)))
    .noValue(panel.none)
    .mappings(alertMappings())
    .cellOptions({ type: TableCellDisplayMode.ColorText, wrapText: false })
    .withTransformation({
      id: 'organize',
      options: {
        includeByName: Object.fromEntries(names.map((name) => [name, true])),
        indexByName: Object.fromEntries(names.map((name, index) => [name, index])),
        renameByName: panel.columns,
      },
    });
};

const byKind = (panel: Panel) => {
  if (panel.kind === 'graph') return graph(panel);
  if (panel.kind === 'stat') return stat(panel);
  return panel.kind === 'timeline' ? timeline(panel) : table(panel);
};

/** What Grafana shows at the (i) of a panel. */
const descriptionOf = ({ question, bad }: Panel): string => `${question}\n\n${bad}`;

interface Place {
  readonly id: number;
  readonly x: number;
  readonly y: number;
}

const panelOf = (panel: Panel, { id, x, y }: Place, step?: string): Builder<GrafanaPanel> => {
  const builder = byKind(panel);
  builder
    .id(id)
    .title(panel.title)
    .description(descriptionOf(panel))
    .datasource(PROMETHEUS)
    .unit(panel.unit)
    .gridPos({ x, y, w: panel.width, h: panel.height });
  if (step !== undefined) builder.interval(step);
  if (panel.decimals !== undefined) builder.decimals(panel.decimals);
  if (panel.links) builder.dataLinks(links(panel));
  return builder;
};

/** Links between our dashboards, which keep the time and what was chosen. */
const siblings = () =>
  new DashboardLinkBuilder('MCP dashboards')
    .type(DashboardLinkType.Dashboards)
    .tags(['mcp-resilience'])
    .includeVars(true)
    .keepTime(true)
    .build();

/** The dashboard as Grafana reads it. Panels are laid out from left to right, rows downwards. */
export const dashboardOf = (board: Board): Dashboard => {
  const dashboard = new DashboardBuilder(board.title)
    .uid(board.uid)
    .description(board.description)
    .tags(['mcp-resilience', ...board.tags])
    .time({ from: board.from, to: 'now' })
    .refresh(board.refresh)
    .timezone('browser')
    .tooltip(DashboardCursorSync.Crosshair)
    .variables(variables(board.variables))
    .version(1)
    .build();
  const names = (dashboard.templating.list ?? []).map(({ name }) => name);
  const panels: NonNullable<Dashboard['panels']> = [];
  let y = 0;
  for (const row of board.rows) {
    const id = panels.length + 1;
    const gridPos = { x: 0, y, w: COLUMNS, h: 1 };
    panels.push({ type: 'row', id, title: row.title, collapsed: false, gridPos, panels: [] });
    y += 1;
    let x = 0;
    let lineHeight = 0;
    for (const panel of row.panels) {
      if (x + panel.width > COLUMNS) {
        y += lineHeight;
        x = 0;
        lineHeight = 0;
      }
      panels.push(panelOf(panel, { id: panels.length + 1, x, y }, board.step).build());
      x += panel.width;
      lineHeight = Math.max(lineHeight, panel.height);
    }
    y += lineHeight;
  }
  // The builder of links puts every one into a menu; ours is to be seen.
  const { placement: _, ...link } = siblings();
  return {
    ...dashboard,
    panels,
    links: [link],
    annotations: { list: annotations(names) },
  };
};
