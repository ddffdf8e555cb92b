import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { onTestFinished } from 'vitest';
import { createServer, type ServerDefinition } from '../../../src/mcp/server.ts';
import {
  type HttpDoor,
  type ServeHttpOptions,
  serveHttp,
} from '../../../src/mcp/transports/http.ts';
import { ManualClock } from '../../fixtures/manual-clock.ts';
import { heldTools } from './tools.ts';

export const JSON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

/** A door on a free port with tools that the test holds, a clock that it moves, and no rate limit. */
export const openDoor = async (
  options: Partial<ServeHttpOptions> = {},
  definition: Partial<ServerDefinition> = {},
) => {
  const clock = new ManualClock();
  const held = heldTools();
  const door = await serveHttp({
    createServer: createServer({ name: 'test', version: '1', tools: held.tools, ...definition }),
    port: 0,
    clock,
    rateLimit: false,
    ...options,
  });
  onTestFinished(async () => {
    const closed = door.close();
    await clock.advance(10_000);
    await closed;
  });
  return { door, clock, calls: held.calls };
};

export const connect = async (door: HttpDoor) => {
  const client = new Client({ name: 'tester', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(door.url));
  // exactOptionalPropertyTypes: the SDK's own class does not fit its interface.
  await client.connect(transport as Parameters<Client['connect']>[0]);
  onTestFinished(() => client.close());
  return { client, transport };
};

export const post = (
  door: { url: string },
  body: unknown,
  headers: Record<string, string> = {},
  init: RequestInit = {},
): Promise<Response> =>
  fetch(door.url, {
    method: 'POST',
    headers: { ...JSON_HEADERS, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });

export const rpc = (id: string | number, method: string, params: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

export const initialize = (protocolVersion = '2025-11-25') =>
  rpc('init', 'initialize', {
    protocolVersion,
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  });

/** Opens a session with plain HTTP; returns the headers that its requests carry. */
export const openSession = async (door: HttpDoor, version = '2025-11-25') => {
  const response = await post(door, initialize(version));
  const id = response.headers.get('mcp-session-id');
  await response.body?.cancel();
  if (id === null) throw new Error('no session');
  return { 'mcp-session-id': id };
};

/** Messages in the events of a stream that has ended. */
export const events = (stream: string): unknown[] =>
  [...stream.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1] ?? ''));
