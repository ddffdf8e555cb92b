/**
 * @module
 * What became of a protected call, as a tool result: failures in words and in structure, cached
 * and lesser answers marked as such.
 */
import { describe } from '../resilience/describe.ts';
import { type Failure, failureToJSON } from '../resilience/failure.ts';
import type { Outcome } from '../resilience/pipeline.ts';
import { META_FAILURE, META_OUTCOME, type ToolOutcome } from './meta.ts';
import type { ToolResult } from './tool.ts';

/** Codes of calls that our own policies turned away before anything was sent. */
const REJECTIONS: ReadonlySet<string> = new Set([
  'CIRCUIT_OPEN',
  'RATE_LIMIT_EXCEEDED',
  'BULKHEAD_FULL',
]);

/**
 * A failure as a tool result: `isError: true`, the text of `describe` for the model, and for
 * programs the structured failure and the outcome under `_meta`.
 *
 * @example
 * ```ts
 * import { classify, failureResult } from 'mcp-resilience';
 * const result = failureResult(classify(new Response(null, { status: 503 })));
 * result.isError; // true
 * ```
 */
export const failureResult = (failure: Failure): ToolResult => ({
  isError: true,
  content: [{ type: 'text', text: describe(failure) }],
  _meta: {
    [META_FAILURE]: failureToJSON(failure),
    [META_OUTCOME]: REJECTIONS.has(failure.code) ? 'rejected' : 'error',
  },
});

/** `tool.outcome` of a call. */
export const toolOutcome = (outcome: Outcome<ToolResult>): ToolOutcome => {
  if (!outcome.ok) {
    return REJECTIONS.has(outcome.failure.code) ? 'rejected' : 'error';
  }
  if (outcome.source === 'call') return outcome.value.isError === true ? 'error' : 'success';
  return outcome.failure === undefined ? 'cached' : 'degraded';
};

/** The result to answer with. */
export const toResult = (outcome: Outcome<ToolResult>): ToolResult => {
  if (!outcome.ok) return failureResult(outcome.failure);
  const { value, source, failure } = outcome;
  if (source === 'call') {
    return outcome.cachedUntil === undefined
      ? value
      : withMeta(value, { from_cache: false, cached_until: isoTime(outcome.cachedUntil) });
  }
  const lesser = failure !== undefined;
  const age = Math.round((outcome.age ?? 0) / 1000);
  const meta = {
    [META_OUTCOME]: toolOutcome(outcome),
    ...(source !== 'fallback' && {
      from_cache: true,
      age_seconds: age,
      cached_until: isoTime(outcome.cachedUntil ?? 0),
    }),
    ...(lesser && {
      degraded: true,
      reason: `${failure.code}: ${failure.message}`,
      [META_FAILURE]: failureToJSON(failure),
    }),
  };
  const note = lesser
    ? source === 'fallback'
      ? `Note: this is a substitute, not a live answer, because the call failed: [${failure.code}] ${failure.message}`
      : `Note: this answer is ${age} s old; a new one could not be had: [${failure.code}] ${failure.message}`
    : undefined;
  return withMeta(value, meta, note);
};

const withMeta = (
  result: ToolResult,
  meta: Readonly<Record<string, unknown>>,
  note?: string,
): ToolResult => ({
  ...result,
  ...(note && { content: [...(result.content ?? []), { type: 'text', text: note }] }),
  _meta: { ...result._meta, ...meta },
});

const isoTime = (time: number): string => new Date(time).toISOString();
