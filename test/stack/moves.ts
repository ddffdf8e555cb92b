/**
 * @module
 * Where the stack lives in a test: each address and path of the configuration files, moved to
 * this machine's loopback and to a folder.
 */
import { join } from 'node:path';
import type { Changes } from './configuration.ts';
import { freePorts } from './processes.ts';

const PORTS = [
  'otlpGrpc',
  'otlpHttp',
  'collectorHealth',
  'collectorMetrics',
  'jaegerOtlp',
  'jaegerQuery',
  'jaegerQueryGrpc',
  'jaegerHealth',
  'jaegerMetrics',
  'prometheus',
] as const;

export type Ports = Readonly<Record<(typeof PORTS)[number], number>>;

export const stackPorts = async (): Promise<Ports> => {
  const free = await freePorts(PORTS.length);
  return Object.fromEntries(PORTS.map((name, index) => [name, free[index]])) as Ports;
};

/** What changes in each file of otel/. */
export const moves = (ports: Ports, folder: string) => {
  const at = (port: number): string => `127.0.0.1:${port}`;
  const telemetry = 'service.telemetry.metrics.readers.0.pull.exporter.prometheus';
  return {
    'collector.yaml': {
      'receivers.otlp.protocols.grpc.endpoint': at(ports.otlpGrpc),
      'receivers.otlp.protocols.http.endpoint': at(ports.otlpHttp),
      'exporters.otlp_grpc/jaeger.endpoint': at(ports.jaegerOtlp),
      'exporters.otlp_http/prometheus.endpoint': `http://${at(ports.prometheus)}/api/v1/otlp`,
      'extensions.health_check.endpoint': at(ports.collectorHealth),
      'extensions.file_storage.directory': join(folder, 'collector'),
      'extensions.file_storage.compaction.directory': join(folder, 'collector'),
      [`${telemetry}.host`]: '127.0.0.1',
      [`${telemetry}.port`]: ports.collectorMetrics,
    },
    'jaeger.yaml': {
      'receivers.otlp.protocols.grpc.endpoint': at(ports.jaegerOtlp),
      'extensions.jaeger_query.http.endpoint': at(ports.jaegerQuery),
      'extensions.jaeger_query.grpc.endpoint': at(ports.jaegerQueryGrpc),
      'extensions.healthcheckv2.http.endpoint': at(ports.jaegerHealth),
      'extensions.jaeger_storage.backends.traces.badger.directories.keys': join(
        folder,
        'jaeger/keys',
      ),
      'extensions.jaeger_storage.backends.traces.badger.directories.values': join(
        folder,
        'jaeger/values',
      ),
      'extensions.jaeger_storage.metric_backends.span_metrics.prometheus.endpoint': `http://${at(ports.prometheus)}`,
      [`${telemetry}.host`]: '127.0.0.1',
      [`${telemetry}.port`]: ports.jaegerMetrics,
    },
    'prometheus.yaml': {
      'rule_files.0': join(folder, 'rules.yaml'),
      'scrape_configs.0.static_configs.0.targets.0': at(ports.collectorMetrics),
      'scrape_configs.1.static_configs.0.targets.0': at(ports.jaegerMetrics),
      'scrape_configs.2.static_configs.0.targets.0': at(ports.prometheus),
    },
  } as const satisfies Record<string, Changes>;
};
