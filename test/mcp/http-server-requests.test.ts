import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  ElicitRequestSchema,
  ElicitResultSchema,
  ListRootsRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import { openDoor, openSession, post, rpc } from './support/door.ts';
import { text } from './support/tools.ts';
import { until } from './support/wait.ts';

/** A server of the low level, as the gateway has them: it asks its client in the middle of a call. */
const asking = () => {
  const servers: Server[] = [];
  const createServer = (): Server => {
    const server = new Server(
      { name: 'asking', version: '1' },
      { capabilities: { tools: { listChanged: true } } },
    );
    server.fallbackRequestHandler = async (_request, extra) => {
      const params = {
        message: 'Who are you?',
        requestedSchema: { type: 'object', properties: {} },
      };
      const answer = await extra.sendRequest(
        { method: 'elicitation/create', params } as never,
        ElicitResultSchema,
      );
      return { ...text(String(answer.content?.name)) };
    };
    servers.push(server);
    return server;
  };
  return { createServer, servers };
};

describe('requests to the client', () => {
  verifies('http.server-requests', async () => {
    const { createServer, servers } = asking();
    const { door } = await openDoor({ createServer });
    const client = new Client(
      { name: 'tester', version: '1' },
      { capabilities: { elicitation: {}, roots: {} } },
    );
    client.setRequestHandler(ElicitRequestSchema, () => ({
      action: 'accept',
      content: { name: 'Anna' },
    }));
    client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///home' }] }));
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes += 1;
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(door.url)) as never);
    onTestFinished(() => client.close());

    // One that belongs to a call goes to the POST of that call, any other to the GET stream.
    expect(await client.callTool({ name: 'ask', arguments: {} })).toEqual(text('Anna'));
    await until(() => door.stats().streams === 1);
    expect(await servers[0]?.listRoots()).toEqual({ roots: [{ uri: 'file:///home' }] });
    await servers[0]?.sendToolListChanged();
    await until(() => changes === 1);
  });

  test('fail at once when there is no way to the client', async () => {
    const { createServer, servers } = asking();
    const { door } = await openDoor({ createServer });
    const session = await openSession(door);
    await expect(servers[0]?.listRoots()).rejects.toThrow(/cannot be asked/);
    await servers[0]?.sendToolListChanged();

    // A call that still runs for a client that has gone cannot ask it either.
    const abort = new AbortController();
    const lost = post(door, rpc(1, 'tools/call', { name: 'ask' }), session, {
      signal: abort.signal,
    });
    await (await lost).body?.cancel();
    abort.abort();
    await until(() => door.stats().running === 0);
  });
});
