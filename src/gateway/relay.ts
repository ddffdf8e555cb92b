/**
 * @module
 * One client session: JSON-RPC on the door's transport, and the upstreams behind it. No server of
 * the SDK stands in between; it would drop what it does not know. Messages pass whole.
 */
import { trace } from '@opentelemetry/api';
import {
  CODE,
  cancelledId,
  isRequest,
  isResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  JsonRpcError,
} from '../mcp/jsonrpc.ts';
import { principalOf } from '../mcp/principal.ts';
import type { AskOptions } from '../mcp/question.ts';
import type { Connectable, Transport } from '../mcp/server.ts';
import { classify } from '../resilience/failure.ts';
import { ATTR } from '../telemetry/signals.ts';
import { Catalog, type Source } from './catalog.ts';
import { isJson, LISTS } from './catalog-kinds.ts';
import { HEALTH_CHECK } from './health-tool.ts';
import { OwnCaller } from './own-context.ts';
import { withOwn } from './own-offer.ts';
import { ClientRequests, type SendToClient } from './relay-client.ts';
import type { RelayContext } from './relay-context.ts';
import { errorOf, failureError } from './relay-failure.ts';
import { clientFacts, introduceTogether, unknownClient } from './relay-initialize.ts';
import { relayListeners } from './relay-listeners.ts';
import { answer, type Call, type MethodSession } from './relay-methods.ts';
import { RelayNotifier } from './relay-notifier.ts';
import { RunningRequests } from './relay-running.ts';
import { RelaySources } from './relay-sources.ts';
import type { ClientFacts, Json, UpstreamRequest } from './types.ts';

type Extra = Parameters<NonNullable<Transport['onmessage']>>[1];

const GONE = 'the client has gone';

const ROOTS_CHANGED = 'notifications/roots/list_changed';

const reasonOf = (cancelled: JSONRPCMessage): string => {
  const reason = 'params' in cancelled ? cancelled.params?.reason : undefined;
  return typeof reason === 'string' && reason !== '' ? reason : 'the client cancelled the request';
};

/** One client and its upstreams. */
export class RelaySession implements Connectable {
  onerror?: ((error: Error) => void) | undefined;

  readonly #context: RelayContext;
  readonly #running = new RunningRequests();
  readonly #client: ClientRequests;
  readonly #notifier: RelayNotifier;
  readonly #methods: MethodSession;
  #transport: Transport | undefined;
  #sources: RelaySources | undefined;
  #facts: ClientFacts;
  readonly #stopListening: () => void;
  #initialized = false;
  #closed = false;
  readonly #caller: OwnCaller;

  constructor(context: RelayContext) {
    this.#context = context;
    this.#stopListening = context.onRenamed(() => {
      for (const { changed } of [LISTS.tools, LISTS.prompts]) this.#notifier.changed(changed);
    });
    this.#facts = unknownClient(context.gateway);
    this.#client = new ClientRequests((...how) => this.#send(...how), context.clock);
    this.#caller = new OwnCaller(this.#client, context.clock);
    this.#notifier = new RelayNotifier(context.clock, (method, params, related) => {
      const message = { jsonrpc: '2.0', method, ...(params && { params }) } as JSONRPCMessage;
      return this.#send(message, related).catch((error) => this.onerror?.(error));
    });
    const sources = (): readonly Source[] => this.#open().all;
    const { transparent, naming, own, onNames, onOwnName } = context;
    this.#methods = {
      context,
      sources,
      catalog: new Catalog({
        sources,
        transparent,
        naming,
        own: own?.lists,
        onOwnName,
        onNames,
      }),
      subscriptions: new Map(),
      logLevel: undefined,
      sessionId: () => this.#transport?.sessionId,
      contextOf: (call) =>
        this.#caller.contextOf(call, {
          ...this.#facts,
          principal: this.#running.get(call.id)?.principal,
          sessionId: this.#transport?.sessionId,
        }),
      request: (source, call, changed) => this.#request(source, call, changed),
    };
  }

  async connect(transport: Transport): Promise<void> {
    const { onclose, onerror } = transport;
    this.#transport = transport;
    transport.onmessage = (message, extra) => this.#receive(message, extra);
    transport.onerror = (error) => {
      onerror?.(error);
      this.onerror?.(error);
    };
    transport.onclose = () => {
      onclose?.();
      this.#end();
    };
    // Only faults end with a client that may come back.
    if (this.#context.chaos) Object.assign(transport, { onclientgone: () => this.#caller.gone() });
    await transport.start();
  }

  async close(): Promise<void> {
    await this.#transport?.close();
    this.#end();
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#caller.gone();
    this.#stopListening();
    this.#running.cancelAll(GONE);
    this.#client.end();
    this.#notifier.end();
    if (this.#sources) this.#context.onClosing(this.#sources.close());
  }

  #send(...[message, related, again]: Parameters<SendToClient>): Promise<void> {
    if (this.#closed || !this.#transport) return Promise.reject(new Error(GONE));
    const options: AskOptions | undefined =
      related === undefined && !again
        ? undefined
        : { ...(related !== undefined && { relatedRequestId: related }), ...(again && { again }) };
    return this.#transport.send(message, options);
  }

  #receive(message: JSONRPCMessage, extra: Extra): void {
    if (isRequest(message)) {
      void this.#serve(message, extra);
    } else if (isResponse(message)) {
      this.#client.answered(message);
    } else {
      const cancelled = cancelledId(message);
      if (cancelled !== undefined) this.#running.cancel(cancelled, reasonOf(message));
      else this.#notified(message.method, isJson(message.params) ? message.params : undefined);
    }
  }

  #notified(method: string, params: Json | undefined): void {
    if (method === 'notifications/initialized') {
      // The upstreams were told when their own sessions began.
      this.#notifier.begin();
    } else if (method === 'notifications/progress') {
      if (params) this.#client.progressed(params);
    } else if (method !== 'notifications/cancelled') {
      for (const { session, shared } of this.#sources?.all ?? []) {
        // A shared one was told of no roots: each client has its own.
        if (!shared || method !== ROOTS_CHANGED) session.notify(method, params);
      }
    }
  }

  async #serve(request: JSONRPCRequest, extra: Extra): Promise<void> {
    const { id, method } = request;
    const params = isJson(request.params) ? request.params : undefined;
    const meta = isJson(params?._meta) ? params._meta : undefined;
    const abort = new AbortController();
    this.#running.begin(id, {
      abort,
      progressToken: meta?.progressToken,
      principal: principalOf(extra?.authInfo),
    });
    let response: JSONRPCMessage;
    try {
      const result = await this.#answer({ id, method, params, signal: abort.signal });
      response = { jsonrpc: '2.0', id, result };
    } catch (error) {
      response = { jsonrpc: '2.0', id, error: errorOf(error) };
    } finally {
      this.#running.end(id);
    }
    // A request that was cancelled gets no answer.
    if (abort.signal.aborted || this.#closed) return;
    await this.#send(response, undefined).catch((error) => this.onerror?.(error));
  }

  #answer(call: Call): Promise<Json> | Json {
    if (call.method === 'ping') return {};
    if (call.method === 'initialize') return this.#initialize(call.params ?? {});
    // A client that asks for more is ready for what comes unasked.
    this.#notifier.begin();
    return answer(this.#methods, call);
  }

  async #initialize(params: Json): Promise<Json> {
    if (this.#initialized) {
      throw new JsonRpcError(CODE.invalidRequest, 'Invalid Request: initialized already');
    }
    // Opened by a try that failed, or for a client that had not introduced itself.
    if (this.#sources) this.#context.onClosing(this.#sources.close());
    this.#sources = undefined;
    this.#facts = clientFacts(params);
    const { transparent, strict, gateway, own } = this.#context;
    try {
      const introductions = await this.#open().introductions();
      const [first] = introductions;
      if (transparent && first?.result) {
        this.#initialized = true;
        return withOwn(first.result, own);
      }
      const absent = introductions.filter(({ result }) => !result).map(({ upstream }) => upstream);
      if (strict && absent.length > 0) {
        throw new JsonRpcError(
          CODE.internalError,
          `not reachable: ${absent.join(', ')}; every server must be there (strict)`,
        );
      }
      this.#initialized = true;
      const { own: entries } = this.#methods.catalog;
      const hasHealth = own?.lists.tools.some(({ name }) => name === HEALTH_CHECK);
      const health = hasHealth ? entries.shown('tools', HEALTH_CHECK) : undefined;
      return withOwn(introduceTogether(this.#facts, introductions, gateway, health), own);
    } catch (error) {
      throw error instanceof JsonRpcError ? error : failureError(classify(error));
    }
  }

  /** The upstream sessions; a client that has not introduced itself gets them as well. */
  #open(): RelaySources {
    if (!this.#sources) {
      const listeners = relayListeners({
        transparent: this.#context.transparent,
        running: this.#running,
        notifier: this.#notifier,
        client: this.#client,
        methods: this.#methods,
        capabilities: () => this.#facts.capabilities,
      });
      const anybody = unknownClient(this.#context.gateway);
      this.#sources = new RelaySources(this.#context, listeners, this.#facts, anybody);
      // A request may be on its way here while its client leaves.
      if (this.#closed) this.#context.onClosing(this.#sources.close());
    }
    return this.#sources;
  }

  async #request(
    source: Source,
    { id, method, params, signal }: Call,
    changed: Parameters<MethodSession['request']>[2],
  ): Promise<Json> {
    const { progressToken, principal } = this.#running.get(id) ?? {};
    const onProgress = (progress: Json): void => {
      if (signal.aborted || !this.#running.get(id)) return;
      this.#notifier.send('notifications/progress', { ...progress, progressToken }, id);
    };
    const request: UpstreamRequest = {
      method,
      params,
      ...changed,
      signal,
      ...(progressToken !== undefined && { onProgress }),
      principal,
    };
    trace.getActiveSpan()?.setAttribute(ATTR.upstreamName, source.name);
    const ended = this.#running.asking(request, id, source.name);
    try {
      return await source.session.request(request);
    } finally {
      ended();
    }
  }
}
