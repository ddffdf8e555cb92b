/**
 * @module
 * JSON-RPC 2.0 as MCP uses it: what is a message, what is wrong with one that is not, and how
 * an error looks. Both transports validate here, before the SDK sees a message: a request that
 * the SDK does not recognise is dropped by it without an answer, and its caller would wait
 * for ever.
 */
import {
  InitializeRequestSchema,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type JSONRPCResultResponse,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';
import { isMessage, isObject, type JsonObject } from './jsonrpc-check.ts';

export type { JSONRPCMessage, JSONRPCRequest, RequestId } from '@modelcontextprotocol/sdk/types.js';
export {
  LATEST_PROTOCOL_VERSION,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js';

/**
 * Codes that we answer with. Those of JSON-RPC, and `sessionNotFound`, which existing clients
 * know. What HTTP itself refuses (403, 408, 429, 503) carries its status as the code: codes of
 * one's own lie outside -32768 to -32000 (JSON-RPC 2.0, section 5.1).
 */
export const CODE = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  sessionNotFound: -32001,
} as const;

/**
 * Thrown by a request handler to answer with exactly this error. The SDK's `McpError` puts
 * "MCP error -32602: " in front of the message, and the client's SDK puts it there again.
 */
export class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError';
  readonly code: number;
  readonly data?: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    if (data !== undefined) this.data = data;
  }
}

/** An error response. `id` is null when the request's id could not be read. */
export const errorResponse = (
  id: RequestId | null,
  code: number,
  message: string,
): { jsonrpc: '2.0'; id: RequestId | null; error: { code: number; message: string } } => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

/** What became of a value that should be a message. */
export type Parsed =
  | { readonly ok: true; readonly message: JSONRPCMessage }
  | {
      readonly ok: false;
      /** Id to answer with. */
      readonly id: RequestId | null;
      /** True for a broken response, which must not be answered. */
      readonly isResponse: boolean;
      /** Code to answer with. */
      readonly code: number;
      /** What is wrong and how to mend it. */
      readonly reason: string;
    };

const isId = (value: unknown): value is RequestId =>
  typeof value === 'string' || Number.isInteger(value);

const reasonOf = (envelope: JsonObject): string => {
  if (envelope.jsonrpc !== '2.0') return 'the member "jsonrpc" must be "2.0"';
  if ('id' in envelope && !isId(envelope.id)) {
    return 'the member "id" must be a string or an integer, and not null';
  }
  if ('result' in envelope || 'error' in envelope) {
    return 'a response needs "id" and either an object "result" or an "error" with an integer "code" and a string "message"';
  }
  if (typeof envelope.method !== 'string') return 'the member "method" must be a string';
  if (envelope.params !== undefined && !isObject(envelope.params)) {
    return 'the member "params" must be an object';
  }
  return 'params._meta must be an object, and its progressToken a string or an integer';
};

const INITIALIZE =
  'initialize needs the params "protocolVersion", "capabilities" and "clientInfo" with "name" and "version"';

/**
 * Reads one message. Members of the envelope that JSON-RPC does not define are dropped, since
 * the SDK would drop the message with them; everything inside `params`, `result` and `error`
 * stays as it came.
 */
export const parseMessage = (value: unknown): Parsed => {
  if (!isObject(value)) {
    return {
      ok: false,
      id: null,
      isResponse: false,
      code: CODE.invalidRequest,
      reason: 'a message must be one JSON object',
    };
  }
  const envelope: Record<string, unknown> = {};
  for (const key of ['jsonrpc', 'id', 'method', 'params', 'result', 'error']) {
    if (value[key] !== undefined) envelope[key] = value[key];
  }
  const id = isId(value.id) ? value.id : null;
  if (!isMessage(envelope)) {
    const isResponse = value.method === undefined && ('result' in value || 'error' in value);
    return { ok: false, id, isResponse, code: CODE.invalidRequest, reason: reasonOf(envelope) };
  }
  // The SDK (1.32.2) answers one that it cannot use with -32603, as if the fault were ours.
  const initializes = envelope.method === 'initialize' && 'id' in envelope;
  if (initializes && !InitializeRequestSchema.safeParse(envelope).success) {
    return { ok: false, id, isResponse: false, code: CODE.invalidParams, reason: INITIALIZE };
  }
  return { ok: true, message: envelope as unknown as JSONRPCMessage };
};

/** True for a request: it has a method and waits for an answer. */
export const isRequest = (message: JSONRPCMessage): message is JSONRPCRequest =>
  'method' in message && 'id' in message;

/** True for the answer to a request, good or bad. */
export const isResponse = (
  message: JSONRPCMessage,
): message is JSONRPCResultResponse | JSONRPCErrorResponse => !('method' in message);

/** Id of the request that a `notifications/cancelled` names; undefined for any other message. */
export const cancelledId = (message: JSONRPCMessage): RequestId | undefined => {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined;
  const id = message.params?.requestId;
  return isId(id) ? id : undefined;
};

const ours = new WeakSet<JSONRPCMessage>();

/**
 * The notification that a transport delivers to its own side when the client of a request has
 * gone: the request's handler sees its signal abort, exactly as if the client had cancelled.
 */
export const cancellation = (requestId: RequestId, reason: string): JSONRPCMessage => {
  const params = { requestId, reason };
  const message: JSONRPCMessage = { jsonrpc: '2.0', method: 'notifications/cancelled', params };
  ours.add(message);
  return message;
};

/** True for what `cancellation` made: the client itself has sent nothing. */
export const isCancelledByUs = (message: JSONRPCMessage): boolean => ours.has(message);
