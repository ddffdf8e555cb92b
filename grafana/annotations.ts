/**
 * @module
 * What is drawn over every graph of time: faults, open breakers, their transitions and alerts.
 *
 * A state is drawn for as long as it lasts (Grafana joins neighbouring points of an annotation
 * into a region); an event at the moment it was counted.
 */
import {
  type AnnotationQuery,
  AnnotationQueryBuilder,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import type { Colour } from './colours.ts';
import { count, DEPENDENCIES, GAUGES, SCOPE, scraped, worst } from './queries.ts';
import { LABEL, ours } from './sources.ts';
import { PROMETHEUS } from './variables.ts';

interface Annotation {
  readonly name: string;
  readonly colour: Colour;
  readonly expr: string;
  readonly title: string;
  readonly text: string;
  readonly tags: readonly string[];
}

const ANNOTATIONS: readonly Annotation[] = [
  {
    name: 'Faults',
    colour: 'purple',
    expr: `${worst(ours('faultsActive'), SCOPE, ['job', LABEL.faultKind, LABEL.faultTarget])} > 0`,
    title: `Fault: {{${LABEL.faultKind}}}`,
    text: `at {{${LABEL.faultTarget}}}, in {{job}}`,
    tags: [LABEL.faultKind, LABEL.faultTarget],
  },
  {
    name: 'Open breakers',
    colour: 'red',
    expr: `${worst(ours('breakerState'), `${GAUGES}, state=~"open|isolated"`, ['job', LABEL.dependency, 'state'])} == 1`,
    title: `Breaker {{state}}: {{${LABEL.dependency}}}`,
    text: 'in {{job}}',
    tags: [LABEL.dependency, 'state'],
  },
  {
    name: 'Breaker transitions',
    colour: 'orange',
    expr: `${count(ours('breakerTransitions'), DEPENDENCIES, ['job', LABEL.dependency, 'from', 'to'])} > 0`,
    title: `Breaker of {{${LABEL.dependency}}}: {{from}} to {{to}}`,
    text: 'in {{job}}',
    tags: [LABEL.dependency, 'to'],
  },
  {
    name: 'Alerts',
    colour: 'yellow',
    expr: `max by (alertname, severity, job) (${scraped('ALERTS')}{alertname=~"Mcp.+", alertstate="firing"})`,
    title: 'Alert: {{alertname}}',
    text: '{{severity}}, {{job}}',
    tags: ['alertname', 'severity'],
  },
];

/** The annotations that a board can have: those whose variables are among its own. */
export const annotations = (names: readonly string[]): AnnotationQuery[] =>
  ANNOTATIONS.filter(({ expr }) =>
    [...expr.matchAll(/\$([a-z]+)/g)].every(([, name = '']) => names.includes(name)),
  ).map(({ name, colour, expr, title, text, tags }) => ({
    ...new AnnotationQueryBuilder()
      .name(name)
      .datasource(PROMETHEUS)
      .enable(true)
      .iconColor(colour)
      .expr(expr)
      .titleFormat(title)
      .textFormat(text)
      .tagKeys(tags.join(','))
      .useValueForTime(false)
      .build(),
    target: new DataqueryBuilder()
      .expr(expr)
      .refId('Anno')
      .format(PromQueryFormat.TimeSeries)
      .range()
      .build(),
  }));
