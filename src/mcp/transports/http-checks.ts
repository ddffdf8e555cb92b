/**
 * @module
 * Checks of a POST against the session that it belongs to.
 */
import type { IncomingMessage } from 'node:http';
import {
  type JSONRPCMessage,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js';
import { CODE, isRequest } from '../jsonrpc.ts';
import { type Refusal, retryAfter } from './http-answer.ts';
import type { SessionTransport } from './http-session.ts';

/** A request that breaks the protocol. `message` says how to mend it. */
export const badRequest = (message: string): Refusal => ({
  status: 400,
  code: CODE.invalidRequest,
  message: `Bad Request: ${message}`,
});

/** The refusal of whatever comes while the door closes. */
export const SHUTTING_DOWN: Refusal = {
  status: 503,
  message: 'Service Unavailable: the server is shutting down; try again',
  headers: { ...retryAfter(1_000), connection: 'close' },
};

/** The refusal of a client that asks too often; `wait` in milliseconds. */
export const tooManyRequests = (wait: number): Refusal => ({
  status: 429,
  message: `Too Many Requests: wait ${Math.max(1, Math.ceil(wait / 1_000))} s, then send less often`,
  headers: retryAfter(wait),
});

/** Refuses a version that we do not speak; an absent one is fine. */
export const checkVersion = (req: IncomingMessage): Refusal | undefined => {
  const version = req.headers['mcp-protocol-version'];
  if (version === undefined || SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))) {
    return undefined;
  }
  const supported = SUPPORTED_PROTOCOL_VERSIONS.join(', ');
  return badRequest(
    `Unsupported protocol version in MCP-Protocol-Version (supported versions: ${supported})`,
  );
};

/** Refuses a batch where the protocol has none: they came with 2025-03-26 and went with 2025-06-18. */
export const checkBatch = (batch: boolean, version: string | undefined): Refusal | undefined =>
  batch && version !== undefined && version > '2025-03-26'
    ? badRequest(`protocol version ${version} has no batches; send each message in its own POST`)
    : undefined;

/** Refuses an id that a running request of the session, or of the same batch, has already. */
export const checkIds = (
  messages: readonly JSONRPCMessage[],
  session?: SessionTransport,
): Refusal | undefined => {
  const seen = new Set<unknown>();
  for (const message of messages) {
    if (!isRequest(message)) continue;
    const { id } = message;
    if (seen.has(id) || session?.isRunning(id)) {
      const name = JSON.stringify(id);
      return {
        ...badRequest(`a request with the id ${name} is still running; use a new id for each`),
        id,
      };
    }
    seen.add(id);
  }
  return undefined;
};
