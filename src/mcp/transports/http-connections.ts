/**
 * @module
 * The connections of an HTTP door: how many there may be, and what one hears that breaks the
 * rules of HTTP itself.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../resilience/clock.ts';
import { TransientSet } from '../../resilience/transient.ts';
import { CODE, errorResponse } from '../jsonrpc.ts';
import { COMMON_HEADERS } from './http-answer.ts';

/** Node's codes of what it refuses before a request exists; anything else is a 400. */
const STATUS_OF: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
};

const ADVICE: Readonly<Record<number, string>> = {
  400: 'the request is not valid HTTP/1.1',
  408: 'the request was not complete in time',
  431: 'the headers are too large; send fewer or shorter ones',
};

/** Counts connections and knows the response that each is busy with. */
export class Connections {
  readonly #max: number;
  readonly #open = new Set<Duplex>();
  readonly #excess = new WeakSet<Duplex>();
  readonly #responses = new TransientSet<{ readonly res: ServerResponse; readonly of: Duplex }>();
  #onFlushed: () => void = () => {};

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#open.size;
  }

  opened(socket: Duplex): void {
    if (this.#open.size >= this.#max) this.#excess.add(socket);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
  }

  /** A response on that connection has begun. */
  began(socket: Duplex, res: ServerResponse): void {
    const place = this.#responses.add({ res, of: socket });
    res.once('close', () => {
      this.#responses.leave(place);
      if (this.#responses.size === 0) this.#onFlushed();
    });
  }

  /** True for a connection that came when there were enough, while there still are. */
  isExcess(socket: Duplex): boolean {
    return this.#excess.has(socket) && this.#open.size > this.#max;
  }

  /** Resolves when every response has been written out, or after `timeout` milliseconds. */
  flushed(clock: Clock, timeout: number): Promise<void> {
    if (this.#responses.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = clock.setTimer(timeout, resolve);
      this.#onFlushed = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /**
   * Answers what is no request. If the connection is in the middle of an answer there is no
   * place for another one, and it just ends.
   */
  answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    const begun = this.#responses.values().some(({ res, of }) => of === socket && res.headersSent);
    if (error.code === 'ECONNRESET' || !socket.writable || begun) {
      socket.destroy();
      return;
    }
    const status = STATUS_OF[error.code ?? ''] ?? 400;
    const reason = STATUS_CODES[status] ?? 'Bad Request';
    const code = status === 400 ? CODE.invalidRequest : status;
    const body = JSON.stringify(errorResponse(null, code, `${reason}: ${ADVICE[status]}`));
    const headers = {
      ...COMMON_HEADERS,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${reason}\r\n${lines.join('')}\r\n${body}`, () =>
      socket.destroy(),
    );
  }
}
