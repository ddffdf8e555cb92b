/**
 * @module
 * The server that every subject stands in front of: an ordinary one, on the SDK of the protocol.
 * `node upstream.ts` speaks on stdio, `node upstream.ts --http` on a free port that it prints.
 * Tools: `echo` gives its text back, `work` takes 10 ms as a tool does that asks somebody else.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const WORK = 10;

const makeServer = (): Server => {
  const server = new Server({ name: 'bench', version: '1' }, { capabilities: { tools: {} } });
  const inputSchema = { type: 'object' as const, properties: { text: { type: 'string' } } };
  const annotations = { readOnlyHint: true };
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: ['echo', 'work'].map((name) => ({ name, inputSchema, annotations })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    if (params.name === 'work') await sleep(WORK);
    return { content: [{ type: 'text', text: String(params.arguments?.text ?? '') }] };
  });
  return server;
};

const sessions = new Map<string, StreamableHTTPServerTransport>();

const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
  const id = req.headers['mcp-session-id'];
  let transport = typeof id === 'string' ? sessions.get(id) : undefined;
  if (transport === undefined) {
    const made = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void sessions.set(session, made),
      onsessionclosed: (session) => void sessions.delete(session),
    });
    await makeServer().connect(made as Transport);
    transport = made;
  }
  await transport.handleRequest(req, res);
};

if (process.argv.includes('--http')) {
  const server = createServer((req, res) => {
    serve(req, res).catch(() => res.destroy());
  });
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stderr.write(`listening on http://127.0.0.1:${port}/mcp\n`);
  });
} else {
  await makeServer().connect(new StdioServerTransport());
}
