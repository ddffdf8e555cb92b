/**
 * @module
 * Writes lines to a stream: those of one turn of the event loop in one write. Under load most of
 * the cost of a message is the system call, ours and that of the client that reads it.
 */
import type { Writable } from 'node:stream';

interface Line {
  readonly text: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Characters from which on nothing more is waited for: a longer text would be copied for nothing. */
const BATCH = 64 * 1024;

/** Lines on their way to a stream, in order. */
export class LineOutput {
  readonly #stream: Writable;
  readonly #onFlushed: () => void;
  #lines: Line[] = [];
  #waiting = 0;
  #unflushed = 0;
  #scheduled = false;

  /** @param onFlushed called whenever a write has been flushed, after its lines were settled */
  constructor(stream: Writable, onFlushed: () => void) {
    this.#stream = stream;
    this.#onFlushed = onFlushed;
  }

  /** Characters that were given and not flushed yet. */
  get unflushed(): number {
    return this.#unflushed;
  }

  /**
   * Resolves when the line has been flushed; rejects with the error of the stream.
   *
   * @param text without its newline
   */
  write(text: string): Promise<void> {
    this.#unflushed += text.length + 1;
    this.#waiting += text.length + 1;
    return new Promise((resolve, reject) => {
      this.#lines.push({ text, resolve, reject });
      if (this.#waiting >= BATCH) this.flush();
      else this.#schedule();
    });
  }

  /** Hands to the stream what waits for the end of the turn. */
  flush(): void {
    const lines = this.#lines;
    if (lines.length === 0) return;
    const length = this.#waiting;
    this.#lines = [];
    this.#waiting = 0;
    const text = `${lines.map((line) => line.text).join('\n')}\n`;
    this.#stream.write(text, (error) => {
      this.#unflushed -= length;
      for (const line of lines) {
        if (error) line.reject(error);
        else line.resolve();
      }
      if (!error) this.#onFlushed();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // After everything that has arrived: each of it may have a line of its own.
    setImmediate(() => {
      this.#scheduled = false;
      this.flush();
    });
  }
}
