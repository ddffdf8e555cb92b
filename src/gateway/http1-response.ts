/**
 * @module
 * Reads responses of HTTP/1.1 (RFC 9112) as they arrive, one after the other.
 *
 * As strict as llhttp, the parser of Node, and tested against it (`http1-head.ts` says why).
 */
import { maxHeaderSize } from 'node:http';
import {
  CHUNKED,
  type HeadReader,
  HttpParseError,
  isHeader,
  type ResponseHeaders,
  UNTIL_CLOSE,
} from './http1-head.ts';

/** Takes what is read. */
export interface ResponseEvents {
  onHead(status: number, headers: ResponseHeaders): void;
  onBody(bytes: Buffer): void;
  /** @param reusable whether another request may follow on the connection */
  onEnd(reusable: boolean): void;
}

const CR = 13;
const LF = 10;
const SEMICOLON = 59;
const NOTHING = Buffer.alloc(0);
/** Hexadecimal digits of the longest chunk: beyond that a number is no longer exact. */
const MAX_SIZE_DIGITS = 13;

const digitOf = (byte: number): number => {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
};

const TOKEN = String.raw`[!#$%&'*+\-.^_\x60|~0-9A-Za-z]+`;
const EXTENSIONS = new RegExp(`^(?:;${TOKEN}(?:=(?:${TOKEN}|"[\\t\\x20!#-\\[\\]-~]*"))?)+$`);

type State =
  | 'head'
  | 'fixed'
  | 'until-close'
  | 'size'
  | 'extension'
  | 'size-lf'
  | 'chunk'
  | 'chunk-cr'
  | 'chunk-lf'
  | 'trailer'
  | 'trailer-lf'
  | 'done';

/** Reads the response to one request. */
export class ResponseParser {
  readonly #events: ResponseEvents;
  readonly #heads: HeadReader;
  #state: State = 'head';
  /** Of the head, as far as it has come; of the trailers, as they may be many too. */
  #held: Buffer = NOTHING;
  #heldSize = 0;
  #keepAlive = false;
  /** Bytes of the body or of the chunk that are still to come. */
  #left = 0;
  #digits = 0;
  /** An extension of a chunk, or a trailer, as far as it has come. */
  #line = '';

  /** @param heads reader of all heads on the connection */
  constructor(events: ResponseEvents, heads: HeadReader) {
    this.#events = events;
    this.#heads = heads;
  }

  /** Whether the response is complete. */
  get done(): boolean {
    return this.#state === 'done';
  }

  /**
   * Reads on.
   *
   * @throws HttpParseError, after which nothing more can be read
   */
  execute(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && this.#state !== 'done') {
      if (this.#state === 'head') at = this.#readHead(chunk, at);
      else if (this.#state === 'fixed' || this.#state === 'chunk') at = this.#readBytes(chunk, at);
      else if (this.#state === 'until-close') {
        this.#events.onBody(at === 0 ? chunk : chunk.subarray(at));
        return;
      } else {
        this.#readFraming(chunk[at] as number);
        at += 1;
      }
    }
    // What follows the answer was not asked for: the connection cannot be trusted any more.
    if (this.#state === 'done') this.#events.onEnd(this.#keepAlive && at === chunk.length);
  }

  /** The connection has ended in an orderly way. Whether that is the end of the response too. */
  finish(): boolean {
    if (this.#state !== 'until-close') return false;
    this.#state = 'done';
    this.#events.onEnd(false);
    return true;
  }

  #readHead(chunk: Buffer, at: number): number {
    let bytes = at === 0 ? chunk : chunk.subarray(at);
    const before = this.#held.length;
    if (before > 0) bytes = Buffer.concat([this.#held, bytes]);
    const end = bytes.indexOf('\r\n\r\n', Math.max(0, before - 3), 'latin1');
    if (this.#heldSize + (end < 0 ? bytes.length : end) > maxHeaderSize) {
      throw new HttpParseError('HPE_HEADER_OVERFLOW', 'Header overflow');
    }
    if (end < 0) {
      // Said now, not after a wait for a head that will never come.
      if (!'HTTP/1.'.startsWith(bytes.toString('latin1', 0, 7))) {
        throw new HttpParseError('HPE_INVALID_CONSTANT', 'Expected HTTP/');
      }
      this.#held = bytes;
      return chunk.length;
    }
    this.#held = NOTHING;
    this.#takeHead(bytes.subarray(0, end));
    return at + end + 4 - before;
  }

  #takeHead(bytes: Buffer): void {
    const head = this.#heads.read(bytes);
    if (head === undefined) {
      this.#heldSize += bytes.length;
      return;
    }
    const { status, headers, length } = head;
    this.#keepAlive = head.staysOpen;
    this.#left = length;
    if (length === CHUNKED) this.#beginChunk();
    else if (length === UNTIL_CLOSE) this.#state = 'until-close';
    else this.#state = length === 0 ? 'done' : 'fixed';
    this.#heldSize = 0;
    this.#events.onHead(status, headers);
  }

  #beginChunk(): void {
    this.#state = 'size';
    this.#left = 0;
    this.#digits = 0;
  }

  #readBytes(chunk: Buffer, at: number): number {
    const to = Math.min(chunk.length, at + this.#left);
    this.#left -= to - at;
    if (this.#left === 0) this.#state = this.#state === 'fixed' ? 'done' : 'chunk-cr';
    this.#events.onBody(at === 0 && to === chunk.length ? chunk : chunk.subarray(at, to));
    return to;
  }

  /** One byte of what stands around chunks (RFC 9112 7.1). */
  #readFraming(byte: number): void {
    switch (this.#state) {
      case 'size': {
        const digit = digitOf(byte);
        if (digit >= 0 && this.#digits < MAX_SIZE_DIGITS) {
          this.#left = this.#left * 16 + digit;
          this.#digits += 1;
        } else if (this.#digits === 0 || digit >= 0 || (byte !== CR && byte !== SEMICOLON)) {
          throw new HttpParseError('HPE_INVALID_CHUNK_SIZE', 'Invalid character in chunk size');
        } else this.#state = byte === CR ? 'size-lf' : 'extension';
        this.#line = byte === SEMICOLON ? ';' : '';
        return;
      }
      case 'extension':
        if (byte !== CR) this.#addToLine(byte);
        else if (EXTENSIONS.test(this.#line)) this.#state = 'size-lf';
        else throw new HttpParseError('HPE_STRICT', 'Invalid chunk extension');
        return;
      case 'size-lf':
        this.#expect(byte, LF);
        this.#state = this.#left === 0 ? 'trailer' : 'chunk';
        this.#line = '';
        return;
      case 'chunk-cr':
        this.#expect(byte, CR);
        this.#state = 'chunk-lf';
        return;
      case 'chunk-lf':
        this.#expect(byte, LF);
        this.#beginChunk();
        return;
      case 'trailer':
        if (byte !== CR) this.#addToLine(byte);
        else if (this.#line === '' || isHeader(this.#line)) this.#state = 'trailer-lf';
        else throw new HttpParseError('HPE_INVALID_HEADER_TOKEN', 'Invalid trailer');
        return;
      default:
        this.#expect(byte, LF);
        this.#state = this.#line === '' ? 'done' : 'trailer';
        this.#line = '';
    }
  }

  /** Extensions and trailers say nothing to us, but must not go on for ever. */
  #addToLine(byte: number): void {
    this.#line += String.fromCharCode(byte);
    this.#heldSize += 1;
    if (this.#heldSize > maxHeaderSize) {
      throw new HttpParseError('HPE_CHUNK_EXTENSIONS_OVERFLOW', 'Chunk extensions overflow');
    }
  }

  #expect(byte: number, expected: number): void {
    if (byte !== expected) {
      throw new HttpParseError(
        'HPE_STRICT',
        `Expected ${expected === CR ? 'CR' : 'LF'} after chunk`,
      );
    }
  }
}
