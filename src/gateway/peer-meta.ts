/**
 * @module
 * What our requests carry beside what the client sent: our own trace context and progress token.
 */
import { context, propagation } from '@opentelemetry/api';
import type { Json } from './types.ts';

/** Longest reason of a cancellation that is sent on. */
const MAX_REASON = 200;

const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Why the signal aborted, in words. */
export const reasonOf = (reason: unknown): string =>
  (reason instanceof Error ? reason.message : String(reason)).slice(0, MAX_REASON);

/**
 * `_meta` as it is sent: everything that the client put into it, and our own trace context and
 * progress token in place of the client's. Baggage passes only where the context still has it
 * (see `instrumentTransport`), never as the client sent it: it may be meant for us alone.
 */
const metaOf = (params: Json | undefined, progressToken: number | undefined): Json => {
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  const { baggage: _, ...meta }: Record<string, unknown> = isJson(params?._meta)
    ? params._meta
    : {};
  // The client's state belongs to the client's parent, not to ours.
  if (carrier.traceparent !== undefined) delete meta.tracestate;
  return { ...meta, ...carrier, ...(progressToken !== undefined && { progressToken }) };
};

/**
 * `params` as they are sent; a copy, and as they came where there is nothing to add.
 *
 * @param token under which progress is asked for
 */
export const withMeta = (params: Json | undefined, token: number | undefined): Json | undefined => {
  const meta = metaOf(params, token);
  if (Object.keys(meta).length > 0) return { ...params, _meta: meta };
  if (params === undefined || !('_meta' in params)) return params;
  const { _meta: _, ...rest } = params;
  return rest;
};
