/**
 * @module
 * Starts OpenTelemetry from the standard OTEL_* variables. The only file that loads the SDK,
 * and it loads what it needs when it needs it: about 65 ms where nothing is exported, 360 ms
 * and 30 MB more where something is (Node 24, measured once; the SDK with all its protocols is
 * three quarters of that).
 *
 * It loads through `require`: patches of the HTTP instrumentation apply without loader hooks,
 * and starting stays synchronous, so that nothing runs between start and first use.
 */
import { randomUUID } from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import * as api from '@opentelemetry/api';
import type * as AutoInstrumentations from '@opentelemetry/auto-instrumentations-node';
import type * as Resources from '@opentelemetry/resources';
import type * as SdkMetrics from '@opentelemetry/sdk-metrics';
import type * as SdkNode from '@opentelemetry/sdk-node';
import { VERSION } from '../version.ts';
import { createBackgroundExports } from './background-export.ts';
import { createDiagLogger, diagLevel } from './diagnostics.ts';
import { type ExportPlan, planExport, type Signal, sdkEnvironment } from './export-plan.ts';
import { createExporters, make } from './exporters.ts';
import { httpConfiguration } from './http-privacy.ts';
import {
  createTelemetry,
  DEFAULT_FLUSH_TIMEOUT,
  inertTelemetry,
  type Running,
  type Telemetry,
} from './lifecycle.ts';
import { adoptTracerProvider, registered, tracerProvider } from './registration.ts';
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from './semconv.ts';
import { SCOPE } from './signals.ts';

export type { Telemetry } from './lifecycle.ts';

export interface StartOptions {
  /** Where the OTEL_* variables are read. Default: `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
  /** Longest that `flush()` and `shutdown()` take, in ms. Default: 1500. */
  readonly flushTimeout?: number;
  /**
   * The process is somebody else's application (`register.ts`): every instrumentation that is
   * not noise is on, and our version is not claimed to be the service's. Default: false.
   */
  readonly application?: boolean;
}

const require = createRequire(import.meta.url);
const load = {
  api: () => require('@opentelemetry/api') as typeof api,
  sdkNode: () => require('@opentelemetry/sdk-node') as typeof SdkNode,
  sdkMetrics: () => require('@opentelemetry/sdk-metrics') as typeof SdkMetrics,
  resources: () => require('@opentelemetry/resources') as typeof Resources,
  autoInstrumentations: () =>
    require('@opentelemetry/auto-instrumentations-node') as typeof AutoInstrumentations,
  /** OTLP over http/json, the protocol where none is named. */
  otlpJson: {
    traces: (): unknown => require('@opentelemetry/exporter-trace-otlp-http'),
    metrics: (): unknown => require('@opentelemetry/exporter-metrics-otlp-http'),
    logs: (): unknown => require('@opentelemetry/exporter-logs-otlp-http'),
  },
  /** A part that is no dependency of ours: the copy that the SDK itself uses. */
  ofSdk: (name: string): unknown => createRequire(require.resolve('@opentelemetry/sdk-node'))(name),
};

const OTLP_EXPORTER = {
  traces: ['trace', 'OTLPTraceExporter'],
  metrics: ['metrics', 'OTLPMetricExporter'],
  logs: ['logs', 'OTLPLogExporter'],
} as const satisfies Record<Signal, readonly [string, string]>;

const makeOtlpExporter = (plan: ExportPlan, signal: Signal): object => {
  const [infix, className] = OTLP_EXPORTER[signal];
  const { protocol } = plan[signal];
  const module =
    protocol === 'http/json'
      ? load.otlpJson[signal]()
      : load.ofSdk(
          `@opentelemetry/exporter-${infix}-otlp-${protocol === 'grpc' ? 'grpc' : 'proto'}`,
        );
  return make(module, className);
};

/** The SDK reads `process.env`, and all of it while it starts. */
const withEnvironment = <T>(env: NodeJS.ProcessEnv, run: () => T): T => {
  const before = process.env;
  process.env = env;
  try {
    return run();
  } finally {
    process.env = before;
  }
};

/**
 * Names the service and this process, and nothing of the machine, its owner or the command
 * line unless OTEL_NODE_RESOURCE_DETECTORS asks for it. What the environment says wins.
 */
const makeResource = (application: boolean): Resources.Resource => {
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } =
    load.resources();
  const asked = process.env.OTEL_NODE_RESOURCE_DETECTORS
    ? load.autoInstrumentations().getResourceDetectors()
    : [];
  return defaultResource()
    .merge(
      resourceFromAttributes({
        [ATTR_SERVICE_NAME]: SCOPE,
        [ATTR_SERVICE_INSTANCE_ID]: randomUUID(),
        ...(application ? {} : { [ATTR_SERVICE_VERSION]: VERSION }),
      }),
    )
    .merge(detectResources({ detectors: [...asked, envDetector] }));
};

/** Read on demand, by `Telemetry.snapshot()`. */
const makeSnapshotReader = (): SdkMetrics.MetricReader => {
  const { MetricReader } = load.sdkMetrics();
  return new (class SnapshotReader extends MetricReader {
    protected override async onForceFlush(): Promise<void> {}
    protected override async onShutdown(): Promise<void> {}
  })();
};

const makeInstrumentations = () => {
  const { isTracingSuppressed } = load.ofSdk('@opentelemetry/core') as {
    isTracingSuppressed(context: api.Context): boolean;
  };
  return load
    .autoInstrumentations()
    .getNodeAutoInstrumentations(
      httpConfiguration(() => isTracingSuppressed(api.context.active())),
    );
};

/** What providers of an SDK can do beyond the API. */
type Flushable = object & { forceFlush?: (options: object) => Promise<void> };

/** Has the HTTP instrumentation patch what was imported before. */
const patchHttp = (): void => {
  require('node:http');
  require('node:https');
  syncBuiltinESMExports();
};

/** Metrics for `snapshot()` and nothing else: no span, no export, no instrumentation. */
const startSnapshotOnly = (env: NodeJS.ProcessEnv, application: boolean): Running => {
  const reader = makeSnapshotReader();
  const { MeterProvider } = load.sdkMetrics();
  const resource = withEnvironment(env, () => makeResource(application));
  const provider = new MeterProvider({ resource, readers: [reader] });
  api.metrics.setGlobalMeterProvider(provider);
  return {
    collect: () => reader.collect(),
    flush: async () => {},
    end: () => provider.shutdown(),
    abandon: () => {},
  };
};

const startExport = (env: NodeJS.ProcessEnv, plan: ExportPlan, application: boolean): Running => {
  const background = createBackgroundExports(({ name, message, code }: NodeJS.ErrnoException) =>
    api.diag.error(`export failed: ${message || `${name} ${code}`}`),
  );
  const otlp = (signal: Signal) => background.run(makeOtlpExporter(plan, signal));
  const reader = makeSnapshotReader();
  const { NodeSDK } = load.sdkNode();
  const sdk = withEnvironment(sdkEnvironment(env, plan, application), () => {
    const exporters = createExporters(plan, env, { load: load.ofSdk, otlp });
    const made = new NodeSDK({
      ...exporters,
      metricReaders: [reader, ...exporters.metricReaders],
      resource: makeResource(application),
      autoDetectResources: false,
      instrumentations: makeInstrumentations(),
    } as ConstructorParameters<typeof NodeSDK>[0]);
    made.start();
    return made;
  });
  adoptTracerProvider(load.api());
  patchHttp();

  const flush = async (limit: number): Promise<void> => {
    const providers: Flushable[] = [
      tracerProvider(),
      api.metrics.getMeterProvider(),
      api.logs.getLoggerProvider(),
    ];
    // Their own limit of 30 s would hold the process when ours has long passed.
    const options = { timeoutMillis: Math.ceil(limit * 0.9) };
    await Promise.allSettled(providers.map((provider) => provider.forceFlush?.(options)));
    await background.settled();
  };
  return {
    collect: () => reader.collect(),
    flush,
    end: () => sdk.shutdown(),
    abandon: () => background.abandon(),
  };
};

const FOREIGN = 'where the OpenTelemetry SDK sends it that this process had registered before';

const start = ({
  env = process.env,
  flushTimeout = DEFAULT_FLUSH_TIMEOUT,
  application = false,
}: StartOptions): Telemetry => {
  const plan = planExport(env);
  if (plan.disabled) return inertTelemetry(plan.destination);
  const taken = registered();
  if (taken.metrics) return inertTelemetry(FOREIGN);
  if (taken.traces) {
    const settings = { exporting: false, destination: FOREIGN, flushTimeout };
    return createTelemetry(startSnapshotOnly(env, application), settings);
  }

  // console.error, unlike process.stderr.write, survives a stderr that was closed.
  const logger = createDiagLogger((line) => console.error(line));
  const logLevel = diagLevel(env.OTEL_LOG_LEVEL);
  api.diag.setLogger(logger, { logLevel, suppressOverrideMessage: true });
  for (const problem of plan.problems) api.diag.error(problem);

  const { exporting, destination } = plan;
  const running = exporting
    ? startExport(env, plan, application)
    : startSnapshotOnly(env, application);
  return createTelemetry(running, { exporting, destination, flushTimeout });
};

let started: Telemetry | undefined;

/**
 * Starts telemetry as the environment says, once in a process: a second call returns what the
 * first one started, whatever its options, and so does one after `shutdown()`.
 *
 * Where another SDK was registered before, that one is left alone: nothing is exported,
 * `destination` says so, and everything we emit goes through it. `snapshot()` then works only
 * if it registered no metrics.
 *
 * Never throws: telemetry that cannot start is reported on stderr and left out.
 *
 * @example
 * const telemetry = startTelemetry();
 * console.error(`telemetry goes to ${telemetry.destination}`);
 * // ... serve ...
 * await telemetry.shutdown();
 */
export const startTelemetry = (options: StartOptions = {}): Telemetry => {
  try {
    started ??= start(options);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    console.error(`mcp-resilience: telemetry did not start: ${reason}`);
    started = inertTelemetry(`nowhere: it did not start (${reason})`);
  }
  return started;
};
