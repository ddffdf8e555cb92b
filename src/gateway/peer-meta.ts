/**
 * @module
 * What our requests carry beside what the client sent: our own trace context and progress token.
 */
import { context } from '@opentelemetry/api';
import { tracedMeta } from '../mcp/trace-meta.ts';
import type { Json } from './types.ts';

/** Longest reason of a cancellation that is sent on. */
const MAX_REASON = 200;

/** Why the signal aborted, in words. */
export const reasonOf = (reason: unknown): string =>
  (reason instanceof Error ? reason.message : String(reason)).slice(0, MAX_REASON);

/**
 * `params` as they are sent; a copy, and as they came where there is nothing to add.
 *
 * @param token under which progress is asked for
 */
export const withMeta = (params: Json | undefined, token: number | undefined): Json | undefined => {
  const meta = tracedMeta(params?._meta, context.active());
  if (token !== undefined) meta.progressToken = token;
  if (Object.keys(meta).length > 0) return { ...params, _meta: meta };
  if (params === undefined || !('_meta' in params)) return params;
  const { _meta: _, ...rest } = params;
  return rest;
};
