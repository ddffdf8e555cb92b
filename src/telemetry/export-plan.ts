/**
 * @module
 * Reads the standard OTEL_* variables and says what goes where. Pure, and apart from
 * `start.ts` so that nothing has to be loaded to learn that nothing is exported.
 *
 * Differences from the defaults of the specification, all of them so that a process that was
 * told nothing stays silent: without an endpoint and without a named exporter a signal is not
 * exported; the OTLP protocol is `http/json` where none is named; and only `tracecontext` is
 * propagated unless OTEL_PROPAGATORS asks for more, since baggage of a caller must not leak
 * to third parties by default.
 */

export type Signal = 'traces' | 'metrics' | 'logs';
const SIGNALS: readonly Signal[] = ['traces', 'metrics', 'logs'];

const PROTOCOLS = ['http/json', 'http/protobuf', 'grpc'] as const;
type Protocol = (typeof PROTOCOLS)[number];

type ExporterName = 'otlp' | 'console' | 'prometheus' | 'zipkin';

const EXPORTERS: Readonly<Record<Signal, readonly ExporterName[]>> = {
  traces: ['otlp', 'console', 'zipkin'],
  metrics: ['otlp', 'console', 'prometheus'],
  logs: ['otlp', 'console'],
};

/** What the SDK has; it leaves out any other without a word that is heard. */
const PROPAGATORS = ['tracecontext', 'baggage', 'b3', 'b3multi', 'none'];

/** How one signal leaves the process: not at all if `exporters` is empty. */
interface SignalPlan {
  readonly exporters: readonly ExporterName[];
  readonly protocol: Protocol;
}

export interface ExportPlan extends Readonly<Record<Signal, SignalPlan>> {
  /** OTEL_SDK_DISABLED is `true`. */
  readonly disabled: boolean;
  /** Whether any signal is exported. */
  readonly exporting: boolean;
  /** Where the signals go, for a human. Holds no credentials. */
  readonly destination: string;
  /** Settings that were not understood, each with what was done instead. */
  readonly problems: readonly string[];
}

/** A variable that is set to the empty string counts as unset (OTel specification). */
const read = (env: NodeJS.ProcessEnv, name: string): string | undefined =>
  env[name]?.trim() || undefined;

const readList = (env: NodeJS.ProcessEnv, name: string): string[] =>
  (read(env, name) ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

const endpointOf = (env: NodeJS.ProcessEnv, signal: Signal): string | undefined =>
  read(env, `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`) ??
  read(env, 'OTEL_EXPORTER_OTLP_ENDPOINT');

const isProtocol = (value: string): value is Protocol =>
  (PROTOCOLS as readonly string[]).includes(value);

const isHttp = (url: string): boolean => /^https?:/i.test(url) && URL.canParse(url);

/** Takes away what may be secret: credentials and the query. */
const showUrl = (url: string): string => {
  if (!isHttp(url)) return url.includes('@') ? '(hidden)' : url;
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
};

const planSignal = (env: NodeJS.ProcessEnv, signal: Signal, problems: string[]): SignalPlan => {
  const upper = signal.toUpperCase();
  const named =
    read(env, `OTEL_EXPORTER_OTLP_${upper}_PROTOCOL`) ?? read(env, 'OTEL_EXPORTER_OTLP_PROTOCOL');
  const protocol = named !== undefined && isProtocol(named) ? named : 'http/json';

  const asked = [...new Set(readList(env, `OTEL_${upper}_EXPORTER`))];
  if (asked.length === 0 && endpointOf(env, signal)) asked.push('otlp');
  if (asked.includes('none')) return { exporters: [], protocol };

  const known: readonly string[] = EXPORTERS[signal];
  for (const name of asked.filter((name) => !known.includes(name))) {
    problems.push(`OTEL_${upper}_EXPORTER: "${name}" is none of ${known.join(', ')}, none`);
  }
  const exporters = EXPORTERS[signal].filter((name) => asked.includes(name));
  if (!exporters.includes('otlp')) return { exporters, protocol };

  if (named !== undefined && named !== protocol) {
    problems.push(`OTLP protocol "${named}" of ${signal} is unknown, ${protocol} is used`);
  }
  const endpoint = endpointOf(env, signal);
  if (endpoint !== undefined && protocol !== 'grpc' && !isHttp(endpoint)) {
    // The exporter would fall back to localhost without a word.
    const shown = showUrl(endpoint);
    problems.push(`${signal} are not exported: "${shown}" is not a URL like http://localhost:4318`);
    return { exporters: exporters.filter((name) => name !== 'otlp'), protocol };
  }
  return { exporters, protocol };
};

const showTarget = (
  env: NodeJS.ProcessEnv,
  signal: Signal,
  exporter: ExporterName,
  protocol: Protocol,
): string => {
  switch (exporter) {
    case 'otlp': {
      const fallback = protocol === 'grpc' ? 'http://localhost:4317' : 'http://localhost:4318';
      return `${showUrl(endpointOf(env, signal) ?? fallback)} (${protocol})`;
    }
    case 'prometheus': {
      const host = read(env, 'OTEL_EXPORTER_PROMETHEUS_HOST') ?? 'localhost';
      return `http://${host}:${read(env, 'OTEL_EXPORTER_PROMETHEUS_PORT') ?? '9464'}/metrics`;
    }
    default:
      return exporter;
  }
};

const describe = (
  env: NodeJS.ProcessEnv,
  plans: Readonly<Record<Signal, SignalPlan>>,
  problems: readonly string[],
): string => {
  const signalsTo = new Map<string, Signal[]>();
  for (const signal of SIGNALS) {
    const { exporters, protocol } = plans[signal];
    for (const exporter of exporters) {
      const target = showTarget(env, signal, exporter, protocol);
      signalsTo.set(target, [...(signalsTo.get(target) ?? []), signal]);
    }
  }
  if (signalsTo.size === 0) return `nowhere: ${problems[0] ?? 'set OTEL_EXPORTER_OTLP_ENDPOINT'}`;
  return [...signalsTo]
    .map(([to, signals]) =>
      signals.length === SIGNALS.length && signalsTo.size === 1
        ? to
        : `${signals.join(', ')}: ${to}`,
    )
    .join('; ');
};

/** What the environment asks for. Never throws: what it does not understand is a problem listed. */
export const planExport = (env: NodeJS.ProcessEnv): ExportPlan => {
  const problems: string[] = [];
  const plans = {
    traces: planSignal(env, 'traces', problems),
    metrics: planSignal(env, 'metrics', problems),
    logs: planSignal(env, 'logs', problems),
  };
  const disabled = read(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  const exporting = !disabled && SIGNALS.some((signal) => plans[signal].exporters.length > 0);
  const unknown = readList(env, 'OTEL_PROPAGATORS').filter((name) => !PROPAGATORS.includes(name));
  if (exporting && unknown.length > 0) {
    problems.push(`OTEL_PROPAGATORS: "${unknown.join(', ')}" is none of ${PROPAGATORS.join(', ')}`);
  }
  return {
    ...plans,
    disabled,
    exporting,
    destination: disabled ? 'nowhere: OTEL_SDK_DISABLED is true' : describe(env, plans, problems),
    problems,
  };
};

/** Instrumentations that are on for a process of our own: HTTP in and out, and the runtime. */
const OWN_INSTRUMENTATIONS = 'http,undici,runtime-node';
/** Left out of somebody else's application: a span for each file, look-up, socket or layer. */
const NOISE = 'fs,dns,net,host-metrics,connect,router,generic-pool,dataloader,lru-memoizer';

/**
 * The environment that the SDK is started under: the given one, with our defaults where it is
 * silent. OTEL_LOG_LEVEL is taken out, or NodeSDK would install a logger that writes to stdout.
 */
export const sdkEnvironment = (
  env: NodeJS.ProcessEnv,
  plan: ExportPlan,
  application: boolean,
): NodeJS.ProcessEnv => {
  const { OTEL_LOG_LEVEL: _, ...effective } = env;
  effective.OTEL_PROPAGATORS = read(env, 'OTEL_PROPAGATORS') ?? 'tracecontext';
  if (plan.logs.exporters.length === 0) effective.OTEL_LOGS_EXPORTER = 'none';
  if (read(env, 'OTEL_NODE_ENABLED_INSTRUMENTATIONS') === undefined) {
    if (application) {
      const unwanted = [NOISE, read(env, 'OTEL_NODE_DISABLED_INSTRUMENTATIONS')];
      effective.OTEL_NODE_DISABLED_INSTRUMENTATIONS = unwanted.filter(Boolean).join(',');
    } else {
      effective.OTEL_NODE_ENABLED_INSTRUMENTATIONS = OWN_INSTRUMENTATIONS;
    }
  }
  return effective;
};

/** Positive numbers from the environment, under the names that the SDK's options give them. */
export const readNumbers = (
  env: NodeJS.ProcessEnv,
  names: Readonly<Record<string, string>>,
): Record<string, number> => {
  const found: Record<string, number> = {};
  for (const [option, name] of Object.entries(names)) {
    const value = Number(read(env, name));
    if (value > 0) found[option] = value;
  }
  return found;
};
