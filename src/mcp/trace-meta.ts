/**
 * @module
 * Trace context in `params._meta` of messages (mcp.md, "Context propagation"; SEP-414): taken from
 * what comes, and put into what goes out.
 */
import {
  type Context,
  context,
  type Link,
  propagation,
  type TextMapGetter,
  trace,
} from '@opentelemetry/api';
import { isObject } from './jsonrpc-check.ts';

type Params = Readonly<Record<string, unknown>>;

// The carrier is the peer's: only strings are taken from it.
const getter: TextMapGetter<Params> = {
  keys: (carrier) => Object.keys(carrier),
  get: (carrier, key) => {
    const value = carrier[key];
    return typeof value === 'string' ? value : undefined;
  },
};

const extract = (base: Context, carrier: unknown): Context => {
  if (!isObject(carrier)) return base;
  try {
    return propagation.extract(base, carrier, getter);
  } catch {
    return base;
  }
};

/** Of what a span is the child, and what it is linked to. */
export interface Origins {
  readonly parent: Context;
  readonly links: Link[];
}

/**
 * Parent and links of the span of a message that came: the context in `params._meta` is the
 * parent, and the ambient span (the HTTP server's) is linked. Without one in `_meta` the ambient
 * span is the parent, and without that the HTTP headers are asked, so that a trace goes on where no
 * HTTP instrumentation is loaded.
 *
 * @param keepBaggage false drops the sender's baggage, which would else be sent on to every upstream
 */
export const originsOf = (
  params: unknown,
  headers: unknown = undefined,
  keepBaggage = false,
): Origins => {
  const ambient = context.active();
  const ambientSpan = trace.getSpanContext(ambient);
  const bare = trace.deleteSpan(ambient);
  const fromMeta = extract(bare, isObject(params) ? params._meta : undefined);
  let parent = fromMeta;
  let links: Link[] = [];
  if (trace.getSpanContext(fromMeta)) {
    links = ambientSpan ? [{ context: ambientSpan }] : [];
  } else {
    parent = ambientSpan ? ambient : extract(bare, headers);
  }
  return { parent: keepBaggage ? parent : propagation.deleteBaggage(parent), links };
};

/**
 * `_meta` as it is sent on: everything that its sender put into it, and the trace context of
 * `within` in place of the sender's. Baggage passes only where the context still has it (see
 * `instrumentTransport`), never as it came: it may be meant for us alone. A new object.
 */
export const tracedMeta = (given: unknown, within: Context): Record<string, unknown> => {
  const carrier: Record<string, string> = {};
  propagation.inject(within, carrier);
  const { baggage: _, ...meta }: Record<string, unknown> = isObject(given) ? given : {};
  // The sender's state belongs to the sender's parent, not to ours.
  if (carrier.traceparent !== undefined) delete meta.tracestate;
  return Object.assign(meta, carrier);
};

/** A message with the trace context of `within`; itself where there is nothing to put into it. */
export const traced = <M extends { readonly params?: unknown }>(message: M, within: Context): M => {
  const params = isObject(message.params) ? message.params : undefined;
  const meta = tracedMeta(params?._meta, within);
  if (params?._meta === undefined && Object.keys(meta).length === 0) return message;
  return { ...message, params: { ...params, _meta: meta } };
};
