/**
 * @module
 * Cross-origin requests of browser pages (WHATWG Fetch, "HTTP-CORS protocol"), for the origins
 * that were configured and for no others.
 */
import type { ServerResponse } from 'node:http';
import { sendEmpty } from './http-answer.ts';

/** Request headers that MCP clients send and that a browser asks about first. */
const REQUEST_HEADERS = [
  'accept',
  'authorization',
  'baggage',
  'content-type',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'traceparent',
  'tracestate',
].join(', ');

/** Lets pages of that origin read the answer, and the headers of it that they need. */
export const allowOrigin = (res: ServerResponse, origin: string): void => {
  res.setHeader('access-control-allow-origin', origin);
  res.setHeader('access-control-expose-headers', 'mcp-session-id, retry-after, www-authenticate');
  res.setHeader('vary', 'origin');
};

/** Answers the question whether a page may send its request; `allowOrigin` came before. */
export const answerPreflight = (res: ServerResponse): void =>
  sendEmpty(res, 204, {
    'access-control-allow-methods': 'POST, GET, DELETE',
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': '600',
  });
