import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Readable } from 'node:stream';
import { Agent, request, fetch as undiciFetch } from 'undici';
import { onTestFinished } from 'vitest';
import type { Chaos } from '../../src/chaos/chaos.ts';
import { InvalidAnswerError } from '../../src/tools/upstream.ts';
import { readBody } from '../../src/tools/upstream-body.ts';

/** Asks for JSON, and takes nothing else for it. */
export type Client = (url: string, signal: AbortSignal) => Promise<unknown>;

const MAX_BYTES = 2 * 1024 * 1024;

const read = async (response: Response, url: string): Promise<unknown> => {
  const { host } = new URL(url);
  if (!response.ok) {
    await response.body?.cancel();
    throw response;
  }
  if (!response.headers.get('content-type')?.includes('json')) {
    await response.body?.cancel();
    throw new InvalidAnswerError(host, 'it is not JSON');
  }
  const bytes = await readBody(response, MAX_BYTES);
  if (bytes === undefined) throw new InvalidAnswerError(host, 'it is too long');
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new InvalidAnswerError(host, 'it is not valid JSON');
  }
};

/** The answer to a request of `node:http`. */
const answerTo = (asked: ClientRequest): Promise<Response> =>
  new Promise((resolve, reject) => {
    asked.once('error', reject);
    asked.once('response', (message: IncomingMessage) => {
      const headers = Object.entries(message.headers).map(([name, value]) => [name, String(value)]);
      resolve(
        new Response(Readable.toWeb(message) as never, {
          status: message.statusCode ?? 0,
          headers: headers as [string, string][],
        }),
      );
    });
    asked.end();
  });

/** The ways that tools make HTTP requests, by name; each keeps its connection alive. */
export const CLIENTS: Readonly<Record<string, (chaos: Chaos) => Client>> = {
  'the global fetch': () => async (url, signal) => read(await fetch(url, { signal }), url),

  'fetch of undici through a keep-alive Agent': (chaos) => {
    const agent = new Agent({ keepAliveTimeout: 60_000, connections: 1 });
    onTestFinished(() => agent.destroy());
    const dispatcher = chaos.dispatcher(agent as never) as unknown as Agent;
    return async (url, signal) =>
      read((await undiciFetch(url, { signal, dispatcher })) as unknown as Response, url);
  },

  'request of undici, global dispatcher': () => async (url, signal) => {
    const { statusCode, headers, body } = await request(url, { signal });
    const kept = Object.entries(headers).map(([name, value]) => [name, String(value)]);
    const answer = new Response(statusCode === 204 ? null : (body as never), {
      status: statusCode,
      headers: kept as [string, string][],
    });
    return read(answer, url);
  },

  'node:http': () => async (url, signal) => read(await answerTo(httpRequest(url, { signal })), url),

  'node:http through a keep-alive Agent with one socket': () => {
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    return async (url, signal) => read(await answerTo(httpRequest(url, { agent, signal })), url);
  },
};
