/**
 * @module
 * Links from a panel to the traces behind it, in Grafana's Explore with the Jaeger data source.
 */
import { ATTR } from '../src/telemetry/signals.ts';
import type { Link } from './panel.ts';
import { LABEL } from './sources.ts';

/** What Grafana fills in must not be encoded; all else must. */
const encode = (text: string): string =>
  text
    .split(/(\$\{[^}]+\})/)
    .map((part, index) => (index % 2 === 1 ? part : encodeURIComponent(part)))
    .join('');

const search = (query: Readonly<Record<string, unknown>>): string => {
  const pane = {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana fills it in
    datasource: '${jaeger}',
    queries: [
      {
        refId: 'A',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana fills it in
        datasource: { type: 'jaeger', uid: '${jaeger}' },
        queryType: 'search',
        limit: 20,
        ...query,
      },
    ],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana fills it in
    range: { from: '${__from}', to: '${__to}' },
  };
  return `/explore?schemaVersion=1&orgId=1&panes=${encode(JSON.stringify({ a: pane }))}`;
};

/** Not `job`: a query that leads to traces groups by the name of the service too. */
const SERVICE = `\${__field.labels.${LABEL.service}}`;

/** Traces of the tool that a series is about. */
export const tracesOfTool: Link = {
  title: 'Traces of this tool',
  url: search({
    service: SERVICE,
    operation: `tools/call \${__field.labels.${LABEL.tool}}`,
  }),
};

/** Traces of calls of the service that a series is about that ended as errors. */
export const tracesOfErrors: Link = {
  title: 'Traces of failed calls',
  url: search({ service: SERVICE, tags: 'error=true' }),
};

/** Traces of calls that an injected fault met. */
export const tracesOfFaults: Link = {
  title: 'Traces with an injected fault',
  url: search({ service: SERVICE, tags: `${ATTR.faultInjected}=true` }),
};
