/**
 * @module
 * `tool.duration`, recorded once for each call: by the transport, which sees all of it, where
 * the transport is one of ours; else by `protect`.
 */
import { type Context, context, createContextKey } from '@opentelemetry/api';
import { instruments } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import { ATTR } from '../telemetry/signals.ts';
import type { ToolOutcome } from './meta.ts';

const SERVED = createContextKey('mcp-resilience served by an instrumented transport');

/** Context of a request whose duration the transport records. */
export const markServed = (parent: Context): Context => parent.setValue(SERVED, true);

/** Whether nobody else will record the duration of the tool call that we are inside of. */
export const recordsOwnDuration = (): boolean =>
  instruments().enabled && context.active().getValue(SERVED) !== true;

/** Failure codes kept apart in metrics: those of a classifier, or of an upstream, are not bounded. */
const MAX_FAILURE_CODES = 100;
const failureCodes = new Set<string>();

/** The code as a metric may carry it: `_other` beyond the first hundred. */
export const boundedCode = (code: unknown): string | undefined => {
  if (typeof code !== 'string' || code === '') return undefined;
  if (failureCodes.has(code)) return code;
  if (failureCodes.size >= MAX_FAILURE_CODES || code.length > 64) return semconv.VALUE_OTHER;
  failureCodes.add(code);
  return code;
};

/**
 * Records one call.
 *
 * @param failure code of the failure, for outcomes that are one
 */
export const recordToolDuration = (
  tool: string,
  seconds: number,
  outcome: ToolOutcome,
  failure: string,
  within: Context = context.active(),
): void => {
  const errorType =
    outcome === 'cancelled'
      ? 'cancelled'
      : outcome === 'error' || outcome === 'rejected'
        ? failure
        : undefined;
  const attributes = {
    [semconv.ATTR_GEN_AI_TOOL_NAME]: tool,
    [ATTR.toolOutcome]: outcome,
    ...(errorType && { [semconv.ATTR_ERROR_TYPE]: errorType }),
  };
  instruments().toolDuration.record(seconds, attributes, within);
};
