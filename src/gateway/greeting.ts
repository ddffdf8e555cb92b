/**
 * @module
 * What comes first on a link over HTTP.
 */
import type { JSONRPCMessage } from '../mcp/jsonrpc.ts';

/**
 * Holds messages back until the server has taken `notifications/initialized`: on connections of
 * their own they could overtake it, and servers refuse what comes too early.
 */
export class Greeting {
  /** While the greeting is on its way. */
  #taken: Promise<void> | undefined;

  /** @param send hands one message over; called at once unless the greeting is on its way */
  pass(message: JSONRPCMessage, send: () => Promise<void>): Promise<void> {
    if (this.#taken !== undefined) return this.#taken.then(send);
    const sent = send();
    if ('method' in message && message.method === 'notifications/initialized') {
      const over = (): void => {
        this.#taken = undefined;
      };
      // Should it fail, what follows is told so by its own failure.
      this.#taken = sent.then(over, over);
    }
    return sent;
  }
}
