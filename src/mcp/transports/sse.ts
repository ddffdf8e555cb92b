/**
 * @module
 * An event stream on a response (2025-11-25, basic/transports; WHATWG HTML, "Server-sent
 * events"). Events carry no id: a stream that broke off is not resumed.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../resilience/clock.ts';
import { COMMON_HEADERS } from './http-answer.ts';

/** Settings of an event stream. */
export interface SseSettings {
  readonly clock: Clock;
  /** Milliseconds between comments. */
  readonly keepAliveInterval: number;
  /** Bytes that may wait for the client to read. */
  readonly maxUnreadBytes: number;
}

const HEADERS: OutgoingHttpHeaders = {
  ...COMMON_HEADERS,
  // A proxy that compresses or buffers would hold events back.
  'cache-control': 'no-store, no-transform',
  'content-type': 'text/event-stream',
  'x-accel-buffering': 'no',
};

/** One event stream, from its headers to its end. */
export class SseStream {
  readonly #res: ServerResponse;
  readonly #settings: SseSettings;
  #timer: Timer | undefined;
  #drained: Promise<void> | undefined;
  #largest = 0;

  /** Sends the headers. `onClose` is called once, when the stream has ended, by whichever side. */
  constructor(
    res: ServerResponse,
    headers: OutgoingHttpHeaders,
    settings: SseSettings,
    onClose: () => void = () => {},
  ) {
    this.#res = res;
    this.#settings = settings;
    res.once('close', () => {
      this.#timer?.cancel();
      onClose();
    });
    res.writeHead(200, { ...HEADERS, ...headers });
    res.flushHeaders();
    this.#keepAlive();
  }

  /**
   * Sends a message as one event. Resolves when the client keeps up, so that awaiting it is
   * backpressure; one that lets `maxUnreadBytes` pile up is disconnected.
   */
  send(message: unknown): Promise<void> {
    return this.#write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  }

  /** Ends the stream, after what has been sent. */
  end(): void {
    this.#timer?.cancel();
    this.#res.end();
  }

  #write(text: string): Promise<void> {
    const res = this.#res;
    if (res.writableEnded || res.destroyed) return Promise.resolve();
    // On top of the largest message so far: one alone may be as large as it likes, and so may
    // be what comes while it is under way.
    if (res.writableLength > this.#settings.maxUnreadBytes + this.#largest) {
      res.destroy();
      return Promise.resolve();
    }
    this.#largest = Math.max(this.#largest, text.length);
    if (res.write(text)) return Promise.resolve();
    // One pair of listeners, however many wait.
    this.#drained ??= new Promise<void>((resolve) => {
      const settle = () => {
        res.off('drain', settle).off('close', settle);
        this.#drained = undefined;
        resolve();
      };
      res.on('drain', settle).on('close', settle);
    });
    return this.#drained;
  }

  #keepAlive(): void {
    const { clock, keepAliveInterval } = this.#settings;
    this.#timer = clock.setTimer(keepAliveInterval, () => {
      void this.#write(': keep-alive\n\n');
      this.#keepAlive();
    });
  }
}
