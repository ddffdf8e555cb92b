/**
 * @module
 * One connection of HTTP/1.1, on which requests follow each other.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Socket } from 'node:net';
import { HttpResponse } from './http-response.ts';
import { HeadReader, type ResponseHeaders } from './http1-head.ts';
import { type ResponseEvents, ResponseParser } from './http1-response.ts';

/** A request under way. */
export interface Exchange {
  /** Its answer, once the head is there. */
  readonly response: Promise<HttpResponse>;
  /** Breaks the connection, and rejects with `reason` what is not answered yet. */
  abort(reason?: unknown): void;
}

/** Is told of an exchange, before those that wait for it. */
export interface ExchangeObserver {
  onHead(status: number): void;
  /** @param error what broke it; none where it is complete, and where we gave it up */
  onEnd(error?: unknown): void;
}

/** What becomes of a connection. */
export interface ConnectionEvents {
  /** The answer is complete, and the connection free for the next request. */
  onFree(connection: Http1Connection): void;
  /** It is gone. Once, after the exchange on it has ended. */
  onGone(connection: Http1Connection): void;
}

/** As `node:http` names a connection that is lost before the head of the answer, and after it. */
export const reset = (message: 'socket hang up' | 'aborted'): Error =>
  Object.assign(new Error(message), { code: 'ECONNRESET' });

const BEYOND_ASCII = /[\x80-\xff]/;

/** Milliseconds that an idle connection is kept: servers commonly drop theirs after 5 s. */
const IDLE_TIME = 4_000;

/** Seconds in `Keep-Alive: timeout=5`. */
const HINT = /(?:^|[,\s])timeout=(\d+)/i;

/** One request and its answer. */
class Running implements Exchange {
  readonly response: Promise<HttpResponse>;
  readonly #settle: PromiseWithResolvers<HttpResponse>;
  readonly #connection: Http1Connection;
  readonly #observer: ExchangeObserver;
  /** What is called for the answer is called in the async context of the request. */
  readonly #request = new AsyncResource('HttpRequest', { requireManualDestroy: true });
  #answer: HttpResponse | undefined;
  #over = false;

  constructor(connection: Http1Connection, observer: ExchangeObserver) {
    this.#settle = Promise.withResolvers();
    this.response = this.#settle.promise;
    this.#connection = connection;
    this.#observer = observer;
  }

  get answered(): boolean {
    return this.#answer !== undefined;
  }

  head(status: number, headers: ResponseHeaders): void {
    this.#observer.onHead(status);
    this.#answer = new HttpResponse(status, headers, this.#connection);
    this.#settle.resolve(this.#answer);
  }

  body(bytes: Buffer): void {
    const answer = this.#answer;
    if (answer !== undefined) this.#request.runInAsyncScope(answer.push, answer, bytes);
  }

  /**
   * @param error what ended it early; undefined when it is complete
   * @param givenUp whether it was ended by us, and not by what the server did
   */
  end(error?: unknown, givenUp = false): void {
    if (this.#over) return;
    this.#over = true;
    this.#observer.onEnd(givenUp ? undefined : error);
    const answer = this.#answer;
    if (answer === undefined) this.#settle.reject(error);
    else this.#request.runInAsyncScope(answer.end, answer, error === undefined, error);
  }

  abort(reason?: unknown): void {
    this.#connection.destroy(reason);
  }
}

/** A connection, in use by one exchange or free. */
export class Http1Connection {
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #heads = new HeadReader();
  #exchange: Running | undefined;
  #parser: ResponseParser | undefined;
  /** Milliseconds that it is kept when it is free. */
  #idleTime = IDLE_TIME;
  #gone = false;

  constructor(socket: Socket, events: ConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('error', (error) => this.#end(error));
    // Half a connection is none: we have nothing more to say to who does not listen.
    socket.on('end', () => this.#finish());
    socket.on('close', () => this.#end());
    // Set once: whatever is read or written begins it anew, and it means nothing in an exchange.
    socket.setTimeout(IDLE_TIME);
    socket.on('timeout', () => {
      if (this.#exchange === undefined) this.#end();
    });
  }

  /**
   * Sends a request. The connection must be free.
   *
   * @param head everything up to the empty line, without it
   */
  send(head: string, body: string | undefined, observer: ExchangeObserver): Exchange {
    const exchange = new Running(this, observer);
    this.#exchange = exchange;
    const events: ResponseEvents = {
      onHead: (status, headers) => this.#head(status, headers),
      onBody: (bytes) => exchange.body(bytes),
      onEnd: (reusable) => this.#complete(reusable),
    };
    this.#parser = new ResponseParser(events, this.#heads);
    const socket = this.#socket;
    socket.ref();
    const text = `${head}\r\n\r\n`;
    if (!BEYOND_ASCII.test(text)) socket.write(body === undefined ? text : text + body, 'utf8');
    else {
      // A head is bytes (RFC 9110 5.5), a body is UTF-8.
      socket.cork();
      socket.write(text, 'latin1');
      if (body !== undefined) socket.write(body, 'utf8');
      socket.uncork();
    }
    return exchange;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Breaks it. What runs on it ends with `reason`, or as by a reset without one. */
  destroy(reason?: unknown): void {
    this.#end(reason, reason === undefined);
  }

  #head(status: number, headers: ResponseHeaders): void {
    const hint = HINT.exec(headers['keep-alive'] ?? '')?.[1];
    if (hint !== undefined) {
      // A second less, as `node:http` has it: what we send then must not cross their end.
      const time = Math.min(IDLE_TIME, (Number(hint) - 1) * 1_000);
      if (time !== this.#idleTime && time > 0) this.#socket.setTimeout(time);
      this.#idleTime = time;
    }
    this.#exchange?.head(status, headers);
  }

  #read(bytes: Buffer): void {
    if (this.#parser === undefined) {
      // Nobody asked: what would come next on it could be taken for the answer to another.
      if (!this.#gone) this.#end(reset('aborted'));
      return;
    }
    try {
      this.#parser.execute(bytes);
    } catch (error) {
      this.#end(error);
    }
  }

  #finish(): void {
    if (this.#parser?.finish() !== true) this.#end();
  }

  #complete(reusable: boolean): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#parser = undefined;
    // A server may answer before it has read everything; what it did not read is still to be sent.
    const kept = reusable && this.#idleTime > 0 && this.#socket.writableLength === 0;
    if (kept && !this.#gone) {
      this.#socket.unref();
      this.#events.onFree(this);
    } else this.#end();
    exchange?.end();
  }

  #end(error?: unknown, givenUp = false): void {
    if (this.#gone) return;
    this.#gone = true;
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#parser = undefined;
    this.#socket.destroy();
    exchange?.end(error ?? reset(exchange.answered ? 'aborted' : 'socket hang up'), givenUp);
    this.#events.onGone(this);
  }
}
