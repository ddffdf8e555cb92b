import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { onTestFinished } from 'vitest';
import { startCommand, temporaryFolder } from '../../fixtures/command.ts';
import { caller, connectTo, requester } from './gateway.ts';

const CLI = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url));

/** The words that start an upstream, as they stand behind `--`. */
export const words = ({ command, args }: { command: string; args: string[] }): string[] => [
  command,
  ...args,
];

/** A client of the SDK that has started a command and speaks with it over stdio. */
export const connectCommand = async (
  args: readonly string[],
  options: {
    readonly env?: Record<string, string>;
    readonly capabilities?: object;
    readonly before?: (client: Client) => void;
  } = {},
) => connectProcess([process.execPath, CLI, ...args], options);

/** The same with any program. */
export const connectProcess = async (
  [command = '', ...args]: readonly string[],
  { env = {}, capabilities = {}, before = () => {} }: Parameters<typeof connectCommand>[1] = {},
) => {
  const client = new Client(
    { name: 'tester', version: '1' },
    { capabilities: capabilities as never },
  );
  before(client);
  const transport = new StdioClientTransport({
    command,
    args,
    env: { PATH: process.env.PATH ?? '', ...env },
    stderr: 'pipe',
  });
  let stderr = '';
  transport.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  await client.connect(transport as never);
  onTestFinished(() => client.close());
  return {
    client,
    pid: transport.pid,
    stderr: () => stderr,
    request: requester(client),
    call: caller(client),
  };
};

/** A configuration file, and how to write it anew. */
export const writtenConfig = (servers: object, gateway: object = {}) => {
  const file = join(temporaryFolder(), 'mcp.json');
  const write = (content: string | object): void =>
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  write({ mcpServers: servers, gateway });
  return {
    file,
    write: (entries: object) => write({ mcpServers: entries, gateway }),
    writeText: write,
  };
};

/** `mcp-resilience ...args --http` as a process of its own, until the test ends. */
export const serveCommand = async (
  [command = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv = {},
) => {
  const running = startCommand([command, '--http', '--port', '0', ...args], env);
  const [, url = ''] = await running.said(/serves MCP at (\S+)\n/);
  return {
    ...running,
    url,
    origin: new URL(url).origin,
    connect: (how?: Parameters<typeof connectTo>[1]) => connectTo(url, how),
  };
};
