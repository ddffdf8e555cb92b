/**
 * @module
 * The variables of the dashboards. No query names a data source, a service or a port by itself.
 */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  CustomVariableBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { prometheusName } from './prometheus-names.ts';
import { LABEL, ours, RUNTIME } from './sources.ts';

/** The Prometheus that all queries ask. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana fills it in
export const PROMETHEUS = { type: 'prometheus', uid: '${datasource}' } as const;

/** Value of "faults: include": no fault is marked with it. */
const NONE = 'none';

const all = { text: ['All'], value: ['$__all'] };

const query = (name: string, label: string, description: string, values: string) =>
  new QueryVariableBuilder(name)
    .label(label)
    .description(description)
    .datasource(PROMETHEUS)
    .query({ qryType: 1, query: values, refId: 'PrometheusVariableQueryEditor-VariableQuery' })
    .definition(values)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc)
    .multi(true)
    .includeAll(true)
    .current(all);

/** All of these is anything, those included that have no such label. */
const narrowing = (...of: Parameters<typeof query>) => query(...of).allValue('.*');

/** Any of what a service of ours reports, called or not, gateway or server. */
const REPORTING = `{__name__=~"${[
  ours('toolDuration', '_count'),
  ours('breakerState'),
  ours('upstreamState'),
  ours('rateLimiterDecisions'),
  ours('bulkheadLimit'),
].join('|')}"}`;

const within = (selector: string, more: string): string => selector.replace('}', `, ${more}}`);

const HAS_DEPENDENCY = within(
  `{__name__=~"${[ours('breakerState'), ours('bulkheadLimit'), ours('rateLimiterDecisions'), ours('cacheRequests'), ours('retryAttempts')].join('|')}"}`,
  'job=~"$job"',
);

const BY_NAME = {
  datasource: () =>
    new DatasourceVariableBuilder('datasource')
      .label('Metrics')
      .description('The Prometheus that is asked.')
      .type('prometheus')
      .current({ text: 'Prometheus', value: 'prometheus' }),
  jaeger: () =>
    new DatasourceVariableBuilder('jaeger')
      .label('Traces')
      .description('The Jaeger that links lead to.')
      .type('jaeger')
      .current({ text: 'Jaeger', value: 'jaeger' }),
  // All of these is all that are listed: other programs report to the same Prometheus.
  job: () =>
    query('job', 'Service', 'Services by `service.name`.', `label_values(${REPORTING}, job)`),
  process: () =>
    query(
      'job',
      'Service',
      'Services whose Node.js runtime reports.',
      `label_values(${prometheusName(RUNTIME.loopUtilization)}, job)`,
    ),
  instance: () =>
    narrowing(
      'instance',
      'Instance',
      'Processes by `service.instance.id`.',
      'label_values(target_info{job=~"$job"}, instance)',
    ),
  tool: () =>
    narrowing(
      'tool',
      'Tool',
      'Tools that were called.',
      `label_values(${ours('toolDuration', '_count')}{job=~"$job"}, ${LABEL.tool})`,
    ),
  dependency: () =>
    narrowing(
      'dependency',
      'Dependency',
      'What tools call, by the name of its pipeline.',
      `label_values(${HAS_DEPENDENCY}, ${LABEL.dependency})`,
    ),
  faults: () =>
    new CustomVariableBuilder('faults')
      .label('Injected faults')
      .description('Whether calls that an injected fault met are counted.')
      .values(`include : ${NONE}, exclude : true`)
      .options([
        { text: 'include', value: NONE, selected: true },
        { text: 'exclude', value: 'true', selected: false },
      ])
      .current({ text: 'include', value: NONE }),
} as const satisfies Record<string, () => Builder<VariableModel>>;

export type VariableName = keyof typeof BY_NAME;

/** The variables of these names, in this order. */
export const variables = (names: readonly VariableName[]): Builder<VariableModel>[] =>
  names.map((name) => BY_NAME[name]());
