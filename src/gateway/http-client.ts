/**
 * @module
 * HTTP to one upstream, over connections that belong to it alone and end with it.
 *
 * It speaks HTTP/1.1 itself: through `node:http` a whole call costs a third more processor time
 * (docs/benchmarks-gateway.md), through `fetch` much more again, and undici gives up on headers and
 * on a silent body after 300 s, which would end long calls and every quiet stream.
 */
import type { Clock } from '../resilience/clock.ts';
import { TransientSet } from '../resilience/transient.ts';
import { VERSION } from '../version.ts';
import type { Divert } from './gateway-chaos.ts';
import type { HttpProxy } from './http-proxy.ts';
import type { HttpResponse } from './http-response.ts';
import { type HttpTarget, startHttpOperation } from './http-telemetry.ts';
import type { Exchange } from './http1-connection.ts';
import { Http1Pool } from './http1-pool.ts';
import { broken, notOpen, unusable } from './link-failure.ts';
import { hostOf, portOf } from './origin.ts';

/** One request. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Within the origin of the client. Default: the client's own URL. */
  readonly url?: URL;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request, and the reading of its answer. */
  readonly signal?: AbortSignal | undefined;
}

/** Redirects followed, all within one origin. */
const MAX_REDIRECTS = 3;
/** Bytes that are read of a body nobody needs; beyond that a new connection is cheaper. */
const DRAIN_BYTES = 64 * 1024;
/** Milliseconds given to a body nobody needs: the status must not wait for it. */
const DRAIN_TIME = 500;

const isRedirect = (status: number, method: HttpRequest['method']): boolean =>
  // The others turn a POST into a GET.
  status === 307 || status === 308 || (method === 'GET' && [301, 302, 303].includes(status));

/** Headers that say how a message is put on the connection, which nobody but the client knows. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What a value must not hold (RFC 9110 5.5): it could begin another header. */
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

const lineOf = (name: string, value: string): string => {
  if (!NO_VALUE.test(value)) return `\r\n${name}: ${value}`;
  const error = new TypeError(`Invalid character in header content ["${name}"]`);
  throw Object.assign(error, { code: 'ERR_INVALID_CHAR' });
};

/** Makes requests to one origin. */
export class HttpClient {
  readonly url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #clock: Clock;
  readonly #divert: Divert;
  readonly #target: HttpTarget;
  readonly #pool: Http1Pool;
  /** Stands in front of the path of every request. */
  #asked = '';
  readonly #active = new TransientSet<Exchange>();
  /** Made of the same objects as before, a head is the same: they are never changed. */
  #lastHead:
    | (Pick<HttpRequest, 'method' | 'headers'> & { readonly url: URL; readonly head: string })
    | undefined;
  #closed = false;

  /**
   * @param headers sent with every request; those of the request itself win
   * @param divert has requests go elsewhere. Default: none
   * @param proxy through which it is called. Default: none
   */
  constructor(
    url: string,
    headers: Readonly<Record<string, string>>,
    clock: Clock,
    divert: Divert = () => undefined,
    proxy?: HttpProxy,
  ) {
    this.#divert = divert;
    this.url = new URL(url);
    const own: Record<string, string> = {
      host: this.url.host,
      'user-agent': `mcp-resilience/${VERSION}`,
    };
    // Names of headers are the same in any case; twice in two cases they would be sent twice.
    for (const [name, value] of Object.entries(headers)) {
      const lower = name.toLowerCase();
      if (!OF_THE_CONNECTION.has(lower)) own[lower] = value;
    }
    this.#headers = own;
    this.#clock = clock;
    this.#target = {
      address: hostOf(this.url),
      port: portOf(this.url),
      scheme: this.url.protocol.slice(0, -1),
    };
    this.#pool = new Http1Pool(this.url, proxy);
    if (proxy === undefined || proxy.tunnel) return;
    // Whoever asks for us has to be told whom (RFC 9112 3.2.2).
    this.#asked = this.url.origin;
    if (proxy.authorization !== undefined) own['proxy-authorization'] = proxy.authorization;
  }

  /**
   * Resolves with the answer, whatever its status, once its head is there. Its body must be
   * read, or given to `drain`. Redirects within the origin are followed; one that leads to
   * another is refused, for the headers may hold credentials.
   *
   * @throws LinkError when there is no answer; the signal's reason on abort
   */
  async request(request: HttpRequest): Promise<HttpResponse> {
    let url = request.url ?? this.url;
    for (let hops = 0; ; hops += 1) {
      const response = await this.#once(url, request);
      const { location } = response.headers;
      if (location === undefined || !isRedirect(response.status, request.method)) return response;
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

  /**
   * Empties a body that nobody needs, so that its connection can be used again, and returns what
   * it says, if it is short. Never rejects.
   */
  async drain(response: HttpResponse): Promise<string> {
    const body = await response.read(DRAIN_BYTES, DRAIN_TIME, this.#clock);
    return body.kind === 'read' ? body.bytes.toString() : '';
  }

  /** Ends what is under way; it is rejected. */
  abort(): void {
    for (const exchange of this.#active.values()) exchange.abort();
  }

  /** Breaks every connection, and makes no other. Idempotent. */
  close(): void {
    this.#closed = true;
    this.abort();
    this.#pool.close();
  }

  async #once(url: URL, { method, headers, body, signal }: HttpRequest): Promise<HttpResponse> {
    signal?.throwIfAborted();
    if (this.#closed) throw notOpen();
    const traced: Record<string, string> = {};
    const operation = startHttpOperation(method, url, this.#target, traced);
    try {
      const head = this.#headOf(method, url, headers, traced, body);
      const taken = this.#pool.take(this.#divert(), signal);
      const connection = taken instanceof Promise ? await taken : taken;
      // It may have taken its time: what nobody waits for any more is not sent.
      if (signal?.aborted || this.#closed) {
        connection.destroy();
        throw notOpen();
      }
      const exchange: Exchange = connection.send(head, body, {
        onHead: (status) => operation?.responded(status),
        onEnd: (error) => {
          this.#active.leave(place);
          signal?.removeEventListener('abort', onAbort);
          operation?.end(error);
        },
      });
      const onAbort = (): void => exchange.abort(signal?.reason);
      const place = this.#active.add(exchange);
      signal?.addEventListener('abort', onAbort, { once: true });
      return await exchange.response;
    } catch (error) {
      operation?.end(error);
      if (signal?.aborted) throw signal.reason;
      throw broken(error);
    }
  }

  /** @param traced the context of the trace, which wins over headers of the same names */
  #headOf(
    method: HttpRequest['method'],
    url: URL,
    headers: Readonly<Record<string, string>>,
    traced: Readonly<Record<string, string>>,
    body: string | undefined,
  ): string {
    const last = this.#lastHead;
    let head = '';
    if (last?.method === method && last.url === url && last.headers === headers) head = last.head;
    else {
      head = this.#linesOf(method, url, headers);
      this.#lastHead = { method, url, headers, head };
    }
    for (const [name, value] of Object.entries(traced)) {
      if (name in headers || name in this.#headers) {
        head = this.#linesOf(method, url, { ...headers, ...traced });
        break;
      }
      head += lineOf(name, value);
    }
    if (body !== undefined) head += `\r\ncontent-length: ${Buffer.byteLength(body)}`;
    return head;
  }

  #linesOf(
    method: string,
    { pathname, search }: URL,
    headers: Readonly<Record<string, string>>,
  ): string {
    let head = `${method} ${this.#asked}${pathname}${search} HTTP/1.1`;
    for (const [name, value] of Object.entries(this.#headers)) {
      if (!(name in headers)) head += lineOf(name, value);
    }
    for (const [name, value] of Object.entries(headers)) head += lineOf(name, value);
    return head;
  }
}
