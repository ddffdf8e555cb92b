/**
 * @module
 * The link to a server of HTTP+SSE, the transport of 2024-11-05: everything the server says comes
 * on one stream, whose first event names the address to which messages are posted.
 */
import type { EventSourceMessage } from 'eventsource-parser';
import type { JSONRPCMessage } from '../mcp/jsonrpc.ts';
import { Greeting } from './greeting.ts';
import { HttpClient } from './http-client.ts';
import type { HttpLinkSettings } from './http-link.ts';
import type { HttpResponse } from './http-response.ts';
import { messagesOf } from './http-session.ts';
import {
  broken,
  cutShort,
  type LinkError,
  notOpen,
  refused,
  tooLong,
  unusable,
} from './link-failure.ts';
import type { Report } from './link-message.ts';
import { portOf } from './origin.ts';
import { type EventStreamEnd, readEvents } from './sse-reader.ts';
import type { Link, LinkEnd } from './types.ts';

const foreignEndpoint = (): LinkError =>
  unusable('it names an address to post to that is not of its own origin', {
    severity: 'permanent',
    retryable: false,
    delivery: 'refused',
  });

/** Ends with its stream (`lost`): what was asked and not answered by then is lost with it. */
export class SseLink implements Link {
  onmessage: Link['onmessage'];
  onlost: Link['onlost'];
  onend: Link['onend'];

  readonly #client: HttpClient;
  readonly #maxBytes: number;
  readonly #report: Report;
  readonly #greeting = new Greeting();
  #endpoint: URL | undefined;
  #protocolVersion: string | undefined;
  #state: 'new' | 'opening' | 'open' | 'ended' = 'new';

  constructor(settings: Omit<HttpLinkSettings, 'random'>) {
    const { url, headers, maxMessageBytes, clock, report, divert, proxy } = settings;
    this.#client = new HttpClient(url, headers, clock, divert, proxy);
    this.#maxBytes = maxMessageBytes;
    this.#report = report;
  }

  get facts(): Link['facts'] {
    const { url } = this.#client;
    return { address: url.hostname, port: portOf(url) };
  }

  async open(signal?: AbortSignal): Promise<void> {
    if (this.#state !== 'new') throw notOpen();
    this.#state = 'opening';
    try {
      await this.#connect(signal);
      this.#state = 'open';
    } catch (error) {
      this.#state = 'ended';
      this.#client.close();
      throw error;
    }
  }

  async send(message: JSONRPCMessage, signal?: AbortSignal): Promise<void> {
    if (this.#state !== 'open') throw notOpen();
    await this.#greeting.pass(message, () => this.#post(message, signal));
  }

  initialized(protocolVersion: string): void {
    this.#protocolVersion = protocolVersion;
  }

  async close(): Promise<void> {
    this.#end({ kind: 'closed', reason: 'closed' });
  }

  async #post(message: JSONRPCMessage, signal: AbortSignal | undefined): Promise<void> {
    const response = await this.#client.request({
      method: 'POST',
      ...(this.#endpoint && { url: this.#endpoint }),
      headers: this.#headers({ 'content-type': 'application/json' }),
      body: JSON.stringify(message),
      signal,
    });
    const { status } = response;
    const text = await this.#client.drain(response);
    if (status >= 200 && status < 300) return;
    const failure = refused(response, this.#client.url.origin, text, true);
    if (failure.sessionLost) {
      // Whoever sent the message is to hear first that it was not taken.
      setImmediate(() => this.#end({ kind: 'session', reason: `HTTP ${status}` }));
    }
    throw failure;
  }

  #headers(more: Readonly<Record<string, string>>): Record<string, string> {
    const version = this.#protocolVersion;
    return { ...more, ...(version !== undefined && { 'mcp-protocol-version': version }) };
  }

  /** Resolves when the server has said where to post. */
  async #connect(caller: AbortSignal | undefined): Promise<void> {
    caller?.throwIfAborted();
    // The stream outlives its opening, which alone is what the caller's signal may end.
    const opening = new AbortController();
    const giveUp = (): void => opening.abort(caller?.reason);
    caller?.addEventListener('abort', giveUp, { once: true });
    try {
      const headers = this.#headers({ accept: 'text/event-stream' });
      const { signal } = opening;
      const response = await this.#client.request({ method: 'GET', headers, signal });
      const problem = await this.#problemOf(response);
      if (problem !== undefined) throw problem;
      await this.#listen(response);
    } catch (error) {
      caller?.throwIfAborted();
      throw error;
    } finally {
      caller?.removeEventListener('abort', giveUp);
    }
  }

  /** Reads the stream to its end. Resolves with the endpoint, before anything else is taken. */
  #listen(response: HttpResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const onEvent = (event: EventSourceMessage): void => {
        if (event.event !== 'endpoint') {
          for (const message of messagesOf(event, this)) this.onmessage?.(message, undefined);
        } else if (this.#endpoint === undefined) {
          this.#endpoint = this.#readEndpoint(event.data);
          if (this.#endpoint === undefined) reject(foreignEndpoint());
          else resolve();
        }
      };
      void readEvents(response, { maxLength: this.#maxBytes, onEvent }).then((end) => {
        const failure = this.#lost(end);
        // Settled already when the endpoint was known.
        reject(failure);
        const reason = end.kind === 'ended' ? 'the event stream ended' : failure.message;
        if (this.#state === 'open') this.#end({ kind: 'lost', reason });
      });
    });
  }

  ignore(text: string): void {
    this.#report('no-message', `sent what is no JSON-RPC message (${text.length} characters)`);
  }

  async #problemOf(response: HttpResponse): Promise<LinkError | undefined> {
    const { status } = response;
    if (status !== 200) {
      const text = await this.#client.drain(response);
      return refused(response, this.#client.url.origin, text, false);
    }
    const { encodingProblem, mediaType: type } = response;
    if (type === 'text/event-stream' && encodingProblem === undefined) return undefined;
    await this.#client.drain(response);
    const details = { severity: 'permanent', retryable: false, delivery: 'refused' } as const;
    const what = type === '' ? 'without a content type' : type;
    return encodingProblem ?? unusable(`it is ${what}, not an event stream`, details);
  }

  /** Within the origin alone: the headers may hold credentials. */
  #readEndpoint(text: string): URL | undefined {
    const { href, origin } = this.#client.url;
    const url = URL.canParse(text, href) ? new URL(text, href) : undefined;
    return url?.origin === origin ? url : undefined;
  }

  #lost(end: EventStreamEnd): LinkError {
    if (end.kind === 'too-long') return tooLong(this.#maxBytes);
    return end.error === undefined ? cutShort() : broken(end.error);
  }

  #end(end: LinkEnd): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#client.close();
    this.onend?.(end);
  }
}
