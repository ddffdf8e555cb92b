/**
 * @module
 * Reads responses of HTTP/1.1 (RFC 9112) as they arrive, one after the other.
 *
 * As strict as llhttp, the parser of Node, and tested against it: what could be read in two ways
 * is refused, since a connection on which two sides disagree about where an answer ends would
 * give one call the answer to another.
 */
import { maxHeaderSize } from 'node:http';

/** Headers by their names in lower case; several of one name are joined as RFC 9110 5.2 says. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>;

/** Takes what is read. */
export interface ResponseEvents {
  onHead(status: number, headers: ResponseHeaders): void;
  onBody(bytes: Buffer): void;
  /** @param reusable whether another request may follow on the connection */
  onEnd(reusable: boolean): void;
}

/** Bytes that are no response of HTTP/1.1. Its code is one that llhttp uses for the same. */
export class HttpParseError extends Error {
  override readonly name = 'HttpParseError';
  readonly code: `HPE_${string}`;

  constructor(code: HttpParseError['code'], message: string) {
    super(`Parse Error: ${message}`);
    this.code = code;
  }
}

const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: .*)?$/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** What no line of a head may hold: control characters, except the tab. */
const CONTROL = /[^\t\x20-\x7e\x80-\xff]/;
/** Headers of which a second one says nothing; as `node:http` has it, the first counts. */
const FIRST_COUNTS: ReadonlySet<string> = new Set(['content-type', 'location', 'retry-after']);

const OF_FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'transfer-encoding',
]);

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

const trim = (text: string): string => {
  let from = 0;
  let to = text.length;
  const blank = (at: number) => text.charCodeAt(at) === 32 || text.charCodeAt(at) === 9;
  while (from < to && blank(from)) from += 1;
  while (to > from && blank(to - 1)) to -= 1;
  return text.slice(from, to);
};

const TOKEN = String.raw`[!#$%&'*+\-.^_\x60|~0-9A-Za-z]+`;
const EXTENSIONS = new RegExp(`^(?:;${TOKEN}(?:=(?:${TOKEN}|"[\\t\\x20!#-\\[\\]-~]*"))?)+$`);

const isHeader = (line: string): boolean =>
  NAME.test(line.slice(0, Math.max(0, line.indexOf(':')))) && !CONTROL.test(line);

const readHeaders = (lines: readonly string[]): Record<string, string | undefined> => {
  const headers = Object.create(null) as Record<string, string | undefined>;
  for (let index = 1; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    const colon = line.indexOf(':');
    const raw = line.slice(0, Math.max(0, colon));
    // A line that goes on with the one before begins with a blank: no name either (RFC 9112 5.2).
    if (!NAME.test(raw)) {
      throw new HttpParseError('HPE_INVALID_HEADER_TOKEN', 'Invalid header token');
    }
    if (CONTROL.test(line)) {
      throw new HttpParseError('HPE_INVALID_HEADER_TOKEN', 'Invalid header value char');
    }
    const name = raw.toLowerCase();
    // Parsers differ in whether a tab belongs to the value: on these it would matter.
    if (OF_FRAMING.has(name) && line.includes('\t')) {
      throw new HttpParseError('HPE_INVALID_HEADER_TOKEN', `Tab in ${raw}`);
    }
    const value = trim(line.slice(colon + 1));
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (name === 'content-length') {
      throw new HttpParseError('HPE_UNEXPECTED_CONTENT_LENGTH', 'Content-Length already present');
    } else if (!FIRST_COUNTS.has(name)) headers[name] = `${before}, ${value}`;
  }
  return headers;
};

/** Length of a body whose end is that of the connection. */
const UNTIL_CLOSE = -1;
/** Length of a body that comes in chunks. */
const CHUNKED = -2;

/** Bytes of the body that follows a head, or how else its end is known (RFC 9112 6.3). */
const lengthOf = (status: number, headers: ResponseHeaders): number => {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding !== undefined && length !== undefined) {
    const what = "Content-Length can't be present with Transfer-Encoding";
    throw new HttpParseError('HPE_UNEXPECTED_CONTENT_LENGTH', what);
  }
  if (status === 204 || status === 304) return 0;
  if (coding !== undefined) {
    if (coding.toLowerCase() === 'chunked') return CHUNKED;
    throw new HttpParseError('HPE_INVALID_TRANSFER_ENCODING', 'Unknown Transfer-Encoding');
  }
  if (length === undefined) return UNTIL_CLOSE;
  if (/^\d{1,15}$/.test(length)) return Number(length);
  throw new HttpParseError('HPE_INVALID_CONTENT_LENGTH', 'Invalid character in Content-Length');
};

const TOKENS = /\s*,\s*/;

const staysOpen = (minor: string | undefined, { connection }: ResponseHeaders): boolean => {
  if (connection === undefined) return minor === '1';
  const said = connection.toLowerCase().split(TOKENS);
  return minor === '1' ? !said.includes('close') : said.includes('keep-alive');
};

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

  constructor(events: ResponseEvents) {
    this.#events = events;
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
    this.#takeHead(bytes.toString('latin1', 0, end));
    if (this.#state === 'head') this.#heldSize += end;
    return at + end + 4 - before;
  }

  #takeHead(text: string): void {
    const lines = text.split('\r\n');
    const [, minor, code] = STATUS_LINE.exec(lines[0] ?? '') ?? [];
    if (code === undefined || CONTROL.test(lines[0] ?? '')) {
      throw new HttpParseError('HPE_INVALID_CONSTANT', 'Expected HTTP/1.x and a status');
    }
    const status = Number(code);
    const headers = readHeaders(lines);
    if (status < 200) {
      // All of 1xx only announces the response, except 101: we ask for no other protocol. With
      // HTTP/1.0 there is none, and behind one that ends the connection nothing can follow
      // (RFC 9110 15.2).
      if (status >= 100 && status !== 101 && staysOpen(minor, headers)) return;
      throw new HttpParseError('HPE_INVALID_STATUS', `Unexpected status ${status}`);
    }
    if (minor === '0' && headers['transfer-encoding'] !== undefined) {
      // Its sender did not know chunks: somebody in between did not understand it (RFC 9112 6.1).
      throw new HttpParseError('HPE_INVALID_TRANSFER_ENCODING', 'Transfer-Encoding in HTTP/1.0');
    }
    const length = lengthOf(status, headers);
    this.#keepAlive = length !== UNTIL_CLOSE && staysOpen(minor, headers);
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
