/**
 * @module
 * A proxy on FastMCP. It brings none of its own; this is what its users write: a server whose
 * tools call those of a client of the SDK.
 */
import { load, readArguments } from './load.ts';

interface Tool {
  readonly name: string;
  readonly annotations?: object;
}
interface ToolsClient {
  connect(transport: unknown): Promise<void>;
  listTools(): Promise<{ tools: Tool[] }>;
  callTool(params: object): Promise<unknown>;
}
interface FastServer {
  addTool(tool: object): void;
  start(options: object): Promise<void>;
}
type Made<T> = new (...args: unknown[]) => T;

const { front, port, url, command, args } = readArguments();
const sdk = '@modelcontextprotocol/sdk/client';
const { Client } = await load<{ Client: Made<ToolsClient> }>(`${sdk}/index.js`);
const { StdioClientTransport } = await load<{ StdioClientTransport: Made<object> }>(
  `${sdk}/stdio.js`,
);
const { StreamableHTTPClientTransport } = await load<{
  StreamableHTTPClientTransport: Made<object>;
}>(`${sdk}/streamableHttp.js`);
const { FastMCP } = await load<{ FastMCP: Made<FastServer> }>('fastmcp');
const { z } = await load<{ z: { looseObject(shape: object): object } }>('zod');

const client = new Client({ name: 'fastmcp-proxy', version: '1.0.0' });
await client.connect(
  url === undefined
    ? new StdioClientTransport({ command, args })
    : new StreamableHTTPClientTransport(new URL(url)),
);
const server = new FastMCP({ name: 'fastmcp-proxy', version: '1.0.0', health: { enabled: false } });
for (const { name, annotations } of (await client.listTools()).tools) {
  server.addTool({
    name,
    annotations,
    parameters: z.looseObject({}),
    execute: (given: object) => client.callTool({ name, arguments: given }),
  });
}
await server.start(
  front === 'stdio'
    ? { transportType: 'stdio' }
    : { transportType: 'httpStream', httpStream: { port, host: '127.0.0.1', endpoint: '/mcp' } },
);
