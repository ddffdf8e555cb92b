import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import { connect as connectLean } from './client-lean.ts';
import { connect as connectOrdinary } from './client-ordinary.ts';
import { startProcess } from './process.ts';
import { readAnswer, readResponse } from './wire-http.ts';

const server = (name: string): string => join(import.meta.dirname, 'servers', `${name}.ts`);
const CLIENTS = { lean: connectLean, ordinary: connectOrdinary } as const;
const SERVERS = [
  { name: 'ordinary', flags: [] },
  { name: 'lean', flags: [] },
  { name: 'lean', flags: ['--json'] },
] as const;
/** Bytes and characters are not the same, and it does not fit into one read. */
const TEXT = `"é\n${'語'.repeat(60_000)}`;

const talk = async (client: keyof typeof CLIENTS, address: UpstreamAddress): Promise<void> => {
  const { call, close } = await CLIENTS[client](address);
  try {
    await Promise.all([
      call('echo', TEXT),
      call('work', 'a'),
      call('echo', ''),
      call('work', TEXT),
    ]);
    // The same connections again.
    await Promise.all([call('echo', 'b'), call('echo', TEXT)]);
  } finally {
    await close();
  }
};

describe.each(SERVERS)('the $name server $flags', ({ name, flags }) => {
  test.each(['lean', 'ordinary'] as const)('serves the %s client over stdio', async (client) => {
    const args = [server(name), ...flags];
    await talk(client, { kind: 'stdio', command: process.execPath, args, env: {} });
  });

  test.each(['lean', 'ordinary'] as const)('serves the %s client over HTTP', async (client) => {
    const words = [process.execPath, server(name), '--http', ...flags] as const;
    const { url, stop } = await startProcess(words, process.env);
    try {
      await talk(client, { kind: 'http', url, headers: {} });
    } finally {
      await stop();
    }
  });
});

test('the lean server keeps sessions as the protocol asks', async () => {
  const words = [process.execPath, server('lean'), '--http'] as const;
  const { url, stop } = await startProcess(words, process.env);
  const ask = async (method: string, body?: object, session?: string): Promise<Response> =>
    fetch(url, {
      method,
      headers: session === undefined ? {} : { 'mcp-session-id': session },
      ...(body && { body: JSON.stringify(body) }),
    });
  try {
    const opened = await ask('POST', {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18' },
    });
    const session = opened.headers.get('mcp-session-id') ?? '';
    expect(opened.headers.get('content-type')).toBe('text/event-stream');
    expect(await opened.text()).toMatch(/^event: message\ndata: .*"2025-06-18".*\n\n$/);
    const unknown = { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'x' } };
    expect(await (await ask('POST', unknown, session)).text()).toContain('unknown tool: x');
    const ping = { jsonrpc: '2.0', id: 2, method: 'ping' };
    const told = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const statuses = [
      await ask('POST', ping, session),
      await ask('POST', told, session),
      await ask('POST', ping),
      await ask('POST', ping, 'another'),
      await ask('GET', undefined, session),
      await ask('DELETE', undefined, session),
      await ask('POST', ping, session),
    ].map(({ status }) => status);
    expect(statuses).toEqual([200, 202, 400, 404, 405, 200, 404]);
  } finally {
    await stop();
  }
});

describe('what the lean client reads', () => {
  const CHUNKED =
    'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n' +
    '16\r\n: hello\n\ndata: {"id":1\r\n3\r\n}\n\n\r\n0\r\n\r\n';
  const COUNTED =
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"id":1}';

  test.each([CHUNKED, COUNTED])('a response is read when all of it is there', (text) => {
    for (let length = 0; length < text.length; length += 1) {
      expect(readResponse(text.slice(0, length))).toBeUndefined();
    }
    const response = readResponse(text);
    expect(response && readAnswer(1, response)).toEqual({ id: 1 });
  });

  test('the answer is found among other messages, and missed when there is none', () => {
    const body = 'event: message\ndata: {"method":"x"}\n\ndata: \n\ndata: {"id":7}\n\n';
    const response = { status: 200, head: 'a\ncontent-type: text/event-stream', body };
    expect(readAnswer(7, response)).toEqual({ id: 7 });
    expect(() => readAnswer(8, response)).toThrow('no answer');
  });
});
