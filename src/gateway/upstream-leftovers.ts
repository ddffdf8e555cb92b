/**
 * @module
 * What is left of the connections that a channel had before: sessions that may still answer what
 * they were asked, and children that have not ended yet.
 */
import type { UpstreamAddress } from './types.ts';
import type { Connection } from './upstream-connection.ts';

/** Ends them in the background, and knows when nothing of them is left. */
export class Leftovers {
  readonly #kind: UpstreamAddress['kind'];
  readonly #retiring = new Set<Pick<Connection<unknown>, 'close'>>();
  #reaped: Promise<unknown>;
  #left: Promise<unknown> = Promise.resolve();

  /** @param after what must have ended before the first connection is made */
  constructor(kind: UpstreamAddress['kind'], after: Promise<unknown> | undefined) {
    this.#kind = kind;
    this.#reaped = after ?? Promise.resolve();
  }

  /** Resolves when the next connection may be made: when nothing is left of the child before. */
  get reaped(): Promise<unknown> {
    return this.#reaped;
  }

  /**
   * Ends a connection that nobody uses any more.
   *
   * @param forgotten its session is gone at the server: what was asked in it may still be answered
   */
  leave(connection: Pick<Connection<unknown>, 'close' | 'retire'>, forgotten: boolean): void {
    this.#retiring.add(connection);
    const gently = forgotten && this.#kind !== 'stdio';
    const closed = (gently ? connection.retire() : connection.close()).catch(() => {});
    this.add(closed.then(() => void this.#retiring.delete(connection)));
  }

  /** Something else has to end. A server may serve two sessions at a time; a child is waited for. */
  add(closed: Promise<void>): void {
    const all = [this.#left, closed.catch(() => {})];
    this.#left = Promise.all(all).then(() => {});
    if (this.#kind === 'stdio') this.#reaped = this.#left;
  }

  /** Waits for no answer any more; resolves when nothing is left. */
  async close(): Promise<void> {
    for (const connection of this.#retiring) void connection.close();
    await this.#left;
  }
}
