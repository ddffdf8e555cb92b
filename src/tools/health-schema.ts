/**
 * @module
 * The shape of a health report, as `tools/list` shows it.
 */
import { z } from 'zod';

const count = z.number().int().min(0);

const breaker = z.object({
  name: z.string(),
  state: z.enum(['closed', 'open', 'half-open', 'isolated']),
  failureCount: count.describe('Failures it remembers; while open, those that opened it.'),
  successCount: count.describe('Successes since the last failure.'),
  retry_after_seconds: z
    .number()
    .optional()
    .describe('Seconds until a call may be let through again; absent while one may be now.'),
});

const dependency = z.object({
  name: z.string(),
  breaker: breaker.optional(),
  rate_limiter: z
    .object({
      accepted: count,
      rejected: count,
      available: count.describe('Calls that you may make at once.'),
    })
    .optional(),
  bulkhead: z
    .object({
      active: count,
      queued: count,
      limit: count,
      oldest_wait_seconds: z.number(),
      accepted: count,
      rejected: count,
    })
    .optional(),
  cache: z.object({ entries: count, hits: count, misses: count, stale: count }).optional(),
  retry_budget: z
    .object({
      calls: count.describe('Calls in the last period.'),
      extras: count.describe('Retries and hedges in it.'),
      available: count.describe('Further ones allowed now.'),
    })
    .optional(),
});

const duration = z.object({
  count,
  avg_ms: z.number(),
  p50_ms: z.number(),
  p95_ms: z.number(),
  p99_ms: z.number(),
});

const durations = z.object({
  available: z.boolean().describe('False where no metrics are collected.'),
  note: z.string().optional(),
  overall: duration.optional().describe('Every tool call since the start.'),
  by_tool: z.record(z.string(), duration).optional(),
});

/** What `health_check` answers with. */
export const healthSchema = z.object({
  status: z.enum(['ok', 'degraded']).describe('Degraded while any circuit breaker is not closed.'),
  reasons: z.array(z.string()),
  dependencies: z.array(dependency),
  tool_duration: durations.describe(
    'Milliseconds from the histogram tool.duration; percentiles are interpolated in its buckets.',
  ),
  uptime_seconds: z.number(),
  version: z.string(),
  telemetry: z.object({ destination: z.string().describe('Where telemetry is sent.') }),
});

export type HealthReport = z.output<typeof healthSchema>;
export type DependencyHealth = z.output<typeof dependency>;
export type ToolDuration = z.output<typeof durations>;
