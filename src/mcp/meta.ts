/**
 * @module
 * What a tool result says about itself under `_meta`: how it came about, and the structured
 * failure when there is one.
 */
/** `_meta` key of the structured failure: what a program reads where a model reads the text. */
export { FAILURE_KEY as META_FAILURE } from '../resilience/failure.ts';

/**
 * `_meta` key of the outcome, a `ToolOutcome`.
 *
 * @example
 * ```ts
 * import { META_OUTCOME, type ToolResult } from 'mcp-resilience';
 * const isCached = (result: ToolResult) => result._meta?.[META_OUTCOME] === 'cached';
 * ```
 */
export const META_OUTCOME = 'mcp-resilience/outcome';

/** Every value of `tool.outcome`. */
const TOOL_OUTCOMES = ['success', 'degraded', 'cached', 'error', 'rejected', 'cancelled'] as const;

/** How a tool call ended. */
export type ToolOutcome = (typeof TOOL_OUTCOMES)[number];

/** True for one of the six values, whoever sent it. */
export const isToolOutcome = (value: unknown): value is ToolOutcome =>
  (TOOL_OUTCOMES as readonly unknown[]).includes(value);
