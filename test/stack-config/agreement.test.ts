import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { verifies } from '../fixtures/verifies.ts';
import { compose, fileOf, root, service } from '../stack/compose.ts';
import { dashboards, datasources } from '../stack/grafana.ts';
import { COLLECTOR, JAEGER, PROMETHEUS } from '../stack/versions.ts';

interface Port {
  readonly host: string;
  readonly published: string;
  readonly target: string;
}

type Values = Readonly<Record<string, unknown>>;

const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((found, key) => (found as Values | undefined)?.[key], value);

const collector = parse(fileOf('otel/collector.yaml')) as Values;
const jaeger = parse(fileOf('otel/jaeger.yaml')) as Values;
const prometheus = parse(fileOf('otel/prometheus.yaml'), { merge: true }) as Values;

const minutes = (text: unknown): number => Number(/^(\d+)m$/.exec(String(text))?.[1]);

const portsOf = (name: string): readonly Port[] =>
  (service(name).ports ?? []).map((text) => {
    const [host = '', published = '', target = ''] = text.split(':');
    return { host, published, target };
  });

/** Ports that a service listens on, by what its configuration says. */
const LISTENS: Readonly<Record<string, readonly string[]>> = {
  'otel-collector': [
    at(collector, 'receivers.otlp.protocols.grpc.endpoint'),
    at(collector, 'receivers.otlp.protocols.http.endpoint'),
    at(collector, 'extensions.health_check.endpoint'),
    `0.0.0.0:${at(collector, 'service.telemetry.metrics.readers.0.pull.exporter.prometheus.port')}`,
  ].map(String),
  jaeger: [
    at(jaeger, 'receivers.otlp.protocols.grpc.endpoint'),
    at(jaeger, 'extensions.jaeger_query.http.endpoint'),
    at(jaeger, 'extensions.healthcheckv2.http.endpoint'),
    `0.0.0.0:${at(jaeger, 'service.telemetry.metrics.readers.0.pull.exporter.prometheus.port')}`,
  ].map(String),
  prometheus: ['0.0.0.0:9090'],
  grafana: ['0.0.0.0:3000'],
  server: ['0.0.0.0:3000'],
};

/** Every address at which one part of the stack looks for another. */
const LOOKED_FOR = [
  at(collector, 'exporters.otlp_grpc/jaeger.endpoint'),
  at(collector, 'exporters.otlp_http/prometheus.endpoint'),
  at(jaeger, 'extensions.jaeger_storage.metric_backends.span_metrics.prometheus.endpoint'),
  ...(prometheus.scrape_configs as { static_configs: { targets: string[] }[] }[]).flatMap(
    ({ static_configs }) => static_configs.flatMap(({ targets }) => targets),
  ),
  ...datasources().datasources.map(({ url }) => url),
  service('server').environment?.OTEL_EXPORTER_OTLP_ENDPOINT,
].map((address) =>
  String(address)
    .replace(/^https?:\/\//, '')
    .replace(/\/.*$/, ''),
);

describe('the parts of the stack', () => {
  verifies('stack.agreement', () => {
    expect(LOOKED_FOR).toHaveLength(9);
    for (const address of LOOKED_FOR) {
      const [name = '', port = ''] = address.split(':');
      // Prometheus scrapes itself.
      const listener = name === 'localhost' ? 'prometheus' : name;
      expect(compose().services, address).toHaveProperty(listener);
      expect(LISTENS[listener], address).toContain(`0.0.0.0:${port}`);
    }
    for (const name of Object.keys(LISTENS)) {
      for (const { target } of portsOf(name)) expect(LISTENS[name]).toContain(`0.0.0.0:${target}`);
    }
    // What the health checks ask.
    for (const [name, { healthcheck }] of Object.entries(compose().services)) {
      const [, port] = /127\.0\.0\.1:(\d+)/.exec(healthcheck?.test.join(' ') ?? '') ?? [];
      if (port) expect(LISTENS[name], name).toContain(`0.0.0.0:${port}`);
    }
  });

  verifies('stack.images-pinned', () => {
    expect(service('otel-collector').image).toBe(COLLECTOR.image);
    expect(service('jaeger').image).toBe(JAEGER.image);
    expect(service('prometheus').image).toBe(PROMETHEUS.image);
    expect(COLLECTOR.image).toContain(`:${COLLECTOR.version}`);
    expect(JAEGER.image).toContain(`:${JAEGER.version}`);
    expect(PROMETHEUS.image).toContain(`:v${PROMETHEUS.version}`);
    for (const [name, { image = '' }] of Object.entries(compose().services)) {
      expect(image, name).toMatch(/:v?\d+\.\d+\.\d+$/);
    }
  });

  verifies('stack.units-agree', () => {
    const made = at(collector, 'connectors.span_metrics') as Values;
    const read = at(
      jaeger,
      'extensions.jaeger_storage.metric_backends.span_metrics.prometheus',
    ) as Values;
    expect(String(made.namespace).replaceAll('.', '_')).toBe(read.metric_namespace);
    expect(at(made, 'histogram.unit')).toBe(read.latency_unit);
    // Prometheus appends unit and _total, so that Jaeger has to expect both.
    expect(at(prometheus, 'otlp.translation_strategy')).toBe('UnderscoreEscapingWithSuffixes');
    expect(read).toMatchObject({ normalize_calls: true, normalize_duration: true });
    expect(service('prometheus').command).toEqual(
      expect.arrayContaining([
        '--web.enable-otlp-receiver',
        // Exemplars, and zeros where counters begin.
        '--enable-feature=exemplar-storage,created-timestamp-zero-ingestion',
      ]),
    );
  });

  verifies('stack.points-window', () => {
    const { processors } = at(collector, 'service.pipelines.metrics') as Record<string, string[]>;
    expect(processors).toEqual(expect.arrayContaining(['filter/time', 'filter/kind']));
    const conditions = (at(collector, 'processors.filter/time') as Values).metric_conditions;
    const bound = (sign: string): number => {
      const shape = new RegExp(
        `^datapoint\\.time [<>] Now\\(\\) \\${sign} Duration\\("(\\w+)"\\)$`,
      );
      const found = (conditions as string[]).flatMap((text) => shape.exec(text)?.[1] ?? []);
      expect(found).toHaveLength(1);
      return minutes(found[0]);
    };
    const [old, ahead] = [bound('-'), bound('+')];
    const patience = at(
      collector,
      'exporters.otlp_http/prometheus.retry_on_failure.max_elapsed_time',
    );
    // Counted from the newest point that there is.
    const window = minutes(at(prometheus, 'storage.tsdb.out_of_order_time_window'));
    expect(old + ahead + minutes(patience)).toBeLessThan(window);
    // What Prometheus takes at all (maxAheadTime of its write handler).
    expect(ahead).toBeLessThan(10);
  });

  verifies('stack.survives', () => {
    const window = minutes(at(prometheus, 'storage.tsdb.out_of_order_time_window'));
    for (const name of ['otlp_grpc/jaeger', 'otlp_http/prometheus']) {
      const exporter = at(collector, `exporters.${name}`) as Values;
      const patience = minutes(at(exporter, 'retry_on_failure.max_elapsed_time'));
      expect(patience, name).toBeGreaterThanOrEqual(5);
      // What is given up later than that, Prometheus would refuse as too old.
      expect(patience, name).toBeLessThanOrEqual(window);
      expect(at(exporter, 'sending_queue.storage'), name).toBe('file_storage');
    }
    // Whatever is written lies on a named volume.
    const volumes = (name: string) => service(name).volumes ?? [];
    expect(volumes('otel-collector')).toContain(
      `collector:${at(collector, 'extensions.file_storage.directory')}`,
    );
    const keys = String(
      at(jaeger, 'extensions.jaeger_storage.backends.traces.badger.directories.keys'),
    );
    expect(volumes('jaeger').some((volume) => keys.startsWith(`${volume.split(':')[1]}/`))).toBe(
      true,
    );
    expect(volumes('prometheus')).toContain('prometheus:/prometheus');
    expect(Object.keys(compose().volumes).sort()).toEqual([
      'collector',
      'grafana',
      'jaeger',
      'prometheus',
    ]);
  });

  test('what is mounted is there, and where the programs look for it', () => {
    for (const [name, { volumes = [], command = [], environment = {} }] of Object.entries(
      compose().services,
    )) {
      const mounted = volumes
        .map((volume) => volume.split(':'))
        .filter(([source = '']) => source.startsWith('./'));
      for (const [source = '', , mode] of mounted) {
        expect(existsSync(join(root, source)), `${name}: ${source}`).toBe(true);
        expect(mode, `${name}: ${source}`).toBe('ro');
      }
      for (const argument of command.filter((text) => text.startsWith('--config'))) {
        expect(
          mounted.map(([, target]) => target),
          name,
        ).toContain(argument.split('=')[1]);
      }
      const home = environment.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH;
      if (home !== undefined) {
        const [, folder] = mounted.find(([source]) => source === './grafana/dashboards') ?? [];
        expect(home).toBe(`${folder}/mcp-resilience.json`);
        expect(dashboards().get('mcp-resilience.json')?.title).toBe('MCP resilience');
        const { providers } = parse(fileOf('grafana/provisioning/dashboards/dashboards.yaml'));
        expect(providers[0].options.path).toBe(folder);
      }
    }
  });

  test('datasources lead to each other, by ids that exist', () => {
    const ids = datasources().datasources.map(({ uid }) => uid);
    expect(ids).toEqual(['prometheus', 'jaeger']);
    const named = [
      ...fileOf('grafana/provisioning/datasources/datasources.yaml').matchAll(
        /datasourceUid: (\w+)/g,
      ),
    ];
    expect(named.map(([, uid]) => uid).sort()).toEqual(['jaeger', 'prometheus']);
  });

  test('alerts link to the Grafana that is published', () => {
    const [grafana] = portsOf('grafana');
    const links = [
      ...fileOf('otel/rules.yaml').matchAll(/dashboard_url: http:\/\/localhost:(\d+)/g),
    ];
    expect(links.length).toBeGreaterThan(0);
    expect(new Set(links.map(([, port]) => port))).toEqual(new Set([grafana?.published]));
  });
});
