/**
 * @module
 * What `health_check` reports: figures that the policies and the in-process metrics hold
 * already. Reading them asks nobody and changes nothing.
 */
import type { Clock } from '../resilience/clock.ts';
import type { Pipeline } from '../resilience/pipeline.ts';
import { type DurationStats, EMPTY_SNAPSHOT, type Snapshot } from '../telemetry/snapshot.ts';
import type { DependencyHealth, HealthReport, ToolDuration } from './health-schema.ts';

/** Where a report takes its figures from. */
export interface HealthSources {
  /** The pipelines of the server. */
  readonly pipelines: Iterable<Pipeline>;
  /** The metrics as they are now. Default: there are none. */
  readonly snapshot?: (() => Promise<Snapshot>) | undefined;
  /** Where telemetry goes, for a human to read. */
  readonly destination?: string | undefined;
  /** The clock of the pipelines. */
  readonly clock: Clock;
  /** Clock time at which the server was made. */
  readonly startedAt: number;
  readonly version: string;
}

/** To the microsecond: more digits would pretend more than a bucket can tell. */
const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;

const milliseconds = ({ count, avg, p50, p95, p99 }: DurationStats) => ({
  count,
  avg_ms: rounded(avg),
  p50_ms: rounded(p50),
  p95_ms: rounded(p95),
  p99_ms: rounded(p99),
});

const dependencyHealth = (
  pipeline: Pipeline,
  clock: Clock,
  principal: string | undefined,
): DependencyHealth => {
  const { name, breaker, rateLimiter, bulkhead, cache, retry } = pipeline;
  const circuit = breaker?.toJSON();
  const limits = rateLimiter?.stats();
  const places = bulkhead?.stats();
  const kept = cache?.stats();
  const budget = retry?.budget?.stats(clock.now());
  return {
    name,
    ...(circuit && {
      breaker: {
        name: circuit.name,
        state: circuit.state,
        failureCount: circuit.failureCount,
        successCount: circuit.successCount,
        ...(circuit.retryAfter !== undefined && {
          retry_after_seconds: rounded(circuit.retryAfter),
        }),
      },
    }),
    ...(limits && {
      rate_limiter: {
        accepted: limits.accepted,
        rejected: limits.rejected,
        available: rateLimiter?.available(principal) ?? 0,
      },
    }),
    ...(places && {
      bulkhead: {
        active: places.active,
        queued: places.queued,
        limit: places.limit,
        oldest_wait_seconds: rounded(places.oldestWait / 1_000),
        accepted: places.accepted,
        rejected: places.rejected,
      },
    }),
    ...(kept && { cache: { ...kept } }),
    ...(budget && { retry_budget: { ...budget } }),
  };
};

const NO_METRICS =
  'No metrics are collected in this process: OTEL_SDK_DISABLED is set, another SDK has taken the metrics, or telemetry was not started.';

const toolDuration = async (snapshot: HealthSources['snapshot']): Promise<ToolDuration> => {
  let taken: Snapshot | undefined;
  try {
    taken = await snapshot?.();
  } catch {
    return { available: false, note: 'The metrics could not be read.' };
  }
  if (taken === undefined || taken === EMPTY_SNAPSHOT)
    return { available: false, note: NO_METRICS };
  const { overall, tools } = taken.toolDuration;
  if (overall === undefined) {
    return { available: true, note: 'No tool call has ended yet.', by_tool: {} };
  }
  return {
    available: true,
    overall: milliseconds(overall),
    by_tool: Object.fromEntries([...tools].map(([name, stats]) => [name, milliseconds(stats)])),
  };
};

/**
 * Takes stock.
 *
 * @param principal whose share of the rate limits is shown as `available`
 */
export const healthReport = async (
  sources: HealthSources,
  principal?: string,
): Promise<HealthReport> => {
  const { clock, startedAt, version, destination } = sources;
  // Before waiting for the metrics, so that all of it is of one moment.
  const dependencies = [...sources.pipelines].map((pipeline) =>
    dependencyHealth(pipeline, clock, principal),
  );
  const reasons = dependencies.flatMap(({ name, breaker }) =>
    breaker && breaker.state !== 'closed'
      ? [
          breaker.retry_after_seconds === undefined
            ? `circuit breaker of ${name} is ${breaker.state}`
            : `circuit breaker of ${name} is ${breaker.state} for another ${Math.ceil(breaker.retry_after_seconds)} s`,
        ]
      : [],
  );
  return {
    status: reasons.length === 0 ? 'ok' : 'degraded',
    reasons,
    dependencies,
    tool_duration: await toolDuration(sources.snapshot),
    uptime_seconds: rounded(Math.max(0, clock.now() - startedAt) / 1_000),
    version,
    telemetry: { destination: destination ?? 'unknown: it was not told' },
  };
};
