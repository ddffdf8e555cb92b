/**
 * @module
 * Fetches JSON from a public API so that every way it can go wrong becomes a failure that the
 * policies understand, and no socket is left behind.
 */
import { STATUS_CODES } from 'node:http';
import type { z } from 'zod';
import { createFailure, type FailureDetails, ResilienceError } from '../resilience/failure.ts';
import { VERSION } from '../version.ts';
import { drain, readBody } from './upstream-body.ts';

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** How `fetchJson` reads an answer. */
export interface FetchJsonOptions<T> {
  /** Ends the request and the reading of its answer. */
  readonly signal?: AbortSignal;
  /** What the answer must look like. Default: anything. */
  readonly schema?: z.ZodType<T>;
  /** Most bytes of the answer, counted after decompression. Default 2 MiB. */
  readonly maxBytes?: number;
}

const MAX_BYTES = 2 * 1024 * 1024;
/** Redirects followed, all within one origin: the policies were set for that origin. */
const MAX_REDIRECTS = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const USER_AGENT = `mcp-resilience/${VERSION}`;
const JSON_TYPE = /^\s*(?:application\/(?:[\w.+-]+\+)?json|text\/json)\s*(?:;|$)/i;

/** An answer with a status that is no success; `classify` reads status and headers. */
export class UpstreamStatusError extends Error {
  override readonly name = 'UpstreamStatusError';
  readonly status: number;
  readonly headers: Headers;
  /** Origin only: path and query hold what the user asked. */
  readonly url: string;
  /** The beginning of the body, at most 1 000 characters. */
  readonly body: string;

  constructor(response: Response, origin: string, body: string) {
    super(STATUS_CODES[response.status] ?? 'unknown status');
    this.status = response.status;
    this.headers = response.headers;
    this.url = origin;
    this.body = body;
  }
}

/** An answer that is not what the API promises: `UPSTREAM_INVALID_RESPONSE`. */
export class InvalidAnswerError extends ResilienceError {
  override readonly name = 'InvalidAnswerError';
  /** The beginning of the body, at most 1 000 characters. */
  readonly body: string;

  constructor(host: string, problem: string, body = '', details: FailureDetails = {}) {
    const message = `The answer of ${host} cannot be used: ${problem}.`;
    super(createFailure('UPSTREAM_INVALID_RESPONSE', { message, ...details }));
    this.body = body;
  }
}

/**
 * The JSON that `url` answers with.
 *
 * @throws UpstreamStatusError for a status that is no success, Retry-After included
 * @throws InvalidAnswerError for another content type, malformed or oversized JSON, a shape
 * that is not the schema's, and a redirect to another origin
 * @throws what `fetch` throws when the connection fails, and the signal's reason on abort
 *
 * @example
 * ```ts
 * const report = await fetchJson('https://wttr.in/Oslo?format=j1', { signal, schema: reportSchema });
 * ```
 */
export const fetchJson = async <T = unknown>(
  url: string | URL,
  { signal, schema, maxBytes = MAX_BYTES }: FetchJsonOptions<T> = {},
): Promise<T> => {
  const { host, origin } = new URL(url);
  const response = await follow(new URL(url), signal);
  if (!response.ok) {
    const body = await drain(response);
    signal?.throwIfAborted();
    throw new UpstreamStatusError(response, origin, body);
  }
  const type = response.headers.get('content-type');
  if (type !== null && !JSON_TYPE.test(type)) {
    const body = await drain(response);
    signal?.throwIfAborted();
    throw new InvalidAnswerError(host, `it is ${type.split(';', 1)[0]}, not JSON`, body);
  }
  const bytes = await readBody(response, maxBytes);
  if (bytes === undefined) {
    // The same request would bring the same flood again.
    const details = { retryable: false };
    throw new InvalidAnswerError(host, `it is longer than ${maxBytes} bytes`, '', details);
  }
  return checked(parsed(bytes, host), schema, host);
};

/** Asks, and follows redirects as long as they stay with the same origin. */
const follow = async (start: URL, signal: AbortSignal | undefined): Promise<Response> => {
  let url = start;
  for (let hops = 0; ; hops += 1) {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { accept: 'application/json', 'user-agent': USER_AGENT },
      ...(signal && { signal }),
    });
    const location = response.headers.get('location');
    if (!REDIRECTS.has(response.status) || location === null) return response;
    await drain(response);
    const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
    if (next?.origin !== start.origin) {
      const where = next ? next.origin : 'an address that is none';
      const details = { retryable: false };
      throw new InvalidAnswerError(start.host, `it redirects to ${where}`, '', details);
    }
    if (hops === MAX_REDIRECTS) {
      throw new InvalidAnswerError(start.host, `it redirects more than ${MAX_REDIRECTS} times`);
    }
    url = next;
  }
};

const parsed = (bytes: Uint8Array, host: string): unknown => {
  let text = '';
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return JSON.parse(text);
  } catch {
    const problem = bytes.length === 0 ? 'it is empty' : 'it is not valid JSON';
    throw new InvalidAnswerError(host, problem, text.slice(0, 1_000));
  }
};

const checked = <T>(value: unknown, schema: z.ZodType<T> | undefined, host: string): T => {
  // Without a schema T is `unknown`, unless the caller claims to know better.
  if (schema === undefined) return value as T;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  // Paths and expectations only: the values may be anything.
  const problems = result.error.issues
    .slice(0, 3)
    .map(({ path, message }) => (path.length > 0 ? `${path.join('.')}: ${message}` : message));
  throw new InvalidAnswerError(host, problems.join('; '));
};

/**
 * Reads the base URL of an API from the environment, without a slash at its end.
 *
 * @throws Error naming the variable and what it must be; the value is not repeated when it
 * may hold credentials
 */
export const baseUrl = (env: Environment, variable: string, fallback: string): string => {
  const value = env[variable]?.trim() || fallback;
  const refuse = (why: string): Error =>
    new Error(`${variable} ${why}: it must be an http or https URL, such as ${fallback}`);
  if (!URL.canParse(value)) throw refuse('is not a URL');
  const url = new URL(value);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refuse(`begins with "${url.protocol}"`);
  }
  if (url.username !== '' || url.password !== '') {
    throw refuse('must not contain a user name or password');
  }
  if (url.search !== '' || url.hash !== '') throw refuse('must end before any "?" or "#"');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
};
