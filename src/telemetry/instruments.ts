/**
 * @module
 * Makes the instruments of `signals.ts` and emits its events. Imports nothing of
 * OpenTelemetry but the API, so that without an SDK all of it is a no-op.
 */

import type {
  Attributes,
  BatchObservableResult,
  Counter,
  Histogram,
  Meter,
  MeterProvider,
  Observable,
  Span,
  Tracer,
} from '@opentelemetry/api';
import * as api from '@opentelemetry/api';
import { VERSION } from '../version.ts';
import { type EVENT, METRIC, type MetricSpec, SCOPE } from './signals.ts';
import { Tally } from './tally.ts';

type MetricKey = keyof typeof METRIC;
type KeysOf<Kind extends MetricSpec['instrument']> = {
  [Key in MetricKey]: (typeof METRIC)[Key]['instrument'] extends Kind ? Key : never;
}[MetricKey];

/**
 * What fault injection knows of the calls that run: which of them met a fault, so that whatever
 * they lead to says so. A subject is any object that stands for a call, or for what a call left
 * behind, such as a breaker that it opened.
 */
export interface FaultHook {
  /** Runs what belongs to a new call. */
  enter<T>(call: object, run: () => T): T;
  /** The call that we are in. */
  call(): object | undefined;
  /** Attributes of the fault that a subject met; without one, that the call met that we are in. */
  marks(subject?: object): Attributes | undefined;
  /** `subject` is now what the call has made of it: it carries the call's fault, or none. */
  carry(subject: object): void;
  /** What `subject` carries has reached the call that we are in. */
  adopt(subject: object): void;
  /** A call takes one of the places that others may want (1), or gives it back (-1). */
  hold(places: object, call: object, change: 1 | -1): void;
  /** The call that we are in finds no place: a fault that holds one has reached it. */
  crowded(places: object): void;
  /** Puts marks on what is recorded with these instruments. */
  watch(instruments: Instruments): void;
}

let faults: FaultHook | undefined;

/** There while faults can be injected, and only then. */
export const faultHook = (): FaultHook | undefined => faults;

/** Attributes of the fault that caused what happens now, if one did. */
export const faultMarks = (subject?: object): Attributes | undefined => faults?.marks(subject);

/** Has everything that is emitted from now on carry the marks of `hook`; undefined ends it. */
export const setFaultHook = (hook: FaultHook | undefined): void => {
  faults = hook;
  if (built) hook?.watch(built);
};

/** Metrics whose values are read from something alive when they are collected. */
type ObservableKey = KeysOf<'observable up-down counter' | 'observable gauge'>;

/** The synchronous instruments, made on one meter provider. */
export type Instruments = Readonly<
  Record<KeysOf<'histogram'>, Histogram> &
    Record<KeysOf<'counter'>, Counter> & {
      /** False while no SDK is registered: recording may then be skipped altogether. */
      enabled: boolean;
    }
>;

/** Takes one value of one metric at a collection. */
export type Report = (metric: ObservableKey, value: number, attributes: Attributes) => void;

/** Something alive that reports values whenever metrics are collected. */
export interface Observed {
  observe(report: Report): void;
}

// Weak: a pipeline that its owner dropped can be collected though nobody destroyed it.
const observed = new Set<WeakRef<Observed>>();
// Without an SDK nothing is ever collected, and only this clears up behind them.
const dropped = new FinalizationRegistry((reference: WeakRef<Observed>) => {
  observed.delete(reference);
});

/** Has `source` report at each collection, until the returned function is called. */
export const observeMetrics = (source: Observed): (() => void) => {
  // Makes them, if an SDK is there: an idle breaker is to be seen before its first call.
  instruments();
  const reference = new WeakRef(source);
  observed.add(reference);
  dropped.register(source, reference);
  return () => void observed.delete(reference);
};

/** What every call adds to, with attributes that stand prepared. */
const AT_EVERY_CALL: ReadonlySet<MetricKey> = new Set<MetricKey>([
  'breakerCalls',
  'bulkheadDecisions',
  'rateLimiterDecisions',
]);

const build = (provider: MeterProvider): Instruments => {
  const meter: Meter = provider.getMeter(SCOPE, VERSION);
  const made: Record<string, unknown> = {
    enabled: meter.constructor !== api.createNoopMeter().constructor,
  };
  const observables = new Map<string, Observable>();
  const tallies: Tally[] = [];
  for (const [key, spec] of Object.entries(METRIC) as [MetricKey, MetricSpec][]) {
    const { name, unit, description } = spec;
    if (spec.instrument === 'histogram') {
      const advice = spec.buckets ? { explicitBucketBoundaries: [...spec.buckets] } : {};
      made[key] = meter.createHistogram(name, { unit, description, advice });
    } else if (spec.instrument === 'counter') {
      const counter = meter.createCounter(name, { unit, description });
      if (AT_EVERY_CALL.has(key)) {
        const tally = new Tally(counter);
        tallies.push(tally);
        made[key] = tally;
      } else made[key] = counter;
    } else if (spec.instrument === 'observable gauge') {
      observables.set(key, meter.createObservableGauge(name, { unit, description }));
    } else {
      observables.set(key, meter.createObservableUpDownCounter(name, { unit, description }));
    }
  }
  meter.addBatchObservableCallback(
    (result: BatchObservableResult) => {
      for (const tally of tallies) tally.flush();
      const report: Report = (metric, value, attributes) => {
        const instrument = observables.get(metric);
        if (instrument) result.observe(instrument, value, attributes);
      };
      for (const reference of observed) {
        const source = reference.deref();
        if (source) source.observe(report);
        else observed.delete(reference);
      }
    },
    [...observables.values()],
  );
  return made as unknown as Instruments;
};

let builtOn: MeterProvider | undefined;
let built: Instruments;

/**
 * The instruments of the meter provider that is registered now. The API has no proxy for
 * meters as it has for tracers, so instruments made before the SDK starts would stay no-ops
 * for ever; comparing the provider at each call costs some 20 ns and mends that.
 */
export const instruments = (): Instruments => {
  const provider = api.metrics.getMeterProvider();
  if (provider !== builtOn) {
    builtOn = provider;
    built = build(provider);
    faults?.watch(built);
  }
  return built;
};

/** The tracer of everything we emit. */
export const tracer = (): Tracer => api.trace.getTracer(SCOPE, VERSION);

/**
 * A span within the active one, if that is recorded. A processor that throws changes nothing:
 * telemetry does not change what a call answers.
 */
export const startChildSpan = (name: string, attributes: Attributes): Span | undefined => {
  if (!api.trace.getActiveSpan()?.isRecording()) return undefined;
  try {
    return tracer().startSpan(name, { attributes: { ...attributes, ...faultMarks() } });
  } catch (error) {
    api.diag.error(`${SCOPE}: span ${name} was not started`, error);
    return undefined;
  }
};

/** Ends a span. Never throws either. */
export const endSpan = (span: Span | undefined): void => {
  try {
    span?.end();
  } catch (error) {
    api.diag.error(`${SCOPE}: a span was not ended`, error);
  }
};

const SEVERITY = { info: 9, warn: 13, error: 17 } as const;

// In API 1.9 logs are a package of their own; a named import would not link there.
const logsApi = (api as Partial<Pick<typeof api, 'logs'>>).logs;
let loggerFrom: unknown;
let logger: ReturnType<NonNullable<typeof logsApi>['getLogger']> | undefined;

/**
 * Emits one event of the contract: as a log record, and on `span` as well, since not every
 * trace store keeps logs. Never throws: telemetry does not change what a call answers.
 */
export const emitEvent = (
  eventName: (typeof EVENT)[keyof typeof EVENT],
  severity: keyof typeof SEVERITY,
  attributes: Attributes,
  span: Span | undefined = api.trace.getActiveSpan(),
): void => {
  try {
    const marks = faultMarks();
    if (marks) attributes = { ...marks, ...attributes };
    if (span?.isRecording()) span.addEvent(eventName, attributes);
    const provider = logsApi?.getLoggerProvider();
    if (provider !== loggerFrom) {
      loggerFrom = provider;
      logger = provider?.getLogger(SCOPE, VERSION);
    }
    const severityNumber: number = SEVERITY[severity];
    if (!logger?.enabled({ severityNumber, eventName })) return;
    logger.emit({
      eventName,
      severityNumber,
      severityText: severity.toUpperCase(),
      attributes: attributes as Record<string, string | number | boolean>,
    });
  } catch (error) {
    api.diag.error(`${SCOPE}: event ${eventName} was not recorded`, error);
  }
};
