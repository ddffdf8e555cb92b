/**
 * @module
 * What the package exports. Start with `createPipeline`; the rest is there when it is needed.
 */

// MCP: around a tool handler.
export { META_FAILURE, META_OUTCOME, type ToolOutcome } from './mcp/meta.ts';
export {
  type Protected,
  type ProtectedContext,
  type ProtectOptions,
  protect,
  protectTool,
} from './mcp/protect.ts';
export { failureResult } from './mcp/protected-result.ts';
export {
  type ContentBlock,
  defineTool,
  type Tool,
  type ToolAnnotations,
  type ToolContext,
  type ToolResult,
} from './mcp/tool.ts';
// The pipeline and its settings.
export type { CallContext, Work } from './resilience/attempt.ts';
// Policies, each usable alone.
export { type Backoff, backoffDelay, type Jitter } from './resilience/backoff.ts';
export type {
  BreakerEvent,
  BreakerOutcome,
  BreakerPermit,
  BreakerSnapshot,
  BreakerState,
} from './resilience/breaker-model.ts';
export { Bulkhead } from './resilience/bulkhead.ts';
export {
  type CacheHit,
  type CacheKeyParts,
  type CacheStats,
  cacheKey,
  ResultCache,
} from './resilience/cache.ts';
export type { CallOptions, PipelineOptions } from './resilience/call-options.ts';
export { CircuitBreaker } from './resilience/circuit-breaker.ts';
export { CircuitOpenError } from './resilience/circuit-open-error.ts';
export { type Clock, type Random, systemClock, type Timer } from './resilience/clock.ts';
export { currentDeadline, Deadline, runWithDeadline } from './resilience/deadline.ts';
export { type DescribeOptions, describe } from './resilience/describe.ts';
export {
  type Classifier,
  type ClassifyOptions,
  classify,
  createFailure,
  type Delivery,
  type Failure,
  type FailureCode,
  type FailureDetails,
  type FailureSeverity,
  type FailureSource,
  type FailureWeight,
  failureToJSON,
  ResilienceError,
  throttledResult,
} from './resilience/failure.ts';
export { createPipeline, type Outcome, type Pipeline } from './resilience/pipeline.ts';
export {
  type AdaptiveLimitSettings,
  type BreakerSettings,
  type BulkheadSettings,
  type CacheSettings,
  type HedgeSettings,
  overridePolicy,
  type PolicySettings,
  type Priority,
  type RateLimitSettings,
  type RetrySettings,
} from './resilience/policy.ts';
export { type PresetName, presets } from './resilience/presets.ts';
export { RateLimiter } from './resilience/rate-limiter.ts';
export { redact } from './resilience/redact.ts';
export { PipelineRegistry } from './resilience/registry.ts';
export { Retry } from './resilience/retry.ts';
export { RetryBudget, type RetryBudgetSettings } from './resilience/retry-budget.ts';
export { SettingsError } from './resilience/settings.ts';
export { SingleFlight } from './resilience/single-flight.ts';
