import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { readGatewayConfig } from '../../../src/gateway/config.ts';
import {
  type ServedGateway,
  type ServeGatewayOptions,
  serveGateway,
} from '../../../src/gateway/gateway.ts';
import type { Json } from '../../../src/gateway/types.ts';

/** Anything at all: the SDK's typed calls would drop what they do not know. */
const anything = z.looseObject({});

/** A result as it came. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into it as into any JSON.
export type Anything = any;

/** Makes requests whose results nobody touches. */
export const requester =
  (client: Client) =>
  async (method: string, params?: object, options?: object): Promise<Anything> =>
    client.request({ method, ...(params && { params }) } as never, anything, options);

/** Calls a tool. */
export const caller =
  (client: Client) =>
  (name: string, args: object = {}, options?: object): Promise<Anything> =>
    requester(client)('tools/call', { name, arguments: args }, options);

/** A client of the SDK, connected until the test ends. */
export const connectTo = async (
  url: string,
  options: {
    readonly capabilities?: object;
    readonly name?: string;
    readonly before?: (client: Client) => void;
  } = {},
) => {
  const client = new Client(
    { name: options.name ?? 'tester', version: '1' },
    { capabilities: (options.capabilities ?? {}) as never },
  );
  options.before?.(client);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport as never);
  onTestFinished(() => client.close());
  return { client, transport, request: requester(client), call: caller(client) };
};

/** The names of the tools that it lists. */
export const toolNames = async (request: ReturnType<typeof requester>): Promise<string[]> =>
  (await request('tools/list')).tools.map(({ name }: Json) => name);

/** A gateway in this process, over HTTP, in front of `servers`, until the test ends. */
export const openGateway = async (
  servers: Readonly<Record<string, object>>,
  gateway: object = {},
  options: Partial<ServeGatewayOptions> = {},
) => {
  const said: string[] = [];
  const read = (entries: object, block: object = gateway) =>
    readGatewayConfig({ mcpServers: entries, gateway: block }, { name: 'test' });
  const served: ServedGateway = await serveGateway({
    config: read(servers),
    transport: 'http',
    host: '127.0.0.1',
    port: 0,
    env: {},
    stdin: process.stdin,
    stdout: process.stdout,
    say: (line) => void said.push(line),
    ...options,
  });
  onTestFinished(() => served.close());
  const { url = '' } = served;
  return {
    served,
    url,
    said,
    connect: (how?: Parameters<typeof connectTo>[1]) => connectTo(url, how),
    apply: (entries: object, block?: object) => served.apply(read(entries, block)),
    pids: (name: string) =>
      served.upstreams.health().find((upstream) => upstream.name === name)?.pids ?? [],
  };
};

/** Resolves when `condition` holds; the test's own timeout bounds it. */
export const eventually = async (condition: () => unknown): Promise<void> => {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
};

/** Whether a process lives. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
