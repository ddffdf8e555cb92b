/**
 * @module
 * A server as the SDK's documentation shows it, with nothing of ours in it: what drills compare
 * a protected server with. Serves tools of ours, so that both sides run the same handlers.
 */
import { randomUUID } from 'node:crypto';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { VERSION } from '../version.ts';
import type { Tool } from './tool.ts';

/** What to serve. */
export interface PlainServerOptions {
  readonly name: string;
  readonly tools: readonly Tool[];
  /** Port on 127.0.0.1; 0 for any that is free. Default 0. */
  readonly port?: number;
}

/** A plain server that runs. */
export interface PlainServer {
  /** Of the MCP endpoint. */
  readonly url: string;
  /** Ends it, and every connection with it. */
  close(): Promise<void>;
}

const sessionServer = ({ name, tools }: PlainServerOptions): McpServer => {
  const server = new McpServer({ name, version: VERSION });
  for (const { name: tool, description, inputSchema, handler } of tools) {
    const config = { description, inputSchema: inputSchema as never };
    server.registerTool(tool, config, (async (input: unknown, extra: { signal: AbortSignal }) =>
      handler(input, { signal: extra.signal, progress() {} })) as never);
  }
  return server;
};

/** Serves until it is closed. */
export const servePlain = async (options: PlainServerOptions): Promise<PlainServer> => {
  const sessions = new Map<string, StreamableHTTPServerTransport>();

  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await sessionServer(options).connect(transport as never);
    return transport;
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const id = request.headers['mcp-session-id'];
    const transport = (typeof id === 'string' && sessions.get(id)) || (await open());
    await transport.handleRequest(request, response);
  };

  const http = createHttpServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    http.once('error', reject);
    http.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
};
