/**
 * @module
 * The server of the ordinary world: on the SDK of the protocol, as users write theirs.
 * `node ordinary.ts` speaks on stdio, `node ordinary.ts --http` on a free port that it prints.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { announceProcess, announceUrl, TOOLS, WORK } from './common.ts';

const makeServer = (): Server => {
  const server = new Server({ name: 'bench', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS }));
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
  announceUrl(
    createServer((req, res) => {
      serve(req, res).catch(() => res.destroy());
    }),
  );
} else {
  announceProcess();
  await makeServer().connect(new StdioServerTransport());
}
