/**
 * @module
 * `tool.duration`, recorded once for each call: by the transport, which sees all of it, where
 * the transport is one of ours; else by `protect`.
 */
import { type Attributes, type Context, context, createContextKey } from '@opentelemetry/api';
import { boundedCode } from '../telemetry/bounded-code.ts';
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

/** A failure code that somebody sent, as a metric may carry it; undefined when it is none. */
export const sentCode = (code: unknown): string | undefined =>
  typeof code === 'string' && code !== '' ? boundedCode(code) : undefined;

/**
 * Records one call.
 *
 * @param failure code of the failure, for outcomes that are one
 * @param marks of the injected fault that the call met
 */
export const recordToolDuration = (
  tool: string,
  seconds: number,
  outcome: ToolOutcome,
  failure: string,
  within: Context = context.active(),
  marks?: Attributes,
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
    ...marks,
  };
  instruments().toolDuration.record(seconds, attributes, within);
};
