/**
 * @module
 * The dashboard of a drill after a real one, and the traces that its links lead to.
 */
import { expect } from 'vitest';
import { DRILLED, type DrillReport } from '../drill.ts';
import { panelQueries, type Query } from '../grafana.ts';
import { until } from '../processes.ts';
import type { Curve } from '../prometheus.ts';
import type { Stack } from '../stack.ts';

/** Seconds in which all of the drills lie. */
const RANGE = 300;

const some =
  (labels: Readonly<Record<string, string>>, test = (value: number) => value > 0) =>
  (curves: readonly Curve[]): boolean =>
    curves.some(
      (curve) =>
        Object.entries(labels).every(([name, value]) => curve.labels[name] === value) &&
        curve.values.some(test),
    );

const all =
  (...tests: readonly ((curves: readonly Curve[]) => boolean)[]) =>
  (curves: readonly Curve[]): boolean =>
    tests.every((test) => test(curves));

const HANG = { fault_kind: 'hang' };
const WEATHER = { resilience_dependency: 'weather-api' };
const weather = (from: string, to: string) => some({ ...WEATHER, from, to });

/** What each panel shows of the drills `hang` and `burst-503`. */
const SHOWN: Readonly<Record<string, (curves: readonly Curve[]) => boolean>> = {
  'Faults armed now': some({}, (value) => value >= 1),
  'Faults injected': some({}, (value) => value >= 3),
  // Retries saved calls from 503, and nothing saved them from the hang.
  'Answered in spite of the fault': some({}, (value) => value > 0 && value < 1),
  'Answered, other calls': some({}, (value) => value === 1),
  'Breakers opened': some({}, (value) => value > 0.9),
  // It is open for a second at least.
  'Slowest recovery': some({}, (value) => value >= 1),
  'Faults armed': all(some(HANG), some({ fault_kind: 'status' })),
  'Faults injected by kind and target': all(some(HANG), some({ fault_kind: 'status' })),
  'Outcomes of calls that met a fault': all(
    some({ tool_outcome: 'error' }),
    some({ tool_outcome: 'rejected' }),
    some({ tool_outcome: 'success' }),
  ),
  'Outcomes of all other calls': some({ tool_outcome: 'success' }),
  // They wait for the timeout, which is 500 ms.
  'Duration of calls that met a fault, p50 and p95': some(
    { gen_ai_tool_name: 'get_weather' },
    (value) => value > 0.4,
  ),
  'Duration of all other calls, p95': all(
    some({ gen_ai_tool_name: 'get_weather' }),
    some({ gen_ai_tool_name: 'search' }),
  ),
  // Open, and closed in the end.
  'Breaker states during the drill': all(
    some(WEATHER, (value) => value === 2),
    (curves) => curves.every(({ values }) => values.at(-1) === 0),
  ),
  'Transitions during the drill': all(
    weather('closed', 'open'),
    weather('open', 'half-open'),
    weather('half-open', 'closed'),
  ),
  'Retries during the drill': some({ ...WEATHER, outcome: 'success' }),
  // The search takes milliseconds, so that most exports find none in flight.
  'In flight and waiting during the drill': some(
    { resilience_dependency: 'search-api' },
    (value) => value >= 0,
  ),
};

const ofDrill = (): readonly Query[] =>
  panelQueries(RANGE, { job: DRILLED.job }).filter(({ dashboard }) => dashboard === 'MCP drill');

const curvesOf = async (stack: Stack, title: string): Promise<readonly Curve[]> => {
  const queries = ofDrill().filter(({ panel }) => panel === title);
  const found = await Promise.all(
    queries.map(({ expression }) => stack.prometheus.range(expression, RANGE, 1)),
  );
  return found.flat();
};

/** Every panel shows the drills, and says what their verdict says. */
export const drillDashboard = async (
  stack: Stack,
  reports: readonly DrillReport[],
): Promise<void> => {
  for (const { name, problem } of reports) expect(problem, name).toBeUndefined();
  const titles = new Set(
    ofDrill().flatMap(({ panel }) => (/^annotation/.test(panel) ? [] : panel)),
  );
  expect([...titles].sort()).toEqual(Object.keys(SHOWN).sort());
  for (const [title, shown] of Object.entries(SHOWN)) {
    let curves: readonly Curve[] = [];
    await until(
      title,
      async () => {
        curves = await curvesOf(stack, title);
        return shown(curves);
      },
      20,
    ).catch(() => expect(curves, title).toBe('what the drills did'));
  }
  const figure = reports
    .flatMap(({ expectations }) => expectations)
    .find(({ that }) => that === 'timeouts are counted')?.value;
  const timeouts = `sum(max_over_time(resilience_timeouts_total{job="${DRILLED.job}"}[10m]))`;
  expect(await stack.prometheus.value(timeouts)).toBe(figure);
};

/** A call that met a fault, with what was done about it, whatever the share that is kept. */
export const faultedTraces = async (stack: Stack): Promise<void> => {
  const traces = await until('traces of calls that met a fault', async () => {
    const found = await stack.jaeger.find(DRILLED.name, {
      operation: 'tools/call get_weather',
      tags: JSON.stringify({ 'fault.injected': 'true' }),
    });
    return found.length > 0 && found;
  });
  const counted = `sum(max_over_time(tool_duration_seconds_count{job="${DRILLED.job}",fault_injected="true"}[10m]))`;
  await until('all of them', async () => {
    const found = await stack.jaeger.find(DRILLED.name, {
      operation: 'tools/call get_weather',
      tags: JSON.stringify({ 'fault.injected': 'true' }),
    });
    return found.length === (await stack.prometheus.value(counted));
  });
  const names = traces.flatMap(({ spans }) =>
    spans.flatMap(({ events }) => events.map(({ name }) => name)),
  );
  expect(names).toContain('chaos.fault.injected');
};

interface Search {
  readonly service: string;
  readonly operation?: string;
  readonly tags?: string;
}

/** The search in Jaeger that a click on a series opens. */
const searchOf = (link: string, { labels }: Curve): Search => {
  const url = link.replace(
    /\$\{__field\.labels\.(\w+)\}/g,
    (_, name: string) => labels[name] ?? '',
  );
  const { panes = '' } = Object.fromEntries(new URL(url, 'http://grafana').searchParams);
  const { a } = JSON.parse(panes) as { a: { queries: readonly Search[] } };
  const [search] = a.queries;
  if (search === undefined) throw new Error(`no search in ${link}`);
  return search;
};

/** Links to traces find some, though the namespace of the service stands in `job`. */
export const linksToTraces = async (stack: Stack): Promise<void> => {
  const queries = panelQueries(RANGE, { job: DRILLED.job }).filter(({ links }) => links.length > 0);
  const followed = new Set<string>();
  for (const { panel, expression, links } of queries) {
    const curves = await stack.prometheus.range(expression, RANGE, 1);
    for (const curve of curves) {
      for (const link of links) {
        const { service, operation, tags } = searchOf(link, curve);
        expect(service, panel).toBe(DRILLED.name);
        const [name, value] = tags?.split('=') ?? [];
        const found = await stack.jaeger.find(service, {
          limit: '5',
          ...(operation && { operation }),
          ...(name && { tags: JSON.stringify({ [name]: value }) }),
        });
        expect(found, `${panel}: ${JSON.stringify({ operation, tags })}`).not.toEqual([]);
        followed.add(panel);
      }
    }
  }
  const others = queries.map(({ panel }) => panel).filter((panel) => !followed.has(panel));
  // Nothing but a gateway has upstreams.
  expect([...new Set(others)]).toEqual(['Duration of calls to upstreams by tool, p95']);
};
