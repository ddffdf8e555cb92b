/**
 * @module
 * The requests of a client that are being answered, and which upstreams work on each: what an
 * upstream says or asks meanwhile belongs to one of them.
 */
import type { RequestId } from '../mcp/jsonrpc.ts';
import { TransientMap, TransientSet } from '../resilience/transient.ts';
import type { UpstreamRequest } from './types.ts';

/** One request of the client. */
export interface RunningRequest {
  readonly abort: AbortController;
  /** The client's own token, if it asked for progress. */
  readonly progressToken: unknown;
  readonly principal: string | undefined;
}

/** A request of the client that an upstream works on. */
interface Asked {
  readonly request: UpstreamRequest;
  readonly id: RequestId;
  readonly upstream: string;
}

const aborted = (reason: string): DOMException => new DOMException(reason, 'AbortError');

/** The running requests of one client session. */
export class RunningRequests {
  readonly #requests = new TransientMap<RequestId, RunningRequest>();
  readonly #asked = new TransientSet<Asked>();

  get(id: RequestId): RunningRequest | undefined {
    return this.#requests.get(id);
  }

  begin(id: RequestId, request: RunningRequest): void {
    this.#requests.set(id, request);
  }

  end(id: RequestId): void {
    this.#requests.take(id);
  }

  /** The client no longer wants the answer. */
  cancel(id: RequestId, reason: string): void {
    this.#requests.get(id)?.abort.abort(aborted(reason));
  }

  cancelAll(reason: string): void {
    for (const { abort } of this.#requests.values()) abort.abort(aborted(reason));
  }

  /** An upstream is asked for a request of the client. Returns what to call when that has ended. */
  asking(request: UpstreamRequest, id: RequestId, upstream: string): () => void {
    const place = this.#asked.add({ request, id, upstream });
    return () => this.#asked.leave(place);
  }

  /**
   * The request of the client to which something belongs that an upstream says: the one it
   * names, or the only one it works on. Of several nobody can tell (over stdio): undefined.
   */
  relatedTo(upstream: string, request: UpstreamRequest | undefined): RequestId | undefined {
    const named = request && this.#asked.values().find((asked) => asked.request === request);
    if (named) return named.id;
    const ids = this.#at(upstream);
    return ids.length === 1 ? ids[0] : undefined;
  }

  /** The one that an upstream was asked last, of those it works on. */
  latestAt(upstream: string): RequestId | undefined {
    return this.#at(upstream).at(-1);
  }

  #at(upstream: string): RequestId[] {
    return this.#asked
      .values()
      .filter((asked) => asked.upstream === upstream)
      .map(({ id }) => id);
  }
}
