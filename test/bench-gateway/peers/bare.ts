/**
 * @module
 * The least that a proxy on `node:http` can do, and no proxy anybody should use: it reads a message,
 * asks the server and gives the answer back, and neither checks, limits nor measures anything. What
 * it loses against a direct connection nobody on this machine and this HTTP gets back.
 */
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import { readArguments } from './load.ts';

const { port, url = '' } = readArguments();
const { hostname, port: target, pathname: path } = new URL(url);
const agent = new Agent({ keepAlive: true });
const ACCEPT = 'application/json, text/event-stream';

const textOf = (message: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    message.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    message.on('end', () => resolve(text)).on('error', reject);
  });

const ask = (method: string, given: IncomingMessage['headers'], body: string) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      accept: ACCEPT,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(given['mcp-session-id'] && { 'mcp-session-id': given['mcp-session-id'] }),
      ...(given['mcp-protocol-version'] && {
        'mcp-protocol-version': given['mcp-protocol-version'],
      }),
    };
    request({ hostname, port: target, path, method, agent, headers }, resolve)
      .on('error', reject)
      .end(body);
  });

createServer(async (req, res) => {
  if (req.method === 'GET' || req.method === 'OPTIONS') {
    res.writeHead(405).end();
    return;
  }
  const text = await textOf(req);
  const message: unknown = text === '' ? undefined : JSON.parse(text);
  const response = await ask(req.method ?? '', req.headers, text && JSON.stringify(message));
  const answer = await textOf(response);
  const isJson = response.headers['content-type'] === 'application/json';
  const event = isJson ? answer : answer.split('data: ')[1];
  const session = response.headers['mcp-session-id'];
  const headers = session === undefined ? {} : { 'mcp-session-id': session };
  if (event === undefined) {
    res.writeHead(response.statusCode ?? 500, headers).end();
    return;
  }
  const body = JSON.stringify(JSON.parse(event));
  const length = Buffer.byteLength(body);
  res.writeHead(200, { ...headers, 'content-type': 'application/json', 'content-length': length });
  res.end(body);
}).listen(port, '127.0.0.1');
