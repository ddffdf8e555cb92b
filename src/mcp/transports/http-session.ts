/**
 * @module
 * The SDK's `Transport` of one session of the HTTP door, or, without sessions, of one POST.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type {
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { Timer } from '../../resilience/clock.ts';
import { TransientMap } from '../../resilience/transient.ts';
import type { ServedExtra } from '../instrument.ts';
import { CODE, cancellation, cancelledId, isRequest, isResponse } from '../jsonrpc.ts';
import type { Refusal } from './http-answer.ts';
import { PostExchange } from './http-exchange.ts';
import { type SseSettings, SseStream } from './sse.ts';

/** What a request gets whose session has ended, or never was. */
export const SESSION_NOT_FOUND: Refusal = {
  status: 404,
  code: CODE.sessionNotFound,
  // Existing clients know this text; they start a new session.
  message: 'Session not found',
};

/** Milliseconds that a client has to come back after it has lost its stream, before it counts as gone. */
const TIME_TO_RETURN = 10_000;

/** What a session transport needs. */
export interface SessionOptions extends SseSettings {
  /** Absent without sessions. */
  readonly id?: string;
  /** Who opened it; nobody else may use it. */
  readonly principal?: string | undefined;
  /** Called whenever its last running request has ended. */
  readonly onIdle?: () => void;
  /** Called once, when it has ended. */
  readonly onEnded: () => void;
}

/**
 * Routes messages: a response goes to the POST that asked, what belongs to a request goes to
 * the same place, everything else to the GET stream.
 *
 * A client that leaves before its answer aborts the work behind it. The specification advises
 * against taking that for a cancellation (2025-11-25, basic/transports: it "SHOULD NOT"), for
 * the sake of streams that can be resumed. Ours cannot, so the answer could reach nobody; the
 * next version (2026-07-28) makes it the rule.
 */
export class SessionTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport['onmessage'];
  /** Called when the client closed its stream, asks nothing, and did not come back in time. */
  onclientgone?: (() => void) | undefined;

  readonly sessionId?: string;
  readonly principal: string | undefined;
  /** Version that `initialize` agreed on. */
  protocolVersion: string | undefined;
  readonly #options: SessionOptions;
  readonly #exchanges = new TransientMap<RequestId, PostExchange>();
  #stream: SseStream | undefined;
  /** Runs while the client has lost its stream and given no sign of life since. */
  #return: Timer | undefined;
  #closed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    if (options.id !== undefined) this.sessionId = options.id;
    this.principal = options.principal;
  }

  /** Requests that wait for their answer. */
  get running(): number {
    return this.#exchanges.size;
  }

  /** True while the GET stream is open. */
  get streaming(): boolean {
    return this.#stream !== undefined;
  }

  /** True while a request with that id waits for its answer. */
  isRunning(id: RequestId): boolean {
    return this.#exchanges.has(id);
  }

  async start(): Promise<void> {}

  /** Serves a POST with requests in it; `res` is answered in time. */
  serve(
    messages: readonly JSONRPCMessage[],
    batch: boolean,
    extra: ServedExtra,
    res: ServerResponse,
  ): void {
    const ids = messages.filter(isRequest).map(({ id }) => id);
    const exchange = new PostExchange(res, {
      stream: this.#options,
      ids,
      batch,
      headers: () => this.#headers(),
      onEnd: (unanswered) => this.#abandon(ids, unanswered, exchange),
    });
    for (const id of ids) this.#exchanges.set(id, exchange);
    this.receive(messages, extra);
  }

  /** Hands messages on that need no answer; requests among them come through `serve`. */
  receive(messages: readonly JSONRPCMessage[], extra: ServedExtra): void {
    this.#return?.cancel();
    for (const message of messages) {
      this.onmessage?.(message, extra);
      const cancelled = cancelledId(message);
      if (cancelled !== undefined) this.#exchanges.take(cancelled)?.drop(cancelled);
    }
  }

  /** Opens the GET stream. There is one at a time; the caller has looked. */
  openStream(res: ServerResponse): void {
    const stream = new SseStream(res, this.#headers(), this.#options, () => {
      if (this.#stream === stream) this.#stream = undefined;
      if (!this.#closed && this.onclientgone) this.#awaitReturn();
    });
    this.#stream = stream;
    this.#return?.cancel();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (isResponse(message)) {
      if (message.id === undefined) return;
      if ('result' in message) this.#noteVersion(message.result.protocolVersion);
      // Gone: the client cancelled or left while the answer was on its way.
      return this.#exchanges.take(message.id)?.answer(message.id, message);
    }
    const related = options?.relatedRequestId;
    const stream = related === undefined ? this.#stream : this.#exchanges.get(related);
    if (stream) return stream.send(message);
    // A notification that nobody hears is lost, as ever; a request would be waited for.
    if (isRequest(message)) {
      throw new Error(
        `${message.method}: the client cannot be asked, since it has no stream open for it`,
      );
    }
  }

  async close(): Promise<void> {
    this.end(SESSION_NOT_FOUND);
  }

  /** Ends the session: running requests are aborted and answered with `reason`. */
  end(reason: Refusal): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#return?.cancel();
    const exchanges = new Set(this.#exchanges.values());
    for (const exchange of exchanges) exchange.fail(reason);
    this.#stream?.end();
    this.#stream = undefined;
    this.#options.onEnded();
    this.onclose?.();
  }

  #awaitReturn(): void {
    this.#return?.cancel();
    this.#return = this.#options.clock.setTimer(TIME_TO_RETURN, () => {
      if (this.running === 0) this.onclientgone?.();
    });
  }

  #headers(): OutgoingHttpHeaders {
    return this.sessionId === undefined || this.protocolVersion === undefined
      ? {}
      : { 'mcp-session-id': this.sessionId };
  }

  #noteVersion(version: unknown): void {
    if (this.protocolVersion === undefined && typeof version === 'string') {
      this.protocolVersion = version;
    }
  }

  #abandon(
    ids: readonly RequestId[],
    unanswered: readonly RequestId[],
    exchange: PostExchange,
  ): void {
    for (const id of ids) if (this.#exchanges.get(id) === exchange) this.#exchanges.take(id);
    const reason = this.#closed ? 'the session ended' : 'the client disconnected';
    for (const id of unanswered) this.onmessage?.(cancellation(id, reason));
    if (this.#exchanges.size === 0) this.#options.onIdle?.();
  }
}
