/**
 * @module
 * HTTP to one upstream, over connections that belong to it alone and end with it.
 *
 * It stands on `node:http` and not on `fetch`: a request costs less than half the processor
 * time, and undici gives up on headers and on a silent body after 300 s, which would end long calls
 * and every quiet stream. Trace context comes into the headers by the HTTP instrumentation.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import type { JSONRPCMessage } from '../mcp/jsonrpc.ts';
import { type Body, readBody } from '../mcp/transports/http-body.ts';
import type { Clock } from '../resilience/clock.ts';
import { VERSION } from '../version.ts';
import type { Divert } from './gateway-chaos.ts';
import { broken, type LinkError, notOpen, unusable } from './link-failure.ts';

/** One request. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Within the origin of the client. Default: the client's own URL. */
  readonly url?: URL;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: string;
  /** Ends the request, and the reading of its answer. */
  readonly signal?: AbortSignal | undefined;
}

/** Milliseconds that an idle connection is kept: servers commonly drop theirs after 5 s. */
const IDLE_TIME = 4_000;
/** Milliseconds after which a silent connection is asked whether the peer still exists. */
const KEEP_ALIVE = 30_000;
/** Redirects followed, all within one origin. */
const MAX_REDIRECTS = 3;
/** Bytes that are read of a body nobody needs; beyond that a new connection is cheaper. */
const DRAIN_BYTES = 64 * 1024;
/** Milliseconds given to a body nobody needs: the status must not wait for it. */
const DRAIN_TIME = 500;

const isRedirect = (status: number, method: HttpRequest['method']): boolean =>
  // The others turn a POST into a GET.
  status === 307 || status === 308 || (method === 'GET' && [301, 302, 303].includes(status));

/** What `node:http` needs of a URL, and no more: it copies it several times for each request. */
const targetOf = (url: URL): RequestOptions => {
  const { protocol, hostname, port, path, auth } = urlToHttpOptions(url);
  return { protocol, hostname, port, path, ...(auth !== undefined && { auth }) } as RequestOptions;
};

/** Makes requests to one origin. */
export class HttpClient {
  readonly url: URL;
  readonly #headers: OutgoingHttpHeaders;
  readonly #clock: Clock;
  readonly #divert: Divert;
  readonly #own: RequestOptions;
  readonly #agent: HttpAgent;
  readonly #active = new Set<ClientRequest>();
  #closed = false;

  /**
   * @param headers sent with every request; those of the request itself win
   * @param divert has requests go elsewhere. Default: none
   */
  constructor(
    url: string,
    headers: Readonly<Record<string, string>>,
    clock: Clock,
    divert: Divert = () => undefined,
  ) {
    this.#divert = divert;
    this.url = new URL(url);
    const own: OutgoingHttpHeaders = { 'user-agent': `mcp-resilience/${VERSION}` };
    // Names of headers are the same in any case; twice in two cases they would be sent twice.
    for (const [name, value] of Object.entries(headers)) own[name.toLowerCase()] = value;
    this.#headers = own;
    this.#clock = clock;
    this.#own = targetOf(this.url);
    // The same for a connection in use and an idle one: changing it costs a system call each time.
    const probe = { keepAliveInitialDelay: KEEP_ALIVE, keepAliveMsecs: KEEP_ALIVE };
    const settings = { keepAlive: true, timeout: IDLE_TIME, ...probe };
    this.#agent =
      this.url.protocol === 'https:' ? new HttpsAgent(settings) : new HttpAgent(settings);
  }

  /**
   * Resolves with the answer, whatever its status, once its headers are there. Its body must be
   * read, or given to `drain`. Redirects within the origin are followed; one that leads to
   * another is refused, for the headers may hold credentials.
   *
   * @throws LinkError when there is no answer; the signal's reason on abort
   */
  async request(request: HttpRequest): Promise<IncomingMessage> {
    let url = request.url ?? this.url;
    for (let hops = 0; ; hops += 1) {
      const response = await this.#once(url, request);
      const { location } = response.headers;
      if (!isRedirect(response.statusCode ?? 0, request.method) || location === undefined) {
        return response;
      }
      await this.drain(response);
      const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
      if (next?.origin !== this.url.origin) {
        const where = next?.origin ?? 'an address that is none';
        const details = { severity: 'permanent', retryable: false, delivery: 'refused' } as const;
        throw unusable(`it redirects to ${where}; set that address if it is trusted`, details);
      }
      if (hops === MAX_REDIRECTS) {
        throw unusable(`it redirects more than ${MAX_REDIRECTS} times`, { delivery: 'refused' });
      }
      url = next;
    }
  }

  /** The whole body. Rejects never; what became of it is in its kind. */
  read(response: IncomingMessage, maxBytes: number): Promise<Body> {
    const limits = { maxBytes, timeout: Number.POSITIVE_INFINITY, clock: this.#clock };
    return readBody(response, limits).then((body) => {
      if (body.kind !== 'read') response.destroy();
      return body;
    });
  }

  /**
   * Empties a body that nobody needs, so that its connection can be used again, and returns what
   * it says, if it is short. Never rejects.
   */
  async drain(response: IncomingMessage): Promise<string> {
    const limits = { maxBytes: DRAIN_BYTES, timeout: DRAIN_TIME, clock: this.#clock };
    const body = await readBody(response, limits);
    if (body.kind === 'read') return body.bytes.toString();
    response.destroy();
    return '';
  }

  /** Ends what is under way; it is rejected. */
  abort(): void {
    for (const request of this.#active) request.destroy();
  }

  /** Breaks every connection, and makes no other. Idempotent. */
  close(): void {
    this.#closed = true;
    this.abort();
    this.#agent.destroy();
  }

  /** A URL as `request` takes it apart, once for the one that nearly all requests go to. */
  #target(url: URL): RequestOptions {
    return url === this.url ? this.#own : targetOf(url);
  }

  #once(url: URL, { method, headers, body, signal }: HttpRequest): Promise<IncomingMessage> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closed) return Promise.reject(notOpen());
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const given: OutgoingHttpHeaders = { ...this.#headers, ...headers };
      if (body !== undefined) given['content-length'] = Buffer.byteLength(body);
      let request: ClientRequest;
      try {
        const createConnection = this.#divert();
        const connection = createConnection ? { createConnection } : { agent: this.#agent };
        request = send({ ...this.#target(url), method, headers: given, ...connection });
      } catch (error) {
        reject(broken(error));
        return;
      }
      this.#active.add(request);
      const onAbort = (): void => {
        reject(signal?.reason);
        request.destroy();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      // A server may answer and hang up before it has read everything: the answer counts.
      request.on('error', (error) => reject(broken(error)));
      request.once('response', resolve);
      request.once('close', () => {
        this.#active.delete(request);
        signal?.removeEventListener('abort', onAbort);
      });
      request.end(body);
    });
  }
}

/**
 * Holds messages back until the server has taken `notifications/initialized`: on connections of
 * their own they could overtake it, and servers refuse what comes too early.
 */
export class Greeting {
  #taken: Promise<void> | undefined;

  /** @param send hands one message over; called at once unless the greeting is on its way */
  async pass(message: JSONRPCMessage, send: () => Promise<void>): Promise<void> {
    if (this.#taken !== undefined) await this.#taken;
    const sent = send();
    if ('method' in message && message.method === 'notifications/initialized') {
      // Should it fail, what follows is told so by its own failure.
      this.#taken = sent.catch(() => {});
    }
    return sent;
  }
}

/** The media type of an answer, without its parameters; an empty string when there is none. */
export const mediaType = (response: IncomingMessage): string =>
  (response.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

/** Why a body cannot be read as it is, or undefined. We never ask for a compressed one. */
export const encodingProblem = (response: IncomingMessage): LinkError | undefined => {
  const encoding = response.headers['content-encoding'] ?? 'identity';
  return encoding === 'identity' ? undefined : unusable(`it is encoded with ${encoding}`);
};
