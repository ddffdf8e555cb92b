/**
 * @module
 * One POST with requests in it, until the last of them is answered.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { Timer } from '../../resilience/clock.ts';
import { errorResponse } from '../jsonrpc.ts';
import { COMMON_HEADERS, type Refusal, sendJson } from './http-answer.ts';
import { type SseSettings, SseStream } from './sse.ts';

/** What an exchange needs to know. */
export interface ExchangeOptions {
  /** Of the stream that it may become. */
  readonly stream: SseSettings;
  /** Ids of the requests in the POST. */
  readonly ids: readonly RequestId[];
  /** True if they came as an array, which is then how they are answered. */
  readonly batch: boolean;
  /** Headers of the answer, asked for when it begins. */
  readonly headers: () => OutgoingHttpHeaders;
  /** Called once, when nothing more can be sent, with the requests that were left unanswered. */
  readonly onEnd: (unanswered: readonly RequestId[]) => void;
}

/**
 * Answers with plain JSON when the responses are all there is to send, and becomes an event
 * stream with the first message that precedes them. It also becomes one after a
 * `keepAliveInterval` in silence, since clients and proxies do not wait for headers for ever.
 */
export class PostExchange {
  readonly #res: ServerResponse;
  readonly #options: ExchangeOptions;
  readonly #open: Set<RequestId>;
  /** Responses held back until it is certain that nothing but responses comes. */
  #held: JSONRPCMessage[] = [];
  #stream: SseStream | undefined;
  #silence: Timer | undefined;
  #ended = false;

  constructor(res: ServerResponse, options: ExchangeOptions) {
    this.#res = res;
    this.#options = options;
    this.#open = new Set(options.ids);
    const { clock, keepAliveInterval } = options.stream;
    this.#silence = clock.setTimer(keepAliveInterval, () => void this.#upgrade());
    res.once('close', () => this.#finish());
  }

  /** Takes the response to one of the requests. */
  async answer(id: RequestId, response: JSONRPCMessage): Promise<void> {
    if (this.#ended || !this.#open.delete(id)) return;
    if (this.#stream) {
      const sent = this.#stream.send(response);
      this.#endIfDone();
      return sent;
    }
    this.#held.push(response);
    this.#endIfDone();
  }

  /** Sends a notification or a request that belongs to one of the requests. */
  send(message: JSONRPCMessage): Promise<void> {
    return this.#ended ? Promise.resolve() : this.#upgrade().send(message);
  }

  /** A request was cancelled: no response to it will come. */
  drop(id: RequestId): void {
    if (this.#open.delete(id)) this.#endIfDone();
  }

  /** Ends the exchange from our side; what is still open is answered with an error. */
  fail(refusal: Refusal): void {
    if (this.#ended) return;
    const { status, code = status, message } = refusal;
    const errors = [...this.#open].map((id) => errorResponse(id, code, message));
    const stream = this.#stream;
    if (stream) {
      for (const error of errors) void stream.send(error);
      stream.end();
    } else {
      const all = [...this.#held, ...errors];
      this.#sendHeld(this.#held.length > 0 ? 200 : status, all, refusal.headers);
    }
    this.#finish();
  }

  #upgrade(): SseStream {
    if (!this.#stream) {
      this.#silence?.cancel();
      this.#stream = new SseStream(this.#res, this.#options.headers(), this.#options.stream);
      for (const response of this.#held) void this.#stream.send(response);
      this.#held = [];
    }
    return this.#stream;
  }

  #endIfDone(): void {
    if (this.#open.size > 0 || this.#ended) return;
    if (this.#stream) {
      this.#stream.end();
    } else if (this.#held.length > 0) {
      this.#sendHeld(200, this.#held);
    } else {
      // Everything was cancelled. A POST with requests must be answered with JSON or a stream,
      // and only a stream may be empty.
      this.#res.writeHead(200, {
        ...COMMON_HEADERS,
        'content-type': 'text/event-stream',
        ...this.#options.headers(),
      });
      this.#res.end();
    }
    this.#finish();
  }

  #sendHeld(status: number, messages: readonly unknown[], headers?: OutgoingHttpHeaders): void {
    const body = this.#options.batch ? messages : messages[0];
    sendJson(this.#res, status, body, { ...this.#options.headers(), ...headers });
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#silence?.cancel();
    const unanswered = [...this.#open];
    this.#open.clear();
    this.#options.onEnd(unanswered);
  }
}
