/**
 * @module
 * Who has registered with the OpenTelemetry API of this process. Knows the API only.
 */
import * as api from '@opentelemetry/api';
import { SCOPE } from './signals.ts';

/** The tracer provider behind the proxy that the API hands out. */
export const tracerProvider = (from: typeof api = api): api.TracerProvider => {
  const provider = from.trace.getTracerProvider() as Partial<api.ProxyTracerProvider>;
  return provider.getDelegate?.() ?? (provider as api.TracerProvider);
};

// By name: the API can be there more than once, with as many classes of that name.
const isNoop = (provider: api.TracerProvider): boolean =>
  provider.constructor.name === 'NoopTracerProvider';

/** Which signals another SDK has taken already. */
export const registered = (): { readonly traces: boolean; readonly metrics: boolean } => {
  const meter = api.metrics.getMeterProvider().getMeter(SCOPE);
  return {
    traces: !isNoop(tracerProvider()),
    metrics: meter.constructor !== api.createNoopMeter().constructor,
  };
};

/**
 * The API exists twice in a process, once for `import` and once for `require`, and tracers
 * handed out before the start are bound to their copy. The SDK registered with the one that
 * is `required`; registering through ours wakes those that were imported. Later ones find
 * either.
 */
export const adoptTracerProvider = (required: typeof api): void => {
  const provider = tracerProvider(required);
  if (required.trace === api.trace || isNoop(provider)) return;
  required.trace.disable();
  api.trace.setGlobalTracerProvider(provider);
};
