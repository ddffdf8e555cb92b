/**
 * @module
 * mcp-proxy in front of an HTTP server. Its command only takes stdio ones; its library takes any
 * client, and is used here as its command uses it.
 */
import { load, readArguments } from './load.ts';

interface UpstreamClient {
  connect(transport: unknown): Promise<void>;
  getServerVersion(): unknown;
  getServerCapabilities(): unknown;
}
type Made<T> = new (...args: unknown[]) => T;

const { port, url = '' } = readArguments();
const { Client, StreamableHTTPClientTransport } = await load<{
  Client: Made<UpstreamClient>;
  StreamableHTTPClientTransport: Made<object>;
}>('@modelcontextprotocol/client');
const { Server } = await load<{ Server: Made<object> }>('@modelcontextprotocol/server');
const { proxyServer, startHTTPServer } = await load<{
  proxyServer(options: object): Promise<void>;
  startHTTPServer(options: object): Promise<unknown>;
}>('mcp-proxy');

const client = new Client({ name: 'mcp-proxy', version: '1.0.0' }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const serverCapabilities = client.getServerCapabilities();
await startHTTPServer({
  port,
  host: '127.0.0.1',
  streamEndpoint: '/mcp',
  sseEndpoint: null,
  createServer: async () => {
    const server = new Server(client.getServerVersion(), { capabilities: serverCapabilities });
    await proxyServer({ client, server, serverCapabilities });
    return server;
  },
});
