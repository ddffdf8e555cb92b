/**
 * @module
 * The tool `health_check`: how the server and what it depends on are doing, out of what is in
 * memory. It has no policies: it must answer when everything else is down.
 */
import { z } from 'zod';
import { defineTool, type Tool } from '../mcp/tool.ts';
import { type HealthSources, healthReport } from './health.ts';
import { type DependencyHealth, type HealthReport, healthSchema } from './health-schema.ts';

const inputSchema = z.object({});

const dependencyLine = (dependency: DependencyHealth): string => {
  const { name, breaker, rate_limiter, bulkhead, cache, retry_budget } = dependency;
  const parts = [
    breaker &&
      `breaker ${breaker.state} (${breaker.failureCount} failures, ${breaker.successCount} successes since)`,
    rate_limiter &&
      `rate limit ${rate_limiter.accepted} accepted, ${rate_limiter.rejected} rejected, ${rate_limiter.available} left`,
    bulkhead && `bulkhead ${bulkhead.active} of ${bulkhead.limit} busy, ${bulkhead.queued} waiting`,
    cache &&
      `cache ${cache.entries} entries, ${cache.hits} hits, ${cache.misses} misses, ${cache.stale} stale`,
    retry_budget && `retry budget ${retry_budget.available} left`,
  ];
  return `- ${name}: ${parts.filter((part) => part !== undefined).join('; ') || 'no policies'}`;
};

type Duration = NonNullable<HealthReport['tool_duration']['overall']>;

const durationLine = (name: string, { count, avg_ms, p50_ms, p95_ms, p99_ms }: Duration): string =>
  `- ${name}: ${count} calls, avg ${avg_ms} ms, p50 ${p50_ms} ms, p95 ${p95_ms} ms, p99 ${p99_ms} ms`;

const textOf = (report: HealthReport): string => {
  const { status, reasons, dependencies, tool_duration, uptime_seconds, version } = report;
  const { overall, by_tool = {}, note } = tool_duration;
  return [
    `Status: ${status}${reasons.length > 0 ? ` (${reasons.join('; ')})` : ''}. Version ${version}, up ${uptime_seconds} s. Telemetry: ${report.telemetry.destination}.`,
    dependencies.length > 0 ? 'Dependencies:' : 'No dependencies.',
    ...dependencies.map(dependencyLine),
    overall ? 'Tool durations:' : `Tool durations: ${note ?? 'none'}`,
    ...(overall ? [durationLine('all tools', overall)] : []),
    ...Object.entries(by_tool).map(([name, stats]) => durationLine(name, stats)),
  ].join('\n');
};

/** Makes `health_check`. */
export const createHealthCheckTool = (
  sources: HealthSources,
): Tool<typeof inputSchema, typeof healthSchema> =>
  defineTool({
    name: 'health_check',
    title: 'Health check',
    description:
      'State of this server and of what it depends on: circuit breakers, rate limits, caches, retry budgets, and how long tool calls take. Asks nobody outside.',
    inputSchema,
    outputSchema: healthSchema,
    annotations: {
      title: 'Health check',
      readOnlyHint: true,
      idempotentHint: true,
      openWorldHint: false,
    },
    handler: async (_input, { principal }) => {
      const report = await healthReport(sources, principal);
      return { content: [{ type: 'text', text: textOf(report) }], structuredContent: report };
    },
  });
