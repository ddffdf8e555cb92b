/**
 * @module
 * Alerts in the real Prometheus: each fires in its trouble, and none is left when it is over.
 */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { fileOf } from '../compose.ts';
import type { Changes } from '../configuration.ts';
import { UPSTREAMS } from '../deserted.ts';
import { until } from '../processes.ts';
import { sendGauge } from '../server.ts';
import { type Stack, startStack } from '../stack.ts';

interface RulesFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert?: string }[] }[];
}

/** Names of all alerts of otel/rules.yaml. */
const alertNames = (): readonly string[] =>
  (parse(fileOf('otel/rules.yaml')) as RulesFile).groups
    .flatMap(({ rules }) => rules)
    .flatMap(({ alert }) => alert ?? []);

type Labels = Readonly<Record<string, string>>;

/** What each alert has to fire for: others may be hit by accident. */
const FOR: Readonly<Record<string, readonly Labels[]>> = {
  McpErrorBudgetBurnFast: [{ job: 'overloaded', gen_ai_tool_name: 'get_weather' }],
  McpErrorBudgetBurnSlow: [{ job: 'overloaded', gen_ai_tool_name: 'get_weather' }],
  McpLatencyHigh: [{ job: 'slow', gen_ai_tool_name: 'search' }],
  McpBreakerOpen: [{ job: 'flaky', resilience_dependency: 'search-api' }],
  McpBreakerFlapping: [{ job: 'flaky', resilience_dependency: 'weather-api' }],
  McpRetryBudgetExhausted: [{ job: 'overloaded', resilience_dependency: 'weather-api' }],
  McpBulkheadSaturated: [{ job: 'overloaded', resilience_dependency: 'search-api' }],
  McpRateLimitingSustained: [{ job: 'overloaded', resilience_dependency: 'weather-api' }],
  McpUpstreamDown: UPSTREAMS.map((mcp_upstream_name) => ({ job: 'gateway', mcp_upstream_name })),
  McpServerSilent: [{ job: 'deserted' }],
  McpTelemetryDropped: [{ filter: 'filter/time' }],
  McpTelemetryQueueFull: [{ exporter: 'otlp_grpc/jaeger' }],
  McpTelemetryTargetDown: [{ job: 'jaeger' }],
  McpFaultLeftActive: [{ job: 'faulty', fault_kind: 'status' }],
};

/** Alerts that the absence of Jaeger brings about, which comes after all other trouble. */
const LATER: readonly string[] = ['McpTelemetryTargetDown', 'McpTelemetryQueueFull'];

/** Alerts of Collectors of their own: what they tell of would cost the rest its telemetry. */
const REFUSED = 'McpTelemetryRefused';
const LOST = 'McpTelemetryLost';

const FIRED = 'max_over_time(ALERTS{alertstate="firing"}[15m])';

/** Every rule can be evaluated. */
export const rulesAreHealthy = async ({ prometheus }: Stack): Promise<void> => {
  const rules = await until('all rules to have been evaluated', async () => {
    const found = await prometheus.rules();
    return found.length > 0 && found.every(({ health }) => health !== 'unknown') && found;
  });
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
};

const haveFired = async ({ prometheus }: Stack, names: readonly string[]): Promise<void> => {
  let missing = names.flatMap((alertname) =>
    (FOR[alertname] ?? [{}]).map((labels): Labels => ({ alertname, ...labels })),
  );
  await until(
    'alerts to fire',
    async () => {
      const fired = await prometheus.query(FIRED);
      missing = missing.filter(
        (wanted) =>
          !fired.some(({ labels }) => isDeepStrictEqual({ ...labels, ...wanted }, labels)),
      );
      return missing.length === 0;
    },
    150,
  ).catch(() => expect(missing, 'alerts that did not fire').toEqual([]));
};

const expected = (): readonly string[] => {
  const all = alertNames();
  const apart = [REFUSED, LOST];
  expect([...LATER, ...apart].filter((name) => !all.includes(name))).toEqual([]);
  return all.filter((name) => !apart.includes(name));
};

/** Every alert of the trouble has fired. */
export const troubleFired = (stack: Stack): Promise<void> =>
  haveFired(
    stack,
    expected().filter((name) => !LATER.includes(name)),
  );

/** Every alert has fired at least once. */
export const allFired = (stack: Stack): Promise<void> => haveFired(stack, expected());

/** Makes trouble on a Collector and a Prometheus of their own until the alert fires, and no more. */
const firesApart = async (
  folder: string,
  alert: string,
  collector: Changes,
  trouble: (stack: Stack) => Promise<void>,
): Promise<void> => {
  const stack = await startStack(folder, { services: ['prometheus', 'otel-collector'], collector });
  const alerts = () => stack.prometheus.alerts();
  try {
    await until(alert, async () => {
      await trouble(stack);
      return (await alerts()).some(({ name, state }) => name === alert && state === 'firing');
    });
    await until(`${alert} to resolve`, async () =>
      (await alerts()).every(({ name }) => name !== alert),
    );
  } finally {
    await stack.stop();
  }
};

/**
 * A Collector without memory turns telemetry away and says so, so that senders try again; the
 * alert fires, and resolves when nobody sends any more. What is other in its file is the limit.
 */
export const refusing = async (folder: string): Promise<void> => {
  const limits = {
    'processors.memory_limiter.limit_mib': 2,
    'processors.memory_limiter.spike_limit_mib': 1,
  };
  let refusals = 0;
  await firesApart(folder, REFUSED, limits, ({ otlp }) =>
    sendGauge(otlp, 'refused', 1).catch(({ message }) => {
      // Worth another try, as OTLP has it.
      expect(message).toContain('503');
      refusals += 1;
    }),
  );
  expect(refusals).toBeGreaterThan(0);
};

/**
 * Two processes that call themselves the same, with other values at the same time: Prometheus
 * refuses them and all that is in the same request, and the Collector gives up on it at once.
 */
export const losing = async (folder: string): Promise<void> => {
  const time = Date.now();
  let value = 0;
  await firesApart(folder, LOST, {}, ({ otlp }) => {
    value += 1;
    return sendGauge(otlp, 'disputed', value, time);
  });
};

/** None fires any more. */
export const allResolved = async ({ prometheus }: Stack): Promise<void> => {
  let firing: readonly string[] = [];
  await until(
    'alerts to resolve',
    async () => {
      firing = (await prometheus.alerts())
        .filter(({ state }) => state === 'firing')
        .map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`);
      return firing.length === 0;
    },
    90,
  ).catch(() => expect(firing, 'alerts that did not resolve').toEqual([]));
};
