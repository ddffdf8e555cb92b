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
  type JSONRPCNotification,
  type JSONRPCRequest,
  type MessageExtraInfo,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js';
import { type Attributes, context, SpanKind, trace } from '@opentelemetry/api';
import { TransientMap } from '../resilience/transient.ts';
import { faultHook, instruments } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import { innerId } from './inner-id.ts';
import { cancelledId, isCancelledByUs, isRequest, isResponse } from './jsonrpc.ts';
import { isNotable, withNotice } from './notice.ts';
import { type KnownNames, NETWORK, Operation } from './operation.ts';
import { type AskOptions, Questions } from './question.ts';
import { originsOf, traced } from './trace-meta.ts';

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
  readonly #served = new TransientMap<RequestId, Served>();
  readonly #questions = new Questions();
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

  send(message: JSONRPCMessage, options?: AskOptions): Promise<void> {
    const related = options?.relatedRequestId;
    const wireRelated = related === undefined ? undefined : this.#served.get(related)?.wireId;
    const wireOptions =
      wireRelated === undefined ? options : { ...options, relatedRequestId: wireRelated };
    if (isRequest(message)) return this.#ask(message, wireOptions, related);
    if (!isResponse(message)) return this.#tell(message, wireOptions);
    if (message.id === undefined) return this.#inner.send(message, wireOptions);
    const served = this.#served.take(message.id);
    if (!served) return this.#inner.send(message, wireOptions);
    const sent = this.#inner.send({ ...message, id: served.wireId }, wireOptions);
    if (served.isInitialize && 'result' in message) {
      const version = message.result.protocolVersion;
      if (typeof version === 'string') this.#initialized(version, served.operation);
    }
    served.operation.answered(message);
    return sent;
  }

  async #ask(
    request: JSONRPCRequest,
    options: AskOptions | undefined,
    related: RequestId | undefined,
  ): Promise<void> {
    const sent = this.#questions.ask(request, () => ({
      network: NETWORK[this.#options.network],
      sessionId: this.sessionId,
      protocolVersion: this.#protocolVersion,
      during: related === undefined ? undefined : this.#served.get(related)?.operation.context,
    }));
    try {
      await this.#inner.send(sent, options);
    } catch (error) {
      if (!options?.again) this.#questions.failed(request.id, error);
      throw error;
    }
  }

  /** Sends a notification. */
  #tell(message: JSONRPCNotification, options: TransportSendOptions | undefined): Promise<void> {
    const { method, params } = message;
    if (!isNotable(method)) return this.#inner.send(message, options);
    const cancelled = cancelledId(message);
    const asked =
      cancelled === undefined ? undefined : this.#questions.cancelled(cancelled, params?.reason);
    const active = context.active();
    const parent = trace.getSpan(active) ? active : (asked ?? active);
    const origins = () => ({ parent, links: [] });
    return withNotice(method, { ...this.#notice(SpanKind.CLIENT), origins }, () =>
      this.#inner.send(traced(message, context.active()), options),
    );
  }

  #initialized(version: string, operation: Operation): void {
    this.#protocolVersion = version;
    this.#sessionStarted ??= performance.now();
    operation.negotiated(version);
  }

  #receive(message: JSONRPCMessage, extra: ServedExtra | undefined): void {
    if (isRequest(message)) {
      this.#serve(message, extra);
    } else if (isResponse(message)) {
      this.#questions.answered(message);
      this.onmessage?.(message, extra);
    } else {
      this.#hear(message, extra);
    }
  }

  /** Takes a notification. */
  #hear(message: JSONRPCNotification, extra: ServedExtra | undefined): void {
    const cancelled = cancelledId(message);
    const id = cancelled === undefined ? undefined : innerId(cancelled);
    const operation = id === undefined ? undefined : this.#served.get(id)?.operation;
    const take = (): void => {
      if (id === undefined) {
        this.onmessage?.(message, extra);
        return;
      }
      operation?.cancelled();
      this.#served.take(id);
      const params = { ...message.params, requestId: id };
      this.onmessage?.({ ...message, params }, extra);
    };
    if (!isNotable(message.method) || isCancelledByUs(message)) {
      take();
      return;
    }
    // What is said of a call belongs to its trace.
    const origins = () =>
      context.with(operation?.context ?? context.active(), () =>
        originsOf(message.params, extra?.requestInfo?.headers, this.#options.baggage),
      );
    withNotice(message.method, { ...this.#notice(SpanKind.SERVER), origins }, take);
  }

  #notice<K extends SpanKind>(kind: K): { readonly kind: K; readonly attributes: Attributes } {
    const attributes: Attributes = { ...NETWORK[this.#options.network] };
    if (this.sessionId) attributes[semconv.ATTR_MCP_SESSION_ID] = this.sessionId;
    if (this.#protocolVersion) {
      attributes[semconv.ATTR_MCP_PROTOCOL_VERSION] = this.#protocolVersion;
    }
    return { kind, attributes };
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
      ...originsOf(request.params, extra?.requestInfo?.headers, baggage),
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
    this.#questions.close();
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
