/**
 * @module
 * What Prometheus knows of the calls that were made, and by which names.
 */
import { expect } from 'vitest';
import { prometheusName } from '../../../grafana/prometheus-names.ts';
import { METRIC, type MetricSpec } from '../../../src/telemetry/signals.ts';
import { until } from '../processes.ts';
import type { Stack } from '../stack.ts';
import { COUNTED } from '../traffic.ts';

const SERVICE = 'job="mcp-resilience"';

/** Puts a matcher into every selector of an expression that has one. */
const ofService = (expression: string): string =>
  expression.includes('{') ? expression.replace('{', `{${SERVICE},`) : `${expression}{${SERVICE}}`;

/** Every counted figure is there, and exact. */
export const countedValues = async (stack: Stack): Promise<void> => {
  for (const [expression, value] of COUNTED) {
    const query = ofService(expression);
    let seen: number | undefined;
    await until(
      `${query} to be ${value}`,
      async () => {
        seen = await stack.prometheus.value(query);
        return seen === value;
      },
      20,
    ).catch(() => expect(seen, query).toBe(value));
  }
};

/** Counters that `drive` makes, each of which begins with the one event that it counts. */
const BORN = [
  'resilience_circuit_breaker_transitions_total{from="closed",to="open"}',
  'resilience_circuit_breaker_recovery_duration_seconds_count',
  'resilience_fallbacks_total{resilience_dependency="weather-api",reason="CIRCUIT_OPEN"}',
];

/** The first event of a process counts as one: its counter has risen from 0, not begun with 1. */
export const bornAtOne = async (stack: Stack): Promise<void> => {
  for (const series of BORN) {
    const query = `sum(increase(${ofService(series)}[10m]))`;
    const risen = await until(query, () => stack.prometheus.value(query));
    // A little more than 1, since Prometheus continues the slope to the edges of the range.
    expect(risen, query).toBeGreaterThan(0.9);
    expect(risen, query).toBeLessThan(1.7);
  }
};

/** Names of series that our contract makes. */
const OURS = /^(tool|resilience|mcp|chaos)_/;

/** Each metric is called what dashboards and rules call it. */
export const expectedNames = async (stack: Stack): Promise<void> => {
  const names = await stack.prometheus.names();
  const expected = Object.values(METRIC as Record<string, MetricSpec>).map(
    (metric) => prometheusName(metric) + (metric.instrument === 'histogram' ? '_bucket' : ''),
  );
  expect(expected.filter((name) => !names.includes(name))).toEqual([]);
};

/** Seconds, in the name and in the value. */
export const seconds = async (stack: Stack): Promise<void> => {
  const names = await stack.prometheus.names();
  const spelled = names.filter((name) => OURS.test(name) || name.startsWith('traces_'));
  expect(spelled.filter((name) => /milli|_ms(_|$)/.test(name))).toEqual([]);
  expect(names).toContain('tool_duration_seconds_bucket');
  expect(names).toContain('traces_span_metrics_duration_seconds_bucket');
  // Three attempts of 400 ms each: more than a second, and less than a minute on any machine.
  for (const sum of [
    `sum(tool_duration_seconds_sum{${SERVICE},error_type="TIMEOUT"})`,
    `sum(traces_span_metrics_duration_seconds_sum{service_name="stack-test-client",span_name="timeout"})`,
  ]) {
    const value = await until(sum, () => stack.prometheus.value(sum));
    expect(value, sum).toBeGreaterThan(1.1);
    expect(value, sum).toBeLessThan(60);
  }
};

/** `_total` once, on counters alone. */
export const oneTotal = async (stack: Stack): Promise<void> => {
  const names = await stack.prometheus.names();
  expect(names.filter((name) => /_total_total/.test(name))).toEqual([]);
  const counters = Object.values(METRIC as Record<string, MetricSpec>)
    .filter(({ instrument }) => instrument === 'counter')
    .map((metric) => prometheusName(metric));
  const totals = names.filter((name) => OURS.test(name) && name.endsWith('_total'));
  expect(totals.length).toBeGreaterThan(5);
  expect(totals.filter((name) => !counters.includes(name))).toEqual([]);
};

/** No gauge of ours is taken for a ratio. */
export const noRatio = async (stack: Stack): Promise<void> => {
  const names = await stack.prometheus.names();
  expect(names).toContain('resilience_bulkhead_limit');
  expect(names.filter((name) => OURS.test(name) && name.endsWith('_ratio'))).toEqual([]);
  // Where the unit is 1, Prometheus does append it: what the rule above keeps away.
  expect(names).toContain('nodejs_eventloop_utilization_ratio');
};

/** Labels that dashboards and links rely on. */
export const resourceLabels = async (stack: Stack): Promise<void> => {
  const [info] = await stack.prometheus.query(`target_info{${SERVICE}}`);
  expect(info?.labels).toMatchObject({
    job: 'mcp-resilience',
    service_name: 'mcp-resilience',
    service_version: expect.stringMatching(/^\d/),
    instance: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  // The parts of the stack are not taken for servers of ours.
  const jobs = await stack.prometheus.labelValues('job', 'target_info');
  expect(jobs).not.toContain('jaeger');
  expect(jobs).not.toContain('otel-collector');
};

/** A point of the latency histogram leads to a trace that Jaeger has. */
export const exemplars = async (stack: Stack): Promise<void> => {
  const selector =
    'traces_span_metrics_duration_seconds_bucket{service_name="mcp-resilience",status_code="STATUS_CODE_ERROR"}';
  const found = await until('exemplars of failed calls', async () => {
    const all = await stack.prometheus.exemplars(selector);
    return all.length > 0 && all;
  });
  // Failed calls are kept whatever the share of the others: each of these links works.
  for (const { traceId } of found) {
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    await until(
      `trace ${traceId} of an exemplar`,
      async () => (await stack.jaeger.trace(traceId)).length > 0,
    );
  }
};

/** Jaeger's Monitor tab: latencies, rates and errors of operations that go on being called. */
export const monitorTab = async (stack: Stack): Promise<void> => {
  const operation = 'tools/call get_weather';
  const highest = (metric: 'latencies' | 'calls' | 'errors', parameters = {}) =>
    until(`${metric} of ${operation} in Jaeger`, async () => {
      const rows = await stack.jaeger.monitor(metric, 'overloaded', parameters);
      const values = rows.find((row) => row.operation === operation)?.values ?? [];
      // With another unit or namespace than the connector's there would be none.
      return values.some((value) => value > 0) && Math.max(...values);
    });
  expect(await highest('latencies', { quantile: '0.95' })).toBeLessThan(60);
  expect(await highest('calls')).toBeLessThan(100);
  expect(await highest('errors')).toBeLessThanOrEqual(1);
};
