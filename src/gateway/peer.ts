/**
 * @module
 * JSON-RPC over one link to an upstream: our own request ids and progress tokens, so that the
 * same ids of several clients never meet; cancellation, progress and trace context on the way
 * there; answers, notifications and questions of the upstream on the way back.
 */
import { type Context, context, diag } from '@opentelemetry/api';
import {
  CODE,
  cancelledId,
  isRequest,
  isResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  JsonRpcError,
  type RequestId,
} from '../mcp/jsonrpc.ts';
import { TransientMap } from '../resilience/transient.ts';
import { reasonOf, withMeta } from './peer-meta.ts';
import { PeerQuestions } from './peer-questions.ts';
import type { Json, Link, LinkEnd } from './types.ts';

/** One request as it is to be sent. */
export interface PeerRequest<Origin> {
  readonly method: string;
  readonly params?: Json | undefined;
  /** Aborted when nobody waits for the answer any more: the upstream is told. */
  readonly signal?: AbortSignal | undefined;
  /** Takes the params of progress notifications, the token left out. */
  readonly onProgress?: ((params: Json) => void) | undefined;
  /** On whose behalf: handed back with what the upstream says or asks meanwhile. */
  readonly origin?: Origin | undefined;
  /** Called with its id right before it is handed to the link. */
  readonly onSend?: ((id: number) => void) | undefined;
}

/** What a peer hands on. All of it may be set later, before messages come. */
export interface PeerHandlers<Origin> {
  /** Answers what the upstream asks; `ping` is answered here. Without it: -32601. */
  onrequest?:
    | ((
        method: string,
        params: Json | undefined,
        info: {
          readonly id: RequestId;
          readonly signal: AbortSignal;
          readonly origin: Origin | undefined;
        },
      ) => Promise<Json>)
    | undefined;
  /** Notifications other than progress and cancelled. */
  onnotification?:
    | ((method: string, params: Json | undefined, origin: Origin | undefined) => void)
    | undefined;
  /** Runs what sends a notification, in the context that it is to go out with. */
  onnotify?: ((method: string, send: () => void) => void) | undefined;
  /** The link is at its end. Called once, after everything that was asked has been rejected. */
  onend?: ((end: LinkEnd) => void) | undefined;
}

interface Pending<Origin> {
  readonly resolve: (result: Json) => void;
  readonly reject: (error: unknown) => void;
  readonly context: Context;
  readonly onProgress: PeerRequest<Origin>['onProgress'];
  readonly origin: Origin | undefined;
  readonly stop: () => void;
  /** The link has settled whether it could be sent. */
  delivered: boolean;
}

/** One end of a link, used as long as the link lives. */
export class Peer<Origin> implements PeerHandlers<Origin> {
  onrequest: PeerHandlers<Origin>['onrequest'];
  onnotification: PeerHandlers<Origin>['onnotification'];
  onnotify: PeerHandlers<Origin>['onnotify'];
  onend: PeerHandlers<Origin>['onend'];
  readonly #link: Link;
  readonly #failureOf: (end: LinkEnd) => Error;
  readonly #pending = new TransientMap<number, Pending<Origin>>();
  readonly #questions = new PeerQuestions((answer) => this.#send(answer));
  #lastId = 0;
  #end: LinkEnd | undefined;
  #ignored = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  /** @param failureOf makes the error for requests whose answer cannot come any more */
  constructor(link: Link, failureOf: (end: LinkEnd) => Error) {
    this.#link = link;
    this.#failureOf = failureOf;
    link.onmessage = (message, related) => this.#receive(message, related);
    link.onlost = (id, failure) => this.#settle(id)?.reject(failure);
    link.onend = (end) => this.#onEnd(end);
  }

  /** How the link ended; undefined while it lives. */
  get end(): LinkEnd | undefined {
    return this.#end;
  }

  /** Requests that wait for their answer. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Resolves when no request waits for its answer any more. */
  idle(): Promise<void> {
    if (this.#pending.size === 0) return Promise.resolve();
    this.#idle ??= Promise.withResolvers<void>();
    return this.#idle.promise;
  }

  /** Messages that nobody waited for: late answers, unknown ids and tokens, repeated requests. */
  get ignored(): number {
    return this.#ignored;
  }

  /**
   * Sends a request and waits for its `result`, which comes whole. Progress is always asked for.
   *
   * @throws JsonRpcError for an error response; LinkFailure when it could not be sent or its
   * answer was lost; what `failureOf` makes when the link came to its end; the signal's reason
   */
  request(request: PeerRequest<Origin>): Promise<Json> {
    const { method, params, signal, origin, onProgress, onSend } = request;
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#end) return Promise.reject(this.#failureOf(this.#end));
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise<Json>((resolve, reject) => {
      const onAbort = () => this.#cancel(id, method, signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      const pending: Pending<Origin> = {
        resolve,
        reject,
        context: context.active(),
        onProgress,
        origin,
        stop: () => signal?.removeEventListener('abort', onAbort),
        delivered: false,
      };
      this.#pending.set(id, pending);
      onSend?.(id);
      // The first request of a session is no place for extras that an old server may stumble on.
      const sent = withMeta(params, method === 'initialize' ? undefined : id);
      const message = { jsonrpc: '2.0', id, method, ...(sent && { params: sent }) };
      this.#link.send(message as JSONRPCMessage, signal).then(
        () => {
          pending.delivered = true;
        },
        (error: unknown) => this.#settle(id)?.reject(error),
      );
    });
  }

  /** Sends a notification; one that cannot be sent is dropped. */
  notify(method: string, params?: Json): void {
    if (this.#end) return;
    const send = () => {
      const sent = withMeta(params, undefined);
      this.#send({ jsonrpc: '2.0', method, ...(sent && { params: sent }) });
    };
    this.onnotify ? this.onnotify(method, send) : send();
  }

  #send(message: Json): void {
    this.#link.send(message as unknown as JSONRPCMessage).catch(() => {
      // Whoever it was for has gone.
    });
  }

  #cancel(id: number, method: string, reason: unknown): void {
    const pending = this.#settle(id);
    if (!pending) return;
    pending.reject(reason);
    // 2025-11-25, basic/utilities/cancellation: initialize must not be cancelled.
    if (method === 'initialize') return;
    const params = { requestId: id, reason: reasonOf(reason) };
    context.with(pending.context, () => this.notify('notifications/cancelled', params));
  }

  /** Takes a request that has come to its end out of those that wait. */
  #settle(id: unknown): Pending<Origin> | undefined {
    const pending = this.#find(id);
    if (!pending) return undefined;
    this.#pending.take(Number(id));
    pending.stop();
    if (this.#pending.size === 0) this.#idle?.resolve();
    return pending;
  }

  /** Some servers give ids and tokens back as text. */
  #find(id: unknown): Pending<Origin> | undefined {
    const isId = typeof id === 'number' || (typeof id === 'string' && id !== '');
    return isId ? this.#pending.get(Number(id)) : undefined;
  }

  #receive(message: JSONRPCMessage, related: RequestId | undefined): void {
    if (isResponse(message)) {
      const pending = this.#settle(message.id);
      if (!pending) this.#ignored += 1;
      else if ('error' in message) {
        const { code, message: text, data } = message.error;
        pending.reject(new JsonRpcError(code, text, data));
      } else pending.resolve(message.result as Json);
    } else if (isRequest(message)) {
      this.#serve(message, this.#related(related));
    } else if (message.method === 'notifications/progress') {
      this.#progress(message.params as Json | undefined);
    } else if (message.method === 'notifications/cancelled') {
      this.#questions.cancel(cancelledId(message), new Error('the upstream cancelled it'));
    } else {
      const pending = this.#related(related);
      const params = message.params as Json | undefined;
      this.#tell(pending, () => this.onnotification?.(message.method, params, pending?.origin));
    }
  }

  #progress(params: Json = {}): void {
    const { progressToken, ...progress } = params;
    const pending = this.#find(progressToken);
    if (!pending) this.#ignored += 1;
    else this.#tell(pending, () => pending.onProgress?.(progress));
  }

  /** In the context of the request it belongs to. What a listener throws is not the link's fault. */
  #tell(pending: Pending<Origin> | undefined, listener: () => void): void {
    try {
      pending ? context.with(pending.context, listener) : listener();
    } catch (error) {
      diag.error('a listener to an upstream threw', error);
    }
  }

  /**
   * The request of ours during which the upstream speaks. A link that cannot tell leaves no doubt
   * when there is only one.
   */
  #related(id: RequestId | undefined): Pending<Origin> | undefined {
    if (id !== undefined) return this.#find(id);
    return this.#pending.size === 1 ? this.#pending.values()[0] : undefined;
  }

  #serve(request: JSONRPCRequest, related: Pending<Origin> | undefined): void {
    const { id, method } = request;
    if (method === 'ping') {
      this.#send({ jsonrpc: '2.0', id, result: {} });
      return;
    }
    const ask = async (signal: AbortSignal): Promise<Json> => {
      if (!this.onrequest) throw new JsonRpcError(CODE.methodNotFound, `Unknown method: ${method}`);
      const info = { id, signal, origin: related?.origin };
      return this.onrequest(method, request.params as Json | undefined, info);
    };
    const answer = (signal: AbortSignal) =>
      related ? context.with(related.context, ask, undefined, signal) : ask(signal);
    if (!this.#questions.serve(id, answer)) this.#ignored += 1;
  }

  #onEnd(end: LinkEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#questions.cancelAll(() => this.#failureOf(end));
    const loseAll = (which: (pending: Pending<Origin>) => boolean) => {
      for (const id of this.#pending.keys()) {
        const pending = this.#pending.get(id);
        if (pending && which(pending)) this.#settle(id)?.reject(this.#failureOf(end));
      }
    };
    loseAll(({ delivered }) => delivered);
    // Of those that are on their way the link itself may know that they were never sent.
    if (this.#pending.size > 0) setImmediate(() => loseAll(() => true));
    this.onend?.(end);
  }
}
