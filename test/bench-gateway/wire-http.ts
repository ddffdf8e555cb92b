/**
 * @module
 * The lean client's side of Streamable HTTP, on bare sockets: half of what a client takes on
 * `node:http` is spared. It reads what servers on Node send, and is no HTTP client for anything
 * else; it does not ask for the stream of GET, which the protocol leaves to the client.
 */
import { connect, type Socket } from 'node:net';
import type { Answer, Wire } from './client-lean.ts';

interface Response {
  readonly status: number;
  /** In lower case. */
  readonly head: string;
  readonly body: string;
}

/** The body from `at` on, when all of it is there. */
const readChunks = (text: string, at: number): string | undefined => {
  for (let body = ''; ; ) {
    const end = text.indexOf('\r\n', at);
    const size = end < 0 ? Number.NaN : Number.parseInt(text.slice(at, end), 16);
    const next = end + 2 + size;
    if (!(text.length >= next + 2)) return undefined;
    if (size === 0) return body;
    body += text.slice(end + 2, next);
    at = next + 2;
  }
};

/**
 * A response, when all of it is there.
 *
 * @param text a character for each byte
 */
export const readResponse = (text: string): Response | undefined => {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = text.slice(0, end).toLowerCase();
  const status = Number(head.slice('http/1.1 '.length, 'http/1.1 200'.length));
  const [, length] = /^content-length: *(\d+)/m.exec(head) ?? [];
  const from = end + 4;
  const whole = length === undefined || text.length >= from + Number(length);
  const isChunked = head.includes('\ntransfer-encoding: chunked');
  const body = isChunked ? readChunks(text, from) : whole ? text.slice(from) : undefined;
  if (body === undefined) return undefined;
  return { status, head, body: Buffer.from(body, 'latin1').toString() };
};

/** The answer to a request, out of JSON or of a stream with whatever else is in it. */
export const readAnswer = (id: number, { status, head, body }: Response): Answer => {
  const texts = head.includes('\ncontent-type: text/event-stream')
    ? body.split('\n').flatMap((line) => (line.startsWith('data:') ? [line.slice(5).trim()] : []))
    : [body];
  const answers = texts
    .filter((text) => text !== '')
    .map((text): Answer => JSON.parse(text) as Answer);
  const answer = answers.find((message) => message.id === id);
  if (answer === undefined) throw new Error(`status ${status}, no answer: ${body.slice(0, 1_000)}`);
  return answer;
};

/** Connects as often as there are requests at a time. */
export const openHttp = (url: string): Wire => {
  const { hostname, port, pathname } = new URL(url);
  const open = new Set<Socket>();
  const idle: Socket[] = [];
  let session = '';

  const dial = (): Socket => {
    const socket = connect(Number(port), hostname).setNoDelay(true).setEncoding('latin1');
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      const at = idle.indexOf(socket);
      if (at >= 0) idle.splice(at, 1);
    });
    return socket;
  };

  const exchange = (method: string, body: string): Promise<Response> =>
    new Promise((resolve, reject) => {
      const socket = idle.pop() ?? dial();
      let text = '';
      const onData = (chunk: string): void => {
        text += chunk;
        const response = readResponse(text);
        if (response === undefined) return;
        socket.off('data', onData).off('close', onClose);
        if (response.head.includes('\nconnection: close')) socket.destroy();
        else idle.push(socket);
        resolve(response);
      };
      const onClose = (): void => reject(new Error(`closed after: ${text.slice(0, 1_000)}`));
      socket.on('data', onData).on('close', onClose);
      const length = Buffer.byteLength(body);
      socket.write(
        `${method} ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n${session}content-length: ${length}\r\n\r\n${body}`,
      );
    });

  return {
    ask: async (id, message) => {
      const response = await exchange('POST', message);
      const [, given] = /^mcp-session-id: *(\S+)/m.exec(response.head) ?? [];
      if (session === '' && given !== undefined) {
        session = `mcp-session-id: ${given}\r\nmcp-protocol-version: 2025-06-18\r\n`;
      }
      return readAnswer(id, response);
    },
    tell: async (message) => {
      const { status } = await exchange('POST', message);
      if (status !== 202) throw new Error(`status ${status} to a notification`);
    },
    close: async () => {
      if (session !== '') await exchange('DELETE', '');
      for (const socket of open) socket.destroy();
    },
  };
};
