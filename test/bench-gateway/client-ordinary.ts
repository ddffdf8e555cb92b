/**
 * @module
 * The client of the ordinary world: the official SDK's, used as its users use it.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import type { Connection } from './load.ts';

/** Opens a session. */
export const connect = async (address: UpstreamAddress): Promise<Connection> => {
  const transport =
    address.kind === 'stdio'
      ? new StdioClientTransport({
          command: address.command,
          args: [...address.args],
          env: { ...address.env },
          stderr: 'ignore',
        })
      : new StreamableHTTPClientTransport(new URL(address.url));
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(transport as Transport);
  await client.listTools();
  return {
    call: async (name, text) => {
      const answer = await client.callTool({ name, arguments: { text } });
      const [content] = answer.content as { text: string }[];
      if (content?.text.length !== text.length)
        throw new Error(`wrong answer: ${JSON.stringify(answer)}`);
    },
    pid: transport instanceof StdioClientTransport ? (transport.pid ?? undefined) : undefined,
    close: () => client.close(),
  };
};
