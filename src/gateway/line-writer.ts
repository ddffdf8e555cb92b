/**
 * @module
 * Writes lines to the stdin of a child, so that it is known of each whether the child can have
 * seen it.
 */
import type { Writable } from 'node:stream';
import { createFailure } from '../resilience/failure.ts';
import { LinkError, notOpen } from './link-failure.ts';

interface Line {
  readonly text: string;
  readonly done: (error?: Error) => void;
}

/** Characters from which on a batch is closed: a longer one would only be copied for nothing. */
const BATCH = 64 * 1024;

/** It may have been read whole before the pipe broke in the middle of what came after it. */
const perhapsRead = (): LinkError =>
  new LinkError(
    createFailure('CONNECTION_RESET', {
      message: 'The process of the upstream ended while messages were written to it.',
    }),
  );

const unread = (): LinkError => notOpen('The process of the upstream does not read any more.');

/**
 * Lines that are given in one turn of the event loop go out in one write: under load most of the
 * cost of a message is the system call. One write is under way at a time, and lines wait here
 * meanwhile, where an abort can still take them back.
 *
 * Of a write that fails nobody says how much of it was taken. Its last line was not, for the end
 * of it is missing; those before it may have been.
 */
export class LineWriter {
  readonly #stream: Writable;
  #queue: Line[] = [];
  #scheduled = false;
  #writing = false;
  #ended = false;

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  /**
   * Resolves when the line is in the pipe.
   *
   * @param text without its newline
   * @throws LinkError that says whether the child can have seen it; the signal's reason on abort
   */
  write(text: string, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#ended) return Promise.reject(unread());
    return new Promise((resolve, reject) => {
      const line: Line = {
        text,
        done: (error) => {
          signal?.removeEventListener('abort', onAbort);
          if (error) reject(error);
          else resolve();
        },
      };
      const onAbort = (): void => {
        this.#queue = this.#queue.filter((queued) => queued !== line);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#queue.push(line);
      this.#schedule();
    });
  }

  /** Writes what waits and ends the stream. Idempotent. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    while (this.#queue.length > 0) this.#flush();
    this.#stream.end();
  }

  #schedule(): void {
    if (this.#scheduled || this.#writing || this.#queue.length === 0) return;
    this.#scheduled = true;
    // After everything that has arrived: each of it may have a line of its own.
    setImmediate(() => {
      this.#scheduled = false;
      if (!this.#writing && this.#queue.length > 0) this.#flush();
    });
  }

  #flush(): void {
    let length = 0;
    let count = 0;
    for (const { text } of this.#queue) {
      length += text.length;
      count += 1;
      if (length >= BATCH) break;
    }
    const batch = this.#queue.splice(0, count);
    if (!this.#stream.writable) {
      for (const line of batch) line.done(unread());
      this.#schedule();
      return;
    }
    const text = `${batch.map((line) => line.text).join('\n')}\n`;
    this.#writing = true;
    this.#stream.write(text, (error) => {
      this.#writing = false;
      const last = batch.length - 1;
      for (const [index, line] of batch.entries()) {
        line.done(error ? (index === last ? unread() : perhapsRead()) : undefined);
      }
      // What came meanwhile has waited long enough.
      if (!this.#scheduled && this.#queue.length > 0) this.#flush();
    });
  }
}
