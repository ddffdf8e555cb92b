import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { prometheusLabel, prometheusName } from '../../grafana/prometheus-names.ts';
import { HTTP, knownSeries, RUNTIME, type Source } from '../../grafana/sources.ts';
import { METRIC, type MetricSpec } from '../../src/telemetry/signals.ts';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { startServer } from '../fixtures/server.ts';
import { answer, startUpstream } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';

const named = (name: string, unit: string, instrument: MetricSpec['instrument']): string =>
  prometheusName({ name, unit, instrument });

describe('names in Prometheus', () => {
  verifies('prometheus.names', () => {
    // The unit is a word of the name, once.
    expect(named('tool.duration', 's', 'histogram')).toBe('tool_duration_seconds');
    expect(named('wait.seconds', 's', 'observable gauge')).toBe('wait_seconds');
    expect(named('heap.used', 'By', 'observable gauge')).toBe('heap_used_bytes');
    // A counter ends in _total, once.
    expect(named('calls', '{call}', 'counter')).toBe('calls_total');
    expect(named('calls.total', '{call}', 'counter')).toBe('calls_total');
    expect(named('loop.time', 's', 'counter')).toBe('loop_time_seconds_total');
    // Only a gauge of unit 1 is a ratio: an annotation in braces is no unit.
    expect(named('utilization', '1', 'observable gauge')).toBe('utilization_ratio');
    expect(named('state', '1', 'observable up-down counter')).toBe('state');
    expect(named('state', '{breaker}', 'observable gauge')).toBe('state');
    // What a name may not hold becomes one underscore.
    expect(named('a.b-c..d/e', '', 'histogram')).toBe('a_b_c_d_e');
    expect(named('5xx', '', 'histogram')).toBe('_5xx');
    expect(prometheusLabel('gen_ai.tool.name')).toBe('gen_ai_tool_name');
  });

  test('a unit that nobody has thought of is an error that names it', () => {
    expect(() => named('speed', 'm/s', 'observable gauge')).toThrow(
      'speed: the suffix of unit "m/s"',
    );
  });

  test('every name is one that Prometheus takes, and translating it again changes nothing', () => {
    fc.assert(
      fc.property(
        fc
          .string({ unit: fc.constantFrom(...'abz_.-/ 09é'), minLength: 1 })
          .filter((name) => /[a-z]/.test(name)),
        fc.constantFrom('', 's', 'By', '{call}'),
        fc.constantFrom<MetricSpec['instrument']>('histogram', 'counter', 'observable gauge'),
        (name, unit, instrument) => {
          const once = named(name, unit, instrument);
          expect(once).toMatch(/^[a-zA-Z_:][a-zA-Z0-9_:]*$/);
          expect(once).not.toMatch(/__|_total_total|_seconds_seconds/);
          if (!once.startsWith('_')) expect(named(once, unit, instrument)).toBe(once);
        },
      ),
    );
  });

  test('no two metrics of the contract share a series', () => {
    const names = Object.values(METRIC).map(prometheusName);
    expect(new Set(names).size).toBe(names.length);
  });

  verifies('dashboards.real-sources', async () => {
    const receiver = await OtlpReceiver.start();
    onTestFinished(() => receiver.stop());
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.on('*', answer(503, 'overloaded'));
    const server = await startServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_METRIC_EXPORT_INTERVAL: '500',
      OTEL_METRIC_EXPORT_TIMEOUT: '400',
      WEATHER_API_URL: upstream.url,
    });
    const client = await server.connect();
    await client.callTool({ name: 'get_weather', arguments: { city: 'Paris' } });
    const described: readonly Source[] = [...Object.values(RUNTIME), ...Object.values(HTTP)];
    const missing = (): string[] =>
      described
        .map(({ name }) => name)
        .filter((name) => !receiver.metrics().some((metric) => metric.name === name));
    await receiver
      .waitFor(() => missing().length === 0, 'every metric that is not ours')
      .catch(() => expect(missing()).toEqual([]));
    for (const source of described) {
      const real = receiver.metrics().filter(({ name }) => name === source.name);
      const instrument = {
        histogram: 'histogram',
        gauge: 'observable gauge',
        sum: real[0]?.monotonic ? 'counter' : 'observable up-down counter',
      }[real[0]?.type ?? 'gauge'];
      expect([source.name, instrument, real[0]?.unit]).toEqual([
        source.name,
        source.instrument,
        source.unit,
      ]);
      const carried = new Set(
        real.flatMap(({ points }) => points.flatMap(({ attributes }) => Object.keys(attributes))),
      );
      const named = [...source.attributes].filter(
        (attribute) => !SELDOM.has(`${source.name} ${attribute}`),
      );
      expect(named.filter((attribute) => !carried.has(attribute))).toEqual([]);
    }
  });

  test('a histogram has three series, of which one has buckets', () => {
    const series = knownSeries();
    expect(series.get('tool_duration_seconds_bucket')).toContain('le');
    expect(series.get('tool_duration_seconds_count')).not.toContain('le');
    expect(series.has('tool_duration_seconds')).toBe(false);
  });
});

/** Attributes that only some points carry, and none of the call above. */
const SELDOM = new Set([
  'http.server.request.duration http.route',
  'http.server.request.duration error.type',
]);
