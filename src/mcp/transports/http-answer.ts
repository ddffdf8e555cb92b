/**
 * @module
 * Answers of the HTTP door that are no JSON-RPC response of a server: always JSON, never
 * HTML, never a stack.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { RequestId } from '@modelcontextprotocol/sdk/types.js';
import { errorResponse } from '../jsonrpc.ts';

/** On every answer: none of them may be stored, or be taken for something else than it says. */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** A request that is not served, and why. */
export interface Refusal {
  readonly status: number;
  /** JSON-RPC code. Default: the HTTP status. */
  readonly code?: number;
  /** What is wrong and how to mend it. */
  readonly message: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly id?: RequestId | null;
}

/** Answers with a JSON body, unless the client has gone or was answered already. */
export const sendJson = (
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void => {
  if (res.headersSent || res.destroyed) return;
  const text = JSON.stringify(body);
  res.writeHead(status, {
    ...COMMON_HEADERS,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  res.end(text);
};

/** Answers without a body. */
export const sendEmpty = (
  res: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders = {},
): void => {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(status, { ...COMMON_HEADERS, ...headers });
  res.end();
};

/** Answers with a JSON-RPC error. */
export const refuse = (res: ServerResponse, refusal: Refusal): void => {
  const { status, code = status, message, headers, id = null } = refusal;
  sendJson(res, status, errorResponse(id, code, message), headers);
};

/** `Retry-After` in whole seconds, at least 1. */
export const retryAfter = (ms: number): Record<string, string> => ({
  'retry-after': String(Math.max(1, Math.ceil(ms / 1_000))),
});
