/**
 * @module
 * docs/dashboards.md: every panel, the question it answers, its queries and what bad looks like.
 */
import type { Board, Panel } from './panel.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

// A pipe ends a cell even in code, unless it is escaped; two backticks let one stand inside.
const code = (text: string): string => `\`${cell(text)}\``;

const row = (panel: Panel): string =>
  `| ${[
    `**${cell(panel.title)}**`,
    cell(panel.question),
    panel.queries.map(({ expr }) => code(expr)).join('<br>'),
    cell(panel.bad),
  ].join(' | ')} |`;

const section = (board: Board): string =>
  [
    `## ${board.title}`,
    '',
    `${board.description} Address: \`/d/${board.uid}\`.`,
    ...board.rows.flatMap(({ title, panels }) => [
      '',
      `### ${title}`,
      '',
      '| panel | question | query | what bad looks like |',
      '| --- | --- | --- | --- |',
      ...panels.map(row),
    ]),
  ].join('\n');

const HEAD = `# Dashboards

Made by \`npm run dashboards\` from \`grafana/\`, and this page with them: change it there. Three
dashboards for Grafana 11 and newer, in its classic JSON: \`grafana/dashboards/*.json\`. The
stack of \`docker compose up\` has them already; elsewhere import the files and choose your
Prometheus and your Jaeger in the first two variables.

- **Service, Instance, Tool, Dependency** narrow every panel down. All of them is the default.
- **Injected faults** says whether what an injected fault caused is counted. The error budget
  never counts it.
- Colours mean the same everywhere: green works, blue is neutral, yellow is a warning, orange is
  a refusal of our own, red is broken, purple was done by hand or on purpose.
- Over every graph stand the faults that were armed, open breakers, transitions of breakers, and
  alerts.
- A dot on *Duration of requests with traces* is a trace; a click on a series offers the traces
  of its tool.
- Queries use the names that Prometheus gives to OTLP metrics by default
  (\`translation_strategy: UnderscoreEscapingWithSuffixes\`). Panels that may be empty while all is
  well are listed in \`grafana/expected-empty.json\`, each with the reason.

Your Prometheus should run with \`--enable-feature=exemplar-storage,created-timestamp-zero-ingestion\`.
Without the first no dot is drawn. Without the second a counter that has just been born has no
increase: the first transition of a breaker, the first fallback and the first injected fault of a
process are missed, and those are rare. It should promote \`service.name\` to a label, as
\`otel/prometheus.yaml\` does: links to traces need the name without its namespace, which \`job\` has
in front of it.

The alerts are explained in [runbook.md](runbook.md).`;

/** The whole page. */
export const page = (boards: readonly Board[]): string =>
  `${[HEAD, ...boards.map(section)].join('\n\n')}\n`;
