/**
 * @module
 * What Grafana needs of a classic dashboard in a file, and what we ask of ours beyond that.
 */
import { z } from 'zod';

const datasource = z.strictObject({
  type: z.literal('prometheus'),
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the variable, as Grafana reads it
  uid: z.literal('${datasource}'),
});

const gridPos = z.strictObject({
  x: z.int().min(0).max(23),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});

const target = z.looseObject({
  refId: z.string().regex(/^[A-Z]$/),
  expr: z.string().min(1),
  legendFormat: z.string().min(1),
  datasource,
  instant: z.boolean().optional(),
  range: z.boolean().optional(),
  format: z.enum(['time_series', 'table']).optional(),
  exemplar: z.boolean().optional(),
});

const link = z.looseObject({ title: z.string().min(1), url: z.string().min(1) });

const panel = z.looseObject({
  id: z.int().positive(),
  type: z.enum(['timeseries', 'stat', 'state-timeline', 'table']),
  title: z.string().min(3),
  description: z.string().regex(/\?[\s\S]*\n\n\S/, 'a question, then what bad looks like'),
  datasource,
  gridPos,
  targets: z.array(target).min(1),
  fieldConfig: z.looseObject({
    defaults: z.looseObject({
      unit: z.string().min(1),
      links: z.array(link).optional(),
      noValue: z.string().min(1).optional(),
      thresholds: z
        .strictObject({
          mode: z.literal('absolute'),
          steps: z
            .array(z.strictObject({ value: z.number().nullable(), color: z.string() }))
            .min(1),
        })
        .optional(),
    }),
    overrides: z.array(z.looseObject({})),
  }),
  options: z.looseObject({}),
});

const row = z.strictObject({
  id: z.int().positive(),
  type: z.literal('row'),
  title: z.string().min(1),
  collapsed: z.literal(false),
  gridPos,
  panels: z.array(z.never()),
});

const annotation = z.looseObject({
  name: z.string().min(1),
  datasource,
  enable: z.literal(true),
  iconColor: z.string().min(1),
  expr: z.string().min(1),
  titleFormat: z.string().min(1),
  target: z.looseObject({ expr: z.string().min(1), refId: z.string().min(1) }),
});

const variable = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('datasource'),
    name: z.string(),
    query: z.enum(['prometheus', 'jaeger']),
  }),
  z.looseObject({
    type: z.literal('query'),
    name: z.string(),
    datasource,
    query: z.looseObject({ query: z.string().startsWith('label_values(') }),
    allValue: z.literal('.*').optional(),
    includeAll: z.literal(true),
    refresh: z.literal(2),
  }),
  z.looseObject({
    type: z.literal('custom'),
    name: z.string(),
    query: z.string().min(1),
    options: z.array(z.looseObject({ text: z.string(), value: z.string() })).min(2),
  }),
]);

/** A dashboard of ours. */
export const dashboardSchema = z.looseObject({
  uid: z.string().regex(/^[a-z-]{3,40}$/),
  title: z.string().min(3),
  description: z.string().min(10),
  schemaVersion: z.literal(42),
  tags: z.array(z.string()).min(1),
  time: z.strictObject({ from: z.string().startsWith('now-'), to: z.literal('now') }),
  refresh: z.string().regex(/^\d+s$/),
  panels: z.array(z.union([row, panel])).min(1),
  templating: z.looseObject({ list: z.array(variable).min(1) }),
  annotations: z.strictObject({ list: z.array(annotation).min(1) }),
  links: z.array(z.looseObject({ title: z.string(), tags: z.array(z.string()).min(1) })).min(1),
  // Elements of the schema that files cannot be provisioned in, and of Kubernetes.
  apiVersion: z.undefined().optional(),
  spec: z.undefined().optional(),
  elements: z.undefined().optional(),
});

export type DashboardFile = z.infer<typeof dashboardSchema>;
export type PanelFile = z.infer<typeof panel>;
