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
  #taken: Promise<void> | undefined;

  /** @param send hands one message over; called at once unless the greeting is on its way */
  async pass(message: JSONRPCMessage, send: () => Promise<void>): Promise<void> {
    if (this.#taken !== undefined) await this.#taken;
    const sent = send();
    if ('method' in message && message.method === 'notifications/initialized') {
      // Should it fail, what follows is told so by its own failure.
      this.#taken = sent.catch(() => {});
    }
    return sent;
  }
}
