/**
 * @module
 * Alerts in the real Prometheus: each fires in its trouble, and none is left when it is over.
 */
import { expect } from 'vitest';
import { parse } from 'yaml';
import { fileOf } from '../compose.ts';
import { until } from '../processes.ts';
import type { Stack } from '../stack.ts';

interface RulesFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert?: string }[] }[];
}

/** Alerts that the trouble of the stack test does not bring about, and why. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  McpTelemetryRefused: 'needs a Collector whose memory is used up; rules.test.yaml has it',
};

/** Names of all alerts of otel/rules.yaml. */
export const alertNames = (): readonly string[] =>
  (parse(fileOf('otel/rules.yaml')) as RulesFile).groups
    .flatMap(({ rules }) => rules)
    .flatMap(({ alert }) => alert ?? []);

const FIRED = 'max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[15m]))';

/** Every rule can be evaluated. */
export const rulesAreHealthy = async ({ prometheus }: Stack): Promise<void> => {
  const rules = await until('all rules to have been evaluated', async () => {
    const found = await prometheus.rules();
    return found.length > 0 && found.every(({ health }) => health !== 'unknown') && found;
  });
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
};

/** Alerts that the absence of Jaeger brings about, which comes after all other trouble. */
const LATER: readonly string[] = ['McpTelemetryTargetDown', 'McpTelemetryQueueFull'];

const haveFired = async ({ prometheus }: Stack, names: readonly string[]): Promise<void> => {
  let missing = names;
  await until(
    'alerts to fire',
    async () => {
      const fired = new Set((await prometheus.query(FIRED)).map(({ labels }) => labels.alertname));
      missing = names.filter((name) => !fired.has(name));
      return missing.length === 0;
    },
    150,
  ).catch(() => expect(missing, 'alerts that did not fire').toEqual([]));
};

const expected = (): readonly string[] => {
  const all = alertNames();
  expect([...LATER, ...Object.keys(ELSEWHERE)].filter((name) => !all.includes(name))).toEqual([]);
  return all.filter((name) => ELSEWHERE[name] === undefined);
};

/** Every alert of the trouble has fired. */
export const troubleFired = (stack: Stack): Promise<void> =>
  haveFired(
    stack,
    expected().filter((name) => !LATER.includes(name)),
  );

/** Every alert has fired at least once. */
export const allFired = (stack: Stack): Promise<void> => haveFired(stack, expected());

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
