/**
 * @module
 * One request to an upstream, sent over whatever connection there is, and once more into a new one
 * where the upstream has surely not looked at it.
 */
import { JsonRpcError } from '../mcp/jsonrpc.ts';
import type { CallContext } from '../resilience/attempt.ts';
import { classify } from '../resilience/failure.ts';
import { faultHook } from '../telemetry/instruments.ts';
import type { ClientOperation } from './client-operation.ts';
import type { ToolGuard } from './tool-guard.ts';
import type { Json, UpstreamRequest } from './types.ts';
import type { Channel } from './upstream-channel.ts';
import type { Connection } from './upstream-connection.ts';
import {
  isLinkFailure,
  isSessionLost,
  isUnreachable,
  refusesSession,
  upstreamError,
} from './upstream-failure.ts';
import type { UpstreamHost } from './upstream-host.ts';
import { isRepeatable } from './upstream-tools.ts';

/** What a request is known by while it runs. */
export interface Renewable {
  /** Its idle timeout begins anew. */
  renew: () => void;
}

/** Where a request is made. */
export interface RequestSite<Origin extends Renewable> {
  readonly host: UpstreamHost<Origin>;
  readonly channel: Channel<Origin>;
  readonly guard: ToolGuard | undefined;
  readonly origin: Origin;
}

/** An error response is an answer too: the upstream is there, and has spoken. */
export type Answer = { readonly result: Json } | { readonly error: JsonRpcError };

/** Methods by which a client only looks around: a connection is good for more than these. */
const LOOKING_AROUND = /^(?:ping|initialize|.*\/list)$/;

/** Code of an error which says that the request was not even dispatched. */
const INVALID_REQUEST = -32600;

/** The one request, which may take several attempts, each of which sends it at least once. */
export class UpstreamCall<Origin extends Renewable> {
  readonly #site: RequestSite<Origin>;
  readonly #request: UpstreamRequest;
  readonly #operation: ClientOperation;
  readonly repeatable: boolean;
  /** How often it was sent without that we know that the upstream did not look at it. */
  #sent = 0;

  constructor(site: RequestSite<Origin>, request: UpstreamRequest, operation: ClientOperation) {
    this.#site = site;
    this.#request = request;
    this.#operation = operation;
    this.repeatable = isRepeatable(site.host.config, request);
  }

  /** It may have been executed. */
  get handed(): boolean {
    return this.#sent > 0;
  }

  /** What the pipeline calls for each attempt. */
  readonly attempt = async (call: CallContext): Promise<Answer> => {
    const { channel, host } = this.#site;
    for (let replayed = false; ; replayed = true) {
      const connection = await channel.connected(call.signal);
      // Waiting for the connection was not the upstream's silence.
      call.renew();
      try {
        const result = await this.#send(connection, call);
        this.#useful(connection);
        return { result };
      } catch (error) {
        call.signal.throwIfAborted();
        if (!connection.live) faultHook()?.adopt(connection);
        if (error instanceof JsonRpcError) {
          if (!this.#isLost(connection, error)) this.#useful(connection);
          else if (!replayed && (this.repeatable || error.code === INVALID_REQUEST)) {
            this.#sent -= 1;
            continue;
          }
          return { error };
        }
        const again = this.#mayGoAgain(connection, error);
        if (again || (isLinkFailure(error) && error.delivery === 'not-sent')) this.#sent -= 1;
        if (!again || replayed) {
          throw upstreamError(host.config, error, () => host.clock.wallTime());
        }
      }
    }
  };

  #useful(connection: Connection<Origin>): void {
    if (LOOKING_AROUND.test(this.#request.method)) return;
    connection.useful = true;
    this.#site.host.gate.useful();
  }

  /** The answer says that the session is gone: it is replaced. */
  #isLost(connection: Connection<Origin>, error: JsonRpcError): boolean {
    if (connection.facts.sessionId === undefined || !refusesSession(error)) return false;
    this.#site.channel.evict(connection, error.message);
    return true;
  }

  /** The connection is of no use, and the upstream has surely not looked at the request. */
  #mayGoAgain(connection: Connection<Origin>, error: unknown): boolean {
    const { channel, host } = this.#site;
    if (isSessionLost(error, connection.facts.sessionId)) {
      channel.evict(connection, 'it has forgotten it');
      return true;
    }
    if (!isLinkFailure(error) || error.delivery !== 'not-sent') return false;
    if (host.config.address.kind === 'stdio') {
      connection.doom(host.clock);
      return true;
    }
    if (isUnreachable(error)) connection.suspend(classify(error).message);
    return false;
  }

  #send(connection: Connection<Origin>, call: CallContext): Promise<Json> {
    const { method, params, onProgress } = this.#request;
    const { origin } = this.#site;
    this.#sent += 1;
    origin.renew = () => call.renew();
    return connection.peer.request({
      method,
      params,
      signal: call.signal,
      origin,
      onSend: (id) => this.#operation.sent(id, connection.facts.sessionId),
      onProgress: (progress) => {
        call.renew();
        onProgress?.(progress);
      },
    });
  }
}
