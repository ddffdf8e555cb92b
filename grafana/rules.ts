/**
 * @module
 * Names of what otel/rules.yaml records, for the dashboards; a test holds that they are there.
 */

/** Windows over which failures are recorded. */
export type Window = '5m' | '30m' | '1h' | '6h';

export const RECORDED = {
  /** Share of calls that must succeed: 0.99 unless the rules say otherwise. */
  objective: 'mcp_resilience:slo_availability:ratio',
  /** Seconds that 99 of 100 calls must stay below. */
  latencyTarget: 'mcp_resilience:slo_latency_p99:seconds',
  /** Share of calls that failed by our fault, by service and tool, without injected faults. */
  failureRatio: (window: Window): string => `job_tool:tool_failures:ratio_rate${window}`,
  /** 99th percentile of the duration, by service and tool, without injected faults. */
  latency: 'job_tool:tool_duration_seconds:p99_15m',
} as const;
