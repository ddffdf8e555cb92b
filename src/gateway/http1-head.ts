/**
 * @module
 * The head of a response of HTTP/1.1 (RFC 9112 4, 5, 6.3): what it says, and how it says where the
 * body ends.
 *
 * As strict as llhttp, the parser of Node, and tested against it: what could be read in two ways
 * is refused, since a connection on which two sides disagree about where an answer ends would
 * give one call the answer to another.
 */

/** Headers by their names in lower case; several of one name are joined as RFC 9110 5.2 says. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>;

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

const trim = (text: string): string => {
  let from = 0;
  let to = text.length;
  const blank = (at: number) => text.charCodeAt(at) === 32 || text.charCodeAt(at) === 9;
  while (from < to && blank(from)) from += 1;
  while (to > from && blank(to - 1)) to -= 1;
  return text.slice(from, to);
};

/** Whether a line is a header: of a trailer nothing else is asked. */
export const isHeader = (line: string): boolean =>
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
export const UNTIL_CLOSE = -1;
/** Length of a body that comes in chunks. */
export const CHUNKED = -2;

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

/** What a head says. */
export interface Head {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** Bytes of the body; `UNTIL_CLOSE` or `CHUNKED`. */
  readonly length: number;
  /** Whether another request may follow on the connection. */
  readonly staysOpen: boolean;
}

/** Undefined for one that only announces the response. @throws HttpParseError */
const parseHead = (text: string): Head | undefined => {
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
    if (status >= 100 && status !== 101 && staysOpen(minor, headers)) return undefined;
    throw new HttpParseError('HPE_INVALID_STATUS', `Unexpected status ${status}`);
  }
  if (minor === '0' && headers['transfer-encoding'] !== undefined) {
    // Its sender did not know chunks: somebody in between did not understand it (RFC 9112 6.1).
    throw new HttpParseError('HPE_INVALID_TRANSFER_ENCODING', 'Transfer-Encoding in HTTP/1.0');
  }
  const length = lengthOf(status, headers);
  const reusable = length !== UNTIL_CLOSE && staysOpen(minor, headers);
  return { status, headers, length, staysOpen: reusable };
};

/**
 * Reads the heads of one connection. A server says the same again and again, but for the date, and
 * that stays for a second: the same bytes are not taken apart twice.
 */
export class HeadReader {
  #bytes: Buffer | undefined;
  #head: Head | undefined;

  /**
   * @param bytes up to the empty line, without it
   * @returns undefined for a head that only announces the response
   * @throws HttpParseError
   */
  read(bytes: Buffer): Head | undefined {
    if (this.#bytes?.equals(bytes) === true) return this.#head;
    this.#head = parseHead(bytes.toString('latin1'));
    // A copy: the rest of what came with it is not to be kept.
    this.#bytes = this.#head && Buffer.from(bytes);
    return this.#head;
  }
}
