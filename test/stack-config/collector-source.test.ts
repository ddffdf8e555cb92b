import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import { collectorSource } from '../stack/collector-source.ts';
import { fileOf, root } from '../stack/compose.ts';
import { COLLECTOR, JAEGER, PROMETHEUS } from '../stack/versions.ts';

describe('the programs of the stack test', () => {
  verifies('stack.programs-pinned', () => {
    const { modules } = collectorSource(fileOf('otel/collector.yaml'));
    const required = fileOf('test/stack/programs/collector/go.mod');
    for (const { path, version } of modules) {
      // A package may be deeper than its module.
      const module = path.replace(/\/telemetry\/otelconftelemetry$/, '');
      expect(required, path).toContain(`\t${module} ${version}`);
    }
    expect(fileOf('test/stack/programs/jaeger/go.mod')).toContain(
      `github.com/jaegertracing/jaeger ${JAEGER.module}`,
    );
    expect(fileOf('test/stack/programs/prometheus/go.mod')).toContain(
      `github.com/prometheus/prometheus ${PROMETHEUS.module}`,
    );
    for (const set of ['collector', 'jaeger', 'prometheus']) {
      expect(existsSync(join(root, 'test/stack/programs', set, 'go.sum')), set).toBe(true);
    }
    // Released together, so that no two of them disagree.
    expect([COLLECTOR.core, COLLECTOR.contrib]).toEqual([
      `v${COLLECTOR.version}`,
      `v${COLLECTOR.version}`,
    ]);
    const [, major, minor, patch] = /^(\d+)\.(\d+)\.(\d+)$/.exec(PROMETHEUS.version) ?? [];
    expect(PROMETHEUS.module).toBe(`v0.${major}${minor}.${patch}`);
    expect(JAEGER.module).toBe(`v1.${Number(JAEGER.version.split('.')[1]) + 63}.0`);
  });

  test('the Collector has the components of its file, and no other', () => {
    const { main } = collectorSource(
      'receivers: {otlp: }\nexporters: {otlp_http/one: , otlp_http/two: }\nservice: {}\n',
    );
    expect(main).toContain(
      'factories.Receivers, err = otelcol.MakeFactoryMap(otlpreceiver.NewFactory())',
    );
    expect(main.match(/otlphttpexporter\.NewFactory\(\)/g)).toHaveLength(1);
    expect(main).not.toMatch(/tailsampling|spanmetrics|Connectors|Extensions/);
  });

  test('components that are not known are named, all of them', () => {
    expect(() => collectorSource('receivers: {kafka: }\nprocessors: {batch/x: }\n')).toThrow(
      /receivers\.kafka, processors\.batch; add it to COMPONENTS/,
    );
  });
});
