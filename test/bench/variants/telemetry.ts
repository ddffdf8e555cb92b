/**
 * @module
 * The pipeline of four with a real OpenTelemetry SDK. What the SDK itself costs stands beside
 * it: the same span around the bare call.
 */
import { AlwaysOffSampler, AlwaysOnSampler } from '@opentelemetry/sdk-trace';
import { type Variant, work } from '../variant.ts';
import { FOUR } from './ours.ts';

/**
 * Registers metrics that are read by nobody meanwhile, as between two exports, and traces whose
 * spans go nowhere: sending them is the exporter's, in the background.
 */
const startSdk = async (recorded: boolean) => {
  const api = await import('@opentelemetry/api');
  const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
  const { MeterProvider, MetricReader } = await import('@opentelemetry/sdk-metrics');
  const { TracerProvider } = await import('@opentelemetry/sdk-trace');
  class IdleReader extends MetricReader {
    protected onForceFlush = async () => {};
    protected onShutdown = async () => {};
  }
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  api.metrics.setGlobalMeterProvider(new MeterProvider({ readers: [new IdleReader()] }));
  api.trace.setGlobalTracerProvider(
    new TracerProvider({
      sampler: recorded ? new AlwaysOnSampler() : new AlwaysOffSampler(),
      spanProcessors: [
        {
          onStart: () => {},
          onEnd: () => {},
          forceFlush: async () => {},
          shutdown: async () => {},
        },
      ],
    }),
  );
  return api;
};

const inSpan = (recorded: boolean, protectedCall: boolean): Variant => ({
  name: `telemetry: ${protectedCall ? 'pipeline' : 'bare call'} in ${recorded ? 'a recorded' : 'an unsampled'} span`,
  about: `${protectedCall ? 'the pipeline of four, its metrics recorded,' : 'the bare call'} inside a span that is started and ended for each call`,
  make: async () => {
    const { trace } = await startSdk(recorded);
    const { createPipeline } = await import('../../../src/index.ts');
    const pipeline = createPipeline('bench', FOUR);
    const call = protectedCall ? () => pipeline.execute(work) : work;
    const tracer = trace.getTracer('bench');
    return () =>
      tracer.startActiveSpan('call', async (span) => {
        const value = await call();
        span.end();
        return value;
      });
  },
});

const withinSpan = (recorded: boolean): Variant => ({
  name: `telemetry: pipeline within ${recorded ? 'a recorded' : 'an unsampled'} span`,
  about: 'the pipeline of four, its metrics recorded, all calls inside one span',
  make: async () => {
    const { trace, context } = await startSdk(recorded);
    const { createPipeline } = await import('../../../src/index.ts');
    const pipeline = createPipeline('bench', FOUR);
    const span = trace.getTracer('bench').startSpan('all');
    return context.bind(trace.setSpan(context.active(), span), () => pipeline.execute(work));
  },
});

export const telemetry: readonly Variant[] = [
  inSpan(false, false),
  inSpan(false, true),
  withinSpan(false),
  inSpan(true, false),
  inSpan(true, true),
  withinSpan(true),
];
