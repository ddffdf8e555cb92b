/**
 * @module
 * The link to a Streamable HTTP server (2025-11-25, basic/transports). Each message is a POST of
 * its own; the answer to a request comes as JSON or on a stream that can be resumed; what the
 * server has to say unasked comes on the stream of a GET.
 */
import type { JSONRPCMessage, RequestId } from '../mcp/jsonrpc.ts';
import type { Clock, Random } from '../resilience/clock.ts';
import type { Divert } from './gateway-chaos.ts';
import { Greeting } from './greeting.ts';
import { followAnswer, readAnswer } from './http-answer.ts';
import { HttpClient } from './http-client.ts';
import type { HttpProxy } from './http-proxy.ts';
import type { HttpResponse } from './http-response.ts';
import { runServerStream } from './http-server-stream.ts';
import type { HttpSession } from './http-session.ts';
import { forgotten, type LinkError, notOpen, refused, unusable } from './link-failure.ts';
import { answeredId, parseMessages, type Report, requestId } from './link-message.ts';
import { portOf } from './origin.ts';
import type { Link, LinkEnd } from './types.ts';

/** Settings of an HTTP link. */
export interface HttpLinkSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly report: Report;
  /** Has requests go elsewhere. Default: none. */
  readonly divert?: Divert | undefined;
  /** Through which it is called. Default: none. */
  readonly proxy?: HttpProxy | undefined;
}

const ACCEPT = 'application/json, text/event-stream';
/** Milliseconds that a server has to answer the DELETE of its session. */
const DELETE_TIME = 2_000;

/**
 * A server that no longer knows the session (404) ends the link with `session`: the message that
 * met it was not taken, and every later one is refused with `sessionLost` and was not sent.
 * Streams that still run may bring their answers first; `close` does not wait for them.
 *
 * `send` of a request resolves when the server has accepted it, which one that answers with JSON
 * does not show before it answers.
 */
export class HttpLink implements Link, HttpSession {
  onmessage: Link['onmessage'];
  onlost: Link['onlost'];
  onend: Link['onend'];
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly maxBytes: number;

  readonly #report: Report;
  readonly #closing = new AbortController();
  readonly #greeting = new Greeting();
  #state: 'new' | 'open' | 'forgotten' | 'closed' = 'new';
  #sessionId: string | undefined;
  #protocolVersion: string | undefined;
  /** The same for every message, until something changes in them. */
  #postHeaders: Readonly<Record<string, string>> | undefined;
  /** Messages and answers under way. */
  #underWay = 0;
  #greeted = false;
  #listening = false;
  #forgottenBy = '';
  #ended = false;
  #closed: Promise<void> | undefined;

  constructor(settings: HttpLinkSettings) {
    const { url, headers, maxMessageBytes, clock, random, report, divert, proxy } = settings;
    this.client = new HttpClient(url, headers, clock, divert, proxy);
    this.clock = clock;
    this.random = random;
    this.maxBytes = maxMessageBytes;
    this.#report = report;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get facts(): Link['facts'] {
    const { url } = this.client;
    return {
      address: url.hostname,
      port: portOf(url),
      ...(this.#sessionId !== undefined && { sessionId: this.#sessionId }),
    };
  }

  /** Connects nothing yet: the first message does. */
  async open(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#state === 'new') this.#state = 'open';
  }

  async send(message: JSONRPCMessage, signal?: AbortSignal): Promise<void> {
    if (this.#state === 'forgotten') throw forgotten();
    if (this.#state !== 'open') throw notOpen();
    this.#underWay += 1;
    try {
      await this.#greeting.pass(message, () => this.#post(message, signal));
    } finally {
      this.#settle();
    }
  }

  initialized(protocolVersion: string): void {
    this.#protocolVersion = protocolVersion;
    this.#postHeaders = undefined;
    this.#listen();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  headers(more: Readonly<Record<string, string>>): Record<string, string> {
    return {
      ...more,
      ...(this.#sessionId !== undefined && { 'mcp-session-id': this.#sessionId }),
      ...(this.#protocolVersion !== undefined && { 'mcp-protocol-version': this.#protocolVersion }),
    };
  }

  deliver(message: JSONRPCMessage, related: RequestId | undefined): void {
    if (!this.#ended && this.#state !== 'closed') this.onmessage?.(message, related);
  }

  ignore(text: string): void {
    this.#report('no-message', `sent what is no JSON-RPC message (${text.length} characters)`);
  }

  async refuse(response: HttpResponse): Promise<LinkError> {
    return this.#refusal(response, await this.client.drain(response));
  }

  #refusal(response: HttpResponse, text: string): LinkError {
    const failure = refused(response, this.client.url.origin, text, this.#sessionId !== undefined);
    if (failure.sessionLost) this.#forget(`HTTP ${failure.status}`);
    return failure;
  }

  async #post(message: JSONRPCMessage, signal: AbortSignal | undefined): Promise<void> {
    this.#postHeaders ??= this.headers({ accept: ACCEPT, 'content-type': 'application/json' });
    const headers = this.#postHeaders;
    const body = JSON.stringify(message);
    const response = await this.client.request({ method: 'POST', headers, body, signal });
    await this.#accept(message, response, signal);
  }

  async #accept(
    message: JSONRPCMessage,
    response: HttpResponse,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const id = requestId(message);
    const { status } = response;
    if (status < 200 || status > 299) {
      const text = await this.client.drain(response);
      if (id === undefined || !this.#isAnswer(status, text, id))
        throw this.#refusal(response, text);
      return;
    }
    if (id === undefined) {
      await this.client.drain(response);
      if ('method' in message && message.method === 'notifications/initialized') {
        this.#greeted = true;
        this.#listen();
      }
      return;
    }
    if ('method' in message && message.method === 'initialize') {
      this.#sessionId = response.headers['mcp-session-id'];
      this.#postHeaders = undefined;
    }
    const type = response.mediaType;
    const problem = response.encodingProblem;
    if (problem === undefined && type === 'text/event-stream') {
      this.#underWay += 1;
      void followAnswer(this, response, { id, signal }).then((failure) => {
        if (failure !== undefined && !this.#ended) this.onlost?.(id, failure);
        this.#settle();
      });
      return;
    }
    if (problem !== undefined || type !== 'application/json') {
      await this.client.drain(response);
      const what = type === '' ? 'without a content type' : type;
      throw problem ?? unusable(`it is ${what}, neither JSON nor an event stream`);
    }
    await readAnswer(this, response, { id, signal });
  }

  /**
   * Delivers the JSON-RPC error in the body of an answer without success, where it is what the
   * server has to say to the request, and not what HTTP has to say of the connection.
   */
  #isAnswer(status: number, text: string, id: RequestId): boolean {
    const http = status < 400 || status > 499 || [401, 403, 404, 408, 429].includes(status);
    if (http) return false;
    const message = parseMessages(text)?.find((one) => answeredId(one) === id);
    if (message === undefined || !('error' in message)) return false;
    this.deliver(message, id);
    return true;
  }

  /** The server wants to be told that we are ready before it is asked for its stream. */
  #listen(): void {
    const ready = this.#greeted && this.#protocolVersion !== undefined;
    if (!ready || this.#listening || this.#state !== 'open') return;
    this.#listening = true;
    void runServerStream(this);
  }

  #forget(reason: string): void {
    if (this.#state !== 'open') return;
    this.#state = 'forgotten';
    this.#forgottenBy = reason;
    this.#endIfForgotten();
  }

  #settle(): void {
    this.#underWay -= 1;
    this.#endIfForgotten();
  }

  #endIfForgotten(): void {
    if (this.#state !== 'forgotten' || this.#underWay > 0) return;
    // Whoever sent the message that met it is to hear first that it was not taken.
    setImmediate(() => {
      this.#closing.abort();
      this.client.close();
      this.#end({ kind: 'session', reason: this.#forgottenBy });
    });
  }

  async #close(): Promise<void> {
    const leaves = this.#state === 'open' && this.#sessionId !== undefined;
    this.#state = 'closed';
    this.#closing.abort();
    this.client.abort();
    if (leaves) await this.#deleteSession();
    this.client.close();
    this.#end({ kind: 'closed', reason: 'closed' });
  }

  async #deleteSession(): Promise<void> {
    const limit = new AbortController();
    const timer = this.clock.setTimer(DELETE_TIME, () => limit.abort(), true);
    try {
      const headers = this.headers({});
      const { signal } = limit;
      await this.client.drain(await this.client.request({ method: 'DELETE', headers, signal }));
    } catch {
      // The server may not allow it (405), or be gone: it forgets the session some day.
    } finally {
      timer.cancel();
    }
  }

  #end(end: LinkEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onend?.(end);
  }
}
