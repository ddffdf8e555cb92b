import { describe, expect, test } from 'vitest';
import { planExport, readNumbers, sdkEnvironment } from '../../src/telemetry/export-plan.ts';
import { verifies } from '../fixtures/verifies.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const exporters = (env: NodeJS.ProcessEnv) => {
  const { traces, metrics, logs } = planExport(env);
  return [traces.exporters, metrics.exporters, logs.exporters].map((list) => list.join('+'));
};

describe('what is exported', () => {
  verifies('telemetry.exporter-selection', () => {
    expect(exporters({})).toEqual(['', '', '']);
    expect(exporters({ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' })).toEqual(['', '', '']);
    expect(exporters(ENDPOINT)).toEqual(['otlp', 'otlp', 'otlp']);
    expect(exporters({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://c/v1/metrics' })).toEqual([
      '',
      'otlp',
      '',
    ]);
    expect(exporters({ ...ENDPOINT, OTEL_LOGS_EXPORTER: 'none' })).toEqual(['otlp', 'otlp', '']);
    expect(exporters({ OTEL_TRACES_EXPORTER: 'otlp, console' })).toEqual(['otlp+console', '', '']);
    expect(exporters({ ...ENDPOINT, OTEL_METRICS_EXPORTER: 'prometheus' })).toEqual([
      'otlp',
      'prometheus',
      'otlp',
    ]);

    const protocols = planExport({
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'http/protobuf',
    });
    expect(planExport(ENDPOINT).traces.protocol).toBe('http/json');
    expect(protocols.traces.protocol).toBe('grpc');
    expect(protocols.logs.protocol).toBe('http/protobuf');
    expect(protocols.problems).toEqual([]);
  });

  test('a setting that is not understood is named, with what is done instead', () => {
    const plan = planExport({
      ...ENDPOINT,
      OTEL_TRACES_EXPORTER: 'jaeger',
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'carrier-pigeon',
      OTEL_PROPAGATORS: 'tracecontext,b4',
    });
    expect(plan.traces.exporters).toEqual([]);
    expect(plan.metrics).toEqual({ exporters: ['otlp'], protocol: 'http/json' });
    expect(plan.problems).toEqual([
      'OTEL_TRACES_EXPORTER: "jaeger" is none of otlp, console, zipkin, none',
      'OTLP protocol "carrier-pigeon" of metrics is unknown, http/json is used',
      'OTEL_PROPAGATORS: "b4" is none of tracecontext, baggage, b3, b3multi, none',
    ]);
  });

  test('an endpoint without a scheme is refused, except for grpc', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' };
    expect(planExport(env).exporting).toBe(false);
    expect(planExport(env).problems).toHaveLength(3);
    expect(planExport(env).destination).toContain('"collector:4318" is not a URL');
    expect(planExport({ ...env, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }).exporting).toBe(true);
  });
});

describe('the destination', () => {
  test.each([
    [{}, 'nowhere: set OTEL_EXPORTER_OTLP_ENDPOINT'],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }, 'nowhere: OTEL_SDK_DISABLED is true'],
    [ENDPOINT, 'http://collector:4318 (http/json)'],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, 'traces: http://localhost:4318 (http/json)'],
    [
      { ...ENDPOINT, OTEL_METRICS_EXPORTER: 'prometheus', OTEL_EXPORTER_PROMETHEUS_PORT: '9000' },
      'traces, logs: http://collector:4318 (http/json); metrics: http://localhost:9000/metrics',
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://user:secret@collector/otlp?token=secret' },
      'https://collector/otlp (http/json)',
    ],
    [
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: 'user:secret@collector:4317',
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      },
      '(hidden) (grpc)',
    ],
  ])('of %o is %s', (env, expected) => {
    expect(planExport(env).destination).toBe(expected);
  });
});

describe('the environment of the SDK', () => {
  const sdkEnv = (env: NodeJS.ProcessEnv, application = false) =>
    sdkEnvironment(env, planExport(env), application);

  test('has our defaults where the given one is silent', () => {
    expect(sdkEnv({})).toMatchObject({
      OTEL_PROPAGATORS: 'tracecontext',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'http,undici,runtime-node',
    });
    const given = {
      ...ENDPOINT,
      OTEL_PROPAGATORS: 'b3',
      OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'fs',
    };
    expect(sdkEnv(given)).toEqual(given);
    expect(sdkEnv(given, true)).toEqual(given);
  });

  test('leaves no log level behind, which would log to stdout', () => {
    expect(sdkEnv({ OTEL_LOG_LEVEL: 'debug' })).not.toHaveProperty('OTEL_LOG_LEVEL');
  });

  test('of an application turns off what is noise, and what it says itself', () => {
    const { OTEL_NODE_DISABLED_INSTRUMENTATIONS: off } = sdkEnv(
      { OTEL_NODE_DISABLED_INSTRUMENTATIONS: 'pg' },
      true,
    );
    expect(off?.split(',')).toEqual(expect.arrayContaining(['fs', 'dns', 'net', 'pg']));
  });
});

test('numbers that are none are left to the default', () => {
  const env = { A: '5', B: 'many', C: '-1', D: '' };
  expect(readNumbers(env, { a: 'A', b: 'B', c: 'C', d: 'D', e: 'E' })).toEqual({ a: 5 });
});
