/**
 * @module
 * Cuts a byte stream into lines (2025-11-25, basic/transports, "stdio": messages are delimited
 * by newlines and contain none).
 */
import { ByteCollector } from '../byte-collector.ts';

/** A line without its end, or the reason why there is none. */
export type Frame =
  | { readonly kind: 'line'; readonly text: string }
  | {
      readonly kind: 'too-long';
      /** Its first bytes, as text: enough to tell what it was. */
      readonly head: string;
      /** Its last bytes, as text. */
      readonly tail: string;
    }
  | { readonly kind: 'not-utf8' };

const NEWLINE = 0x0a;
/** Bytes kept of each end of a line that is too long. */
const KEPT = 512;

/** The last bytes of two pieces, copied: what they came from may be large. */
const lastOf = (first: Uint8Array, second: Uint8Array): Uint8Array =>
  second.length >= KEPT
    ? second.slice(-KEPT)
    : Buffer.concat([first.subarray(Math.max(0, first.length + second.length - KEPT)), second]);

/**
 * Holds at most `maxBytes` of an unfinished line, whatever the peer sends: the rest of a line
 * that is longer is thrown away as it arrives, and the next line is read as if nothing had been.
 */
export class LineFramer {
  readonly #maxBytes: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  readonly #line = new ByteCollector();
  /** Of the line that is being thrown away. */
  #cut: { readonly head: Uint8Array; tail: Uint8Array } | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that `chunk` completes, in order; empty ones are left out. */
  push(chunk: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const piece = chunk.subarray(start, end);
      // Most lines come whole, and need not be put together.
      if (this.#idle && piece.length <= this.#maxBytes) this.#read(frames, piece);
      else {
        this.#hold(piece);
        this.#finish(frames);
      }
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start));
    return frames;
  }

  /** The last line, if the stream ended without a newline after it. */
  end(): Frame[] {
    const frames: Frame[] = [];
    this.#finish(frames);
    return frames;
  }

  /** Nothing of a line is held. */
  get #idle(): boolean {
    return this.#cut === undefined && this.#line.size === 0;
  }

  #hold(piece: Uint8Array): void {
    if (this.#cut !== undefined) {
      this.#cut.tail = lastOf(this.#cut.tail, piece);
    } else if (this.#line.size + piece.length > this.#maxBytes) {
      const held = this.#line.take();
      const head = Buffer.concat([held.subarray(0, KEPT), piece.subarray(0, KEPT)]);
      this.#cut = { head: head.subarray(0, KEPT), tail: lastOf(held, piece) };
    } else {
      this.#line.add(piece);
    }
  }

  #finish(frames: Frame[]): void {
    const bytes = this.#line.take();
    if (this.#cut !== undefined) {
      const { head, tail } = this.#cut;
      this.#cut = undefined;
      const decoder = new TextDecoder();
      frames.push({ kind: 'too-long', head: decoder.decode(head), tail: decoder.decode(tail) });
      return;
    }
    this.#read(frames, bytes);
  }

  #read(frames: Frame[], bytes: Uint8Array): void {
    try {
      const text = this.#decoder.decode(bytes).trim();
      if (text !== '') frames.push({ kind: 'line', text });
    } catch {
      frames.push({ kind: 'not-utf8' });
    }
  }
}
