/**
 * @module
 * Telemetry of everything we serve, at the transport: whatever server stands behind it, each
 * request gets a span, its durations are recorded, and its handler runs with the span active.
 */
import type {
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  type JSONRPCMessage,
  type JSONRPCRequest,
  type MessageExtraInfo,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js';
import { type Context, context, propagation, type TextMapGetter, trace } from '@opentelemetry/api';
import { faultHook, instruments } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import { cancelledId, isRequest, isResponse } from './jsonrpc.ts';
import { type KnownNames, Operation } from './operation.ts';

/** What our HTTP door tells about a message beyond what the SDK asks for. */
export interface ServedExtra extends MessageExtraInfo {
  /** Who sent it. */
  readonly client?: { readonly address: string; readonly port?: number };
}

/** Settings of `instrumentTransport`. */
export interface InstrumentOptions {
  /** `pipe` for stdio, `tcp` for HTTP. */
  readonly network: 'pipe' | 'tcp';
  /** Names that exist; without it every tool is recorded as `_other`. May be alive. */
  readonly known?: KnownNames;
  /** False where a connection is no session: its duration is not recorded. Default true. */
  readonly sessions?: boolean;
  /**
   * True keeps the client's baggage in the context of its calls, from where HTTP
   * instrumentation would send it on to every upstream. Default false.
   */
  readonly baggage?: boolean;
}

// The carrier is the peer's: only strings are taken from it.
const getter: TextMapGetter<Readonly<Record<string, unknown>>> = {
  keys: (carrier) => Object.keys(carrier),
  get: (carrier, key) => {
    const value = carrier[key];
    return typeof value === 'string' ? value : undefined;
  },
};

const extract = (base: Context, carrier: unknown): Context => {
  if (typeof carrier !== 'object' || carrier === null) return base;
  try {
    return propagation.extract(base, carrier as Record<string, unknown>, getter);
  } catch {
    return base;
  }
};

/**
 * Parent and links of a request's span: the context in `params._meta` is the parent, and the
 * ambient span (the HTTP server's) is linked (mcp.md, "Context propagation"; SEP-414). Without
 * one in `_meta` the ambient span is the parent, and without that the HTTP headers are asked,
 * so that a trace goes on where no HTTP instrumentation is loaded.
 */
const parentOf = (request: JSONRPCRequest, extra: MessageExtraInfo | undefined, keep: boolean) => {
  const ambient = context.active();
  const ambientSpan = trace.getSpanContext(ambient);
  const bare = trace.deleteSpan(ambient);
  const fromMeta = extract(bare, request.params?._meta);
  let parent = fromMeta;
  let links: { context: NonNullable<typeof ambientSpan> }[] = [];
  if (trace.getSpanContext(fromMeta)) {
    links = ambientSpan ? [{ context: ambientSpan }] : [];
  } else {
    parent = ambientSpan ? ambient : extract(bare, extra?.requestInfo?.headers);
  }
  return { parent: keep ? parent : propagation.deleteBaggage(parent), links };
};

/**
 * The SDK (1.32.2) ignores the cancellation of a request whose id is 0 or "" (it asks whether
 * the id is truthy). Inside, such ids get another form; ids that look like it get it as well,
 * so that no two ids ever become one.
 */
const innerId = (id: RequestId): RequestId =>
  id === 0 || (typeof id === 'string' && (id === '' || id.startsWith('#')))
    ? `#${typeof id}:${id}`
    : id;

interface Served {
  readonly wireId: RequestId;
  readonly operation: Operation;
  readonly isInitialize: boolean;
}

class InstrumentedTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport['onmessage'];

  readonly #inner: Transport;
  readonly #options: InstrumentOptions;
  readonly #served = new Map<RequestId, Served>();
  #protocolVersion: string | undefined;
  #sessionStarted: number | undefined;
  #closed = false;

  constructor(inner: Transport, options: InstrumentOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  /** Of transports that notice when a client has gone without a word. */
  set onclientgone(listener: () => void) {
    Object.assign(this.#inner, { onclientgone: listener });
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version);
  }

  start(): Promise<void> {
    this.#inner.onmessage = (message, extra) => this.#receive(message, extra);
    this.#inner.onclose = () => this.#onClose();
    this.#inner.onerror = (error) => this.onerror?.(error);
    return this.#inner.start();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const related = options?.relatedRequestId;
    const wireRelated = related === undefined ? undefined : this.#served.get(related)?.wireId;
    const wireOptions =
      wireRelated === undefined ? options : { ...options, relatedRequestId: wireRelated };
    if (!isResponse(message) || message.id === undefined) {
      return this.#inner.send(message, wireOptions);
    }
    const served = this.#served.get(message.id);
    if (!served) return this.#inner.send(message, wireOptions);
    this.#served.delete(message.id);
    const sent = this.#inner.send({ ...message, id: served.wireId }, wireOptions);
    if (served.isInitialize && 'result' in message) {
      const version = message.result.protocolVersion;
      if (typeof version === 'string') this.#initialized(version, served.operation);
    }
    served.operation.answered(message);
    return sent;
  }

  #initialized(version: string, operation: Operation): void {
    this.#protocolVersion = version;
    this.#sessionStarted ??= performance.now();
    operation.negotiated(version);
  }

  #receive(message: JSONRPCMessage, extra: ServedExtra | undefined): void {
    const cancelled = cancelledId(message);
    if (cancelled !== undefined) {
      const id = innerId(cancelled);
      this.#served.get(id)?.operation.cancelled();
      this.#served.delete(id);
      const params = { ...(message as { params?: object }).params, requestId: id };
      this.onmessage?.({ ...message, params } as JSONRPCMessage, extra);
    } else if (isRequest(message)) {
      this.#serve(message, extra);
    } else {
      this.onmessage?.(message, extra);
    }
  }

  #serve(request: JSONRPCRequest, extra: ServedExtra | undefined): void {
    const { known = {}, network, baggage = false } = this.#options;
    const header = extra?.requestInfo?.headers['mcp-protocol-version'];
    const asked = SUPPORTED_PROTOCOL_VERSIONS.find((version) => version === header);
    const operation = new Operation(request, {
      known,
      network,
      sessionId: this.sessionId,
      protocolVersion: this.#protocolVersion ?? asked,
      client: extra?.client,
      ...parentOf(request, extra, baggage),
    });
    const id = innerId(request.id);
    const isInitialize = request.method === 'initialize';
    this.#served.set(id, { wireId: request.id, operation, isInitialize });
    const inner = id === request.id ? request : { ...request, id };
    const faults = faultHook();
    const handle = () => this.onmessage?.(inner, extra);
    context.with(operation.context, faults ? () => faults.enter(operation, handle) : handle);
  }

  #onClose(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { operation } of this.#served.values()) operation.cancelled();
    this.#served.clear();
    const { sessions = true, network } = this.#options;
    if (sessions && this.#sessionStarted !== undefined) {
      const seconds = (performance.now() - this.#sessionStarted) / 1_000;
      instruments().serverSessionDuration.record(seconds, {
        ...(this.#protocolVersion && {
          [semconv.ATTR_MCP_PROTOCOL_VERSION]: this.#protocolVersion,
        }),
        ...(network === 'tcp' && { [semconv.ATTR_NETWORK_PROTOCOL_NAME]: 'http' }),
      });
    }
    this.onclose?.();
  }
}

/**
 * Puts telemetry around a server's transport; connect the server to what it returns.
 *
 * @example
 * ```ts
 * await server.connect(instrumentTransport(transport, { network: 'pipe', known: { tools } }));
 * ```
 */
export const instrumentTransport = (inner: Transport, options: InstrumentOptions): Transport =>
  new InstrumentedTransport(inner, options);
