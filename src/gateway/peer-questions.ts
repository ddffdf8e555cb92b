/**
 * @module
 * Requests of an upstream while they are being answered.
 */
import type { RequestId } from '../mcp/jsonrpc.ts';
import { TransientMap } from '../resilience/transient.ts';
import { serverError } from './peer-error.ts';
import type { Json } from './types.ts';

/** Answers each once, unless it is taken back. */
export class PeerQuestions {
  readonly #send: (answer: Json) => void;
  readonly #running = new TransientMap<RequestId, AbortController>();

  /** @param send hands a response to the link */
  constructor(send: (answer: Json) => void) {
    this.#send = send;
  }

  /**
   * Has a request answered. False for one whose id is that of a request that still runs: an answer
   * to the second would be taken for that to the first.
   */
  serve(id: RequestId, ask: (signal: AbortSignal) => Promise<Json>): boolean {
    if (this.#running.has(id)) return false;
    const controller = new AbortController();
    this.#running.set(id, controller);
    void this.#answer(id, controller.signal, ask);
    return true;
  }

  /** The upstream no longer wants to know; nothing for an id that is not known. */
  cancel(id: RequestId | undefined, reason: Error): void {
    if (id !== undefined) this.#running.get(id)?.abort(reason);
  }

  /** Nobody is there any more to be answered. */
  cancelAll(reason: () => Error): void {
    for (const controller of this.#running.values()) controller.abort(reason());
  }

  async #answer(
    id: RequestId,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<Json>,
  ): Promise<void> {
    const answer = await ask(signal).then(
      (result) => ({ result }),
      (error: unknown) => ({ error: serverError(error) }),
    );
    this.#running.take(id);
    if (!signal.aborted) this.#send({ jsonrpc: '2.0', id, ...answer });
  }
}
