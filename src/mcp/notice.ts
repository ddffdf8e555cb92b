/**
 * @module
 * Spans of notifications, sent and received: of those that tell of a turn of events, and are few.
 * The others have none. Progress, log messages and updates of resources can come by the thousand,
 * and belong to a request that has a span; `initialized` is the second half of `initialize`. No
 * notification has a duration: it is over when it is written, and would only stand for requests
 * that were fast.
 */
import { type Attributes, context, type SpanKind, trace } from '@opentelemetry/api';
import { tracer } from '../telemetry/instruments.ts';
import { NOTABLE, termsOf } from './operation-terms.ts';
import type { Origins } from './trace-meta.ts';

/** How a notification goes, and where. */
export interface NoticeFacts {
  readonly kind: SpanKind.CLIENT | SpanKind.SERVER;
  /** Attributes of the connection. */
  readonly attributes: Attributes;
  /** Asked only if there is to be a span. */
  readonly origins: () => Origins;
}

/** Whether a notification has a span. */
export const isNotable = (method: string): boolean => NOTABLE.has(method);

/** Sends a notification, or takes it, with its span active if it has one. */
export const withNotice = <T>(method: string, facts: NoticeFacts, run: () => T): T => {
  if (!isNotable(method)) return run();
  const { kind, attributes: given, origins } = facts;
  const { parent, links } = origins();
  const { spanName, attributes } = termsOf({ method }, {}, given, undefined);
  const span = tracer().startSpan(spanName, { kind, attributes, links }, parent);
  try {
    return context.with(trace.setSpan(parent, span), run);
  } finally {
    span.end();
  }
};
