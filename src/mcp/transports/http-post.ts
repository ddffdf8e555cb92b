/**
 * @module
 * A POST that has been read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { ServedExtra } from '../instrument.ts';

/** Who sent a request, as the door found out. */
export interface Caller {
  readonly address: string;
  readonly port: number | undefined;
  readonly authInfo: AuthInfo | undefined;
}

/** A POST with the messages in it. */
export interface Post {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly caller: Caller;
  readonly messages: readonly JSONRPCMessage[];
  readonly batch: boolean;
}

/** What servers and telemetry get to know about where a message came from. */
export const extraOf = ({ req, caller }: Post): ServedExtra => {
  const { address, port, authInfo } = caller;
  return {
    requestInfo: { headers: req.headers },
    client: { address, ...(port !== undefined && { port }) },
    ...(authInfo && { authInfo }),
  };
};
