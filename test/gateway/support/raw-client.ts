import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { onTestFinished } from 'vitest';
import type { Json } from '../../../src/gateway/types.ts';
import { eventually } from './gateway.ts';

/** A client without any knowledge of its own: sends what the test says, keeps what comes. */
export const rawClient = async (
  url: string,
  { capabilities = {}, protocolVersion = '2025-11-25', name = 'raw' } = {},
) => {
  const transport = new StreamableHTTPClientTransport(new URL(url));
  const received: Json[] = [];
  const answers = new Map<unknown, Json>();
  /** Answers requests of the server; by method. */
  const replies: Record<string, (params: Json, id: unknown) => Json | undefined> = {};
  transport.onmessage = (message: unknown) => {
    const json = message as Json;
    received.push(json);
    if (json.method === undefined) {
      answers.set(json.id, json);
    } else if (json.id !== undefined) {
      const reply = replies[String(json.method)]?.(json.params as Json, json.id);
      if (reply) void send({ id: json.id, ...reply });
    }
  };
  await transport.start();
  onTestFinished(() => transport.close());
  const send = (message: object): Promise<void> =>
    transport.send({ jsonrpc: '2.0', ...message } as never);
  /** Sends a request under exactly this id; resolves with the whole response. */
  const request = async (id: string | number, method: string, params: object = {}) => {
    await send({ id, method, params });
    await eventually(() => answers.has(id));
    const answer = answers.get(id) as Json;
    answers.delete(id);
    return answer;
  };
  const call = (id: string | number, tool: string, args: object = {}, meta?: object) =>
    request(id, 'tools/call', { name: tool, arguments: args, ...(meta && { _meta: meta }) });
  const initialized = await request('initialize', 'initialize', {
    protocolVersion,
    capabilities,
    clientInfo: { name, version: '1' },
  });
  const { result } = initialized as { result?: { protocolVersion: string } };
  if (result) transport.setProtocolVersion(result.protocolVersion);
  await send({ method: 'notifications/initialized' });
  return { transport, received, replies, send, request, call, initialized };
};
