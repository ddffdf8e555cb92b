/**
 * @module
 * What upstreams ask the client of a session (sampling, elicitation, roots), and its answers on
 * their way back. Ids and progress tokens are ours, so that those of two upstreams never meet.
 */
import { CODE, type JSONRPCMessage, JsonRpcError, type RequestId } from '../mcp/jsonrpc.ts';
import { type Clock, sleep } from '../resilience/clock.ts';
import { TransientMap } from '../resilience/transient.ts';
import { isJson } from './catalog-kinds.ts';
import type { Json } from './types.ts';

/**
 * Sends a message to the client, on the stream of a running request where one is named.
 *
 * @param again it will be tried once more if this fails
 */
export type SendToClient = (
  message: JSONRPCMessage,
  related: RequestId | undefined,
  again?: boolean,
) => Promise<void>;

/** How the client is asked. */
export interface AskOptions {
  /** Aborted when the upstream no longer wants to know. */
  readonly signal: AbortSignal;
  /** The request of the client during which it is asked. */
  readonly related: RequestId | undefined;
  /** Another request on whose stream it can be asked, where it is not known which one it is. */
  readonly otherwise: () => RequestId | undefined;
  /** Takes the params of progress notifications, with the token that the upstream gave. */
  readonly onProgress: (params: Json) => void;
}

interface Pending {
  readonly resolve: (result: Json) => void;
  readonly reject: (error: unknown) => void;
  readonly onProgress: AskOptions['onProgress'];
  readonly token: unknown;
}

/** The capability that a client must have declared to be asked (2025-11-25, client). */
const NEEDED: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

/**
 * Milliseconds between two tries, and tries, to reach a client over HTTP: it opens its stream
 * for what servers ask only after it has been initialised, and until then there is no way to it.
 */
const STREAM_WAIT = 100;
const STREAM_TRIES = 20;

const NOT_CONNECTED = 'the client has gone';

/** Why the client cannot be asked; undefined when it can. */
export const cannotAsk = (method: string, capabilities: Json): JsonRpcError | undefined => {
  const needed = Object.hasOwn(NEEDED, method) ? NEEDED[method] : undefined;
  if (needed === undefined || Object.hasOwn(capabilities, needed)) return undefined;
  return new JsonRpcError(
    CODE.methodNotFound,
    `the client has not declared the capability "${needed}", so that it cannot be asked ${method}`,
  );
};

/** The requests that wait for an answer of the client. */
export class ClientRequests {
  readonly #send: SendToClient;
  readonly #clock: Clock;
  readonly #pending = new TransientMap<RequestId, Pending>();
  #lastId = 0;
  #ended = false;

  constructor(send: SendToClient, clock: Clock) {
    this.#send = send;
    this.#clock = clock;
  }

  /** How many wait. */
  get size(): number {
    return this.#pending.size;
  }

  /**
   * Asks the client.
   *
   * @throws JsonRpcError as the client answered, or when there is no way to it
   */
  async ask(method: string, params: Json | undefined, options: AskOptions): Promise<Json> {
    if (this.#ended) throw new JsonRpcError(CODE.internalError, NOT_CONNECTED);
    const { signal, related, otherwise, onProgress } = options;
    signal.throwIfAborted();
    this.#lastId += 1;
    const id = this.#lastId;
    const meta = isJson(params?._meta) ? params._meta : undefined;
    const token = meta?.progressToken;
    const asked =
      token === undefined ? params : { ...params, _meta: { ...meta, progressToken: id } };
    const message = {
      jsonrpc: '2.0',
      id,
      method,
      ...(asked && { params: asked }),
    } as JSONRPCMessage;
    const answer = new Promise<Json>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, onProgress, token });
    });
    const onAbort = (): void => {
      this.#pending.take(id)?.reject(signal.reason);
      const reason = signal.reason instanceof Error ? signal.reason.message : 'cancelled';
      const cancelled = { requestId: id, reason };
      this.#send(
        { jsonrpc: '2.0', method: 'notifications/cancelled', params: cancelled },
        related,
      ).catch(() => {});
    };
    signal.addEventListener('abort', onAbort, { once: true });
    this.#deliver(id, message, related, otherwise).catch((error: unknown) => {
      const text = error instanceof Error ? error.message : String(error);
      this.#pending.take(id)?.reject(new JsonRpcError(CODE.internalError, text));
    });
    try {
      return await answer;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Takes an answer of the client; one that nobody waits for is ignored. */
  answered(message: JSONRPCMessage): void {
    if ('method' in message || message.id === undefined) return;
    const pending = this.#pending.take(message.id);
    if (!pending) return;
    if ('error' in message) {
      const { code, message: text, data } = message.error;
      pending.reject(new JsonRpcError(code, text, data));
    } else {
      pending.resolve(message.result as Json);
    }
  }

  /** Takes a progress notification of the client. */
  progressed(params: Json): void {
    const pending = this.#pending.get(params.progressToken as RequestId);
    if (pending?.token === undefined) return;
    pending.onProgress({ ...params, progressToken: pending.token });
  }

  /** The client has gone: nothing will be answered any more. */
  end(): void {
    this.#ended = true;
    for (const id of this.#pending.keys()) {
      this.#pending.take(id)?.reject(new JsonRpcError(CODE.internalError, NOT_CONNECTED));
    }
  }

  async #deliver(
    id: RequestId,
    message: JSONRPCMessage,
    related: RequestId | undefined,
    otherwise: AskOptions['otherwise'],
  ): Promise<void> {
    for (let tries = 1; this.#pending.has(id); tries += 1) {
      // What belongs to a request goes to its stream, which is there or never will be.
      const again = related === undefined && tries < STREAM_TRIES;
      try {
        // The stream of another request comes second: it has to be there by chance.
        await this.#send(message, related ?? (tries > 1 ? otherwise() : undefined), again);
        return;
      } catch (error) {
        if (!again) throw error;
        if (otherwise() === undefined || tries > 1) await sleep(this.#clock, STREAM_WAIT);
      }
    }
  }
}
