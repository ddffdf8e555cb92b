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

/**
 * How a tool call ended: `success` and `error` are the answer of the tool; `cached` is a kept one,
 * `degraded` a lesser one because the call failed; `rejected` was turned away by our own policies,
 * `cancelled` given up by the client. Telemetry has it as `tool.outcome`; `_meta` does not name it
 * where the answer is the tool's own.
 *
 * @example
 * ```ts
 * import { META_OUTCOME, type ToolOutcome, type ToolResult } from 'mcp-resilience';
 * const oldOrLesser: readonly ToolOutcome[] = ['cached', 'degraded'];
 * const isOldOrLesser = ({ _meta }: ToolResult) =>
 *   oldOrLesser.includes(_meta?.[META_OUTCOME] as ToolOutcome);
 * ```
 */
export type ToolOutcome = (typeof TOOL_OUTCOMES)[number];

/** True for one of the six values, whoever sent it. */
export const isToolOutcome = (value: unknown): value is ToolOutcome =>
  (TOOL_OUTCOMES as readonly unknown[]).includes(value);
