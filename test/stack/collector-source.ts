/**
 * @module
 * The Collector that a configuration needs, as Go source: a main package with the components
 * that the file names and no other. It does what the Collector builder does, for the few
 * components of otel/collector.yaml.
 */
import { parse } from 'yaml';
import { COLLECTOR } from './versions.ts';

const CORE = 'go.opentelemetry.io/collector';
const CONTRIB = 'github.com/open-telemetry/opentelemetry-collector-contrib';

/** Sections of a Collector configuration that name components, and the Go name of each kind. */
const KINDS = {
  receivers: 'Receiver',
  processors: 'Processor',
  exporters: 'Exporter',
  connectors: 'Connector',
  extensions: 'Extension',
} as const;

type Kind = keyof typeof KINDS;

const core = (path: string) => ({ path: `${CORE}/${path}`, version: COLLECTOR.core });
const stable = (path: string) => ({ path: `${CORE}/${path}`, version: COLLECTOR.stable });
const contrib = (path: string) => ({ path: `${CONTRIB}/${path}`, version: COLLECTOR.contrib });

/** A Go module at a version. */
export interface GoModule {
  readonly path: string;
  readonly version: string;
}

/** Where each component type comes from. One that is missing here is refused by name. */
const COMPONENTS: Readonly<Record<Kind, Readonly<Record<string, GoModule>>>> = {
  receivers: { otlp: core('receiver/otlpreceiver') },
  processors: {
    filter: contrib('processor/filterprocessor'),
    memory_limiter: core('processor/memorylimiterprocessor'),
    redaction: contrib('processor/redactionprocessor'),
    tail_sampling: contrib('processor/tailsamplingprocessor'),
    transform: contrib('processor/transformprocessor'),
  },
  exporters: {
    debug: core('exporter/debugexporter'),
    otlp_grpc: core('exporter/otlpexporter'),
    otlp_http: core('exporter/otlphttpexporter'),
  },
  connectors: { span_metrics: contrib('connector/spanmetricsconnector') },
  extensions: {
    file_storage: contrib('extension/storage/filestorage'),
    health_check: contrib('extension/healthcheckextension'),
  },
};

/** What every Collector has, whatever its components. */
const FRAME: readonly GoModule[] = [
  core('otelcol'),
  core('service/telemetry/otelconftelemetry'),
  stable('component'),
  stable('confmap'),
  stable('confmap/provider/envprovider'),
  stable('confmap/provider/fileprovider'),
];

interface CollectorSource {
  /** Modules to require, each once. */
  readonly modules: readonly GoModule[];
  /** The main package. */
  readonly main: string;
}

/**
 * @param configuration text of a Collector configuration
 * @throws Error naming every component that has no module here
 */
export const collectorSource = (configuration: string): CollectorSource => {
  const sections = parse(configuration) as Record<string, Record<string, unknown> | null>;
  const unknown: string[] = [];
  const modules = new Map(FRAME.map((module) => [module.path, module]));
  const imports: string[] = [];
  const factories: string[] = [];
  for (const [kind, goName] of Object.entries(KINDS) as [Kind, string][]) {
    const types = Object.keys(sections[kind] ?? {}).map((id) => id.split('/')[0] ?? id);
    const made: string[] = [];
    for (const type of new Set(types)) {
      const module = COMPONENTS[kind][type];
      if (module === undefined) {
        unknown.push(`${kind}.${type}`);
        continue;
      }
      modules.set(module.path, module);
      const alias = `${type.replaceAll('_', '')}${goName.toLowerCase()}`;
      imports.push(`\t${alias} "${module.path}"`);
      made.push(`${alias}.NewFactory()`);
    }
    if (made.length > 0) {
      factories.push(
        `\tif factories.${goName}s, err = otelcol.MakeFactoryMap(${made.join(', ')}); err != nil {`,
        '\t\treturn otelcol.Factories{}, err',
        '\t}',
      );
    }
  }
  if (unknown.length > 0) {
    throw new Error(
      `no Go module is known for ${unknown.join(', ')}; add it to COMPONENTS in ` +
        'test/stack/collector-source.ts, then run: node test/stack/programs.ts pin collector',
    );
  }
  return { modules: [...modules.values()], main: mainPackage(imports, factories) };
};

const mainPackage = (imports: readonly string[], factories: readonly string[]): string =>
  [
    'package main',
    '',
    'import (',
    '\t"log"',
    '',
    `\t"${CORE}/component"`,
    `\t"${CORE}/confmap"`,
    `\t"${CORE}/confmap/provider/envprovider"`,
    `\t"${CORE}/confmap/provider/fileprovider"`,
    `\t"${CORE}/otelcol"`,
    `\t"${CORE}/service/telemetry/otelconftelemetry"`,
    ...imports,
    ')',
    '',
    'func components() (otelcol.Factories, error) {',
    '\tvar err error',
    '\tfactories := otelcol.Factories{Telemetry: otelconftelemetry.NewFactory()}',
    ...factories,
    '\treturn factories, nil',
    '}',
    '',
    'func main() {',
    '\tsettings := otelcol.CollectorSettings{',
    `\t\tBuildInfo: component.BuildInfo{Command: "otelcol", Version: "${COLLECTOR.version}"},`,
    '\t\tFactories: components,',
    '\t\tConfigProviderSettings: otelcol.ConfigProviderSettings{',
    '\t\t\tResolverSettings: confmap.ResolverSettings{',
    '\t\t\t\tProviderFactories: []confmap.ProviderFactory{envprovider.NewFactory(), fileprovider.NewFactory()},',
    '\t\t\t\tDefaultScheme:     "env",',
    '\t\t\t},',
    '\t\t},',
    '\t}',
    '\tif err := otelcol.NewCommand(settings).Execute(); err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '}',
    '',
  ].join('\n');
