/**
 * @module
 * The answer to one HTTP request: its head, and its body as it comes.
 */

import { ByteCollector } from '../mcp/byte-collector.ts';
import type { Clock } from '../resilience/clock.ts';
import type { ResponseHeaders } from './http1-head.ts';
import { type LinkError, unusable } from './link-failure.ts';

/** Takes a body. Called until `onEnd`, which comes once. */
export interface BodySink {
  onData(bytes: Buffer): void;
  /**
   * @param complete whether the whole body has come
   * @param error what broke it, where that is known
   */
  onEnd(complete: boolean, error?: unknown): void;
}

/** The connection that an answer comes on. */
interface Source {
  pause(): void;
  resume(): void;
  destroy(): void;
}

/** Bytes kept for whoever is about to read; beyond that the server has to wait. */
const MAX_HELD = 64 * 1024;

/** What became of reading a body. `gone`: the connection was lost before it was complete. */
export type ReadBody =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' | 'timeout' | 'gone' };

/** An answer. Its body is to be read once, by `consume` or `read`, or given up by `destroy`. */
export class HttpResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly #source: Source;
  #held: Buffer[] = [];
  #heldSize = 0;
  #sink: BodySink | undefined;
  #end: { readonly complete: boolean; readonly error?: unknown } | undefined;

  constructor(status: number, headers: ResponseHeaders, source: Source) {
    this.status = status;
    this.headers = headers;
    this.#source = source;
  }

  /** Media type in lower case, without its parameters; an empty string when there is none. */
  get mediaType(): string {
    return (this.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  }

  /** Why the body cannot be read as it is, or undefined. We never ask for a compressed one. */
  get encodingProblem(): LinkError | undefined {
    const encoding = this.headers['content-encoding']?.toLowerCase() ?? 'identity';
    return encoding === 'identity' ? undefined : unusable(`it is encoded with ${encoding}`);
  }

  /** More of the body has come. */
  push(bytes: Buffer): void {
    if (this.#sink !== undefined) {
      this.#sink.onData(bytes);
      return;
    }
    if (this.#end !== undefined) return;
    this.#held.push(bytes);
    this.#heldSize += bytes.length;
    if (this.#heldSize > MAX_HELD) this.#source.pause();
  }

  /** Nothing more will come. The first call counts. */
  end(complete: boolean, error?: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { complete, error };
    this.#sink?.onEnd(complete, error);
  }

  /** Reads the body: what has come already at once. */
  consume(sink: BodySink): void {
    const held = this.#held;
    const paused = this.#heldSize > MAX_HELD;
    this.#held = [];
    this.#heldSize = 0;
    this.#sink = sink;
    for (const bytes of held) sink.onData(bytes);
    if (this.#end !== undefined) sink.onEnd(this.#end.complete, this.#end.error);
    else if (paused) this.#source.resume();
  }

  /** Gives the rest up, and the connection with it. */
  destroy(): void {
    if (this.#end === undefined) this.#source.destroy();
  }

  /** The whole body, within a size and a time in milliseconds. Never rejects. */
  read(maxBytes: number, timeout: number, clock: Clock): Promise<ReadBody> {
    if (Number(this.headers['content-length'] ?? 0) > maxBytes) {
      this.destroy();
      return Promise.resolve({ kind: 'too-large' });
    }
    return new Promise((resolve) => {
      const received = new ByteCollector();
      let over = false;
      const finish = (body: ReadBody): void => {
        if (over) return;
        over = true;
        timer.cancel();
        if (body.kind !== 'read') this.destroy();
        resolve(body);
      };
      const timer = clock.setTimer(timeout, () => finish({ kind: 'timeout' }));
      this.consume({
        onData: (bytes) => {
          if (received.size + bytes.length > maxBytes) finish({ kind: 'too-large' });
          else received.add(bytes);
        },
        onEnd: (complete) =>
          finish(complete ? { kind: 'read', bytes: received.take() } : { kind: 'gone' }),
      });
    });
  }
}
