/**
 * @module
 * Who may call the HTTP door and in which form. A page on any web site can make a browser send
 * requests to 127.0.0.1, and with a DNS name that changes (rebinding) even read the answers:
 * the names in `Host` and `Origin` are what gives it away (2025-11-25, basic/transports,
 * "Security Warning": servers MUST validate Origin and answer 403).
 */
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4 } from 'node:net';
import { CODE } from '../jsonrpc.ts';
import type { Refusal } from './http-answer.ts';

const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/;

/** Host name of a `Host` header, in lower case, without port and final dot; undefined if malformed. */
export const hostName = (header: string): string | undefined =>
  HOST.exec(header.trim().toLowerCase())?.[1]?.replace(/\.$/, '');

/** True for the names and addresses of this machine itself. */
const isLoopback = (name: string): boolean =>
  name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));

/** Addresses that mean "any": as a name in `Host` they are nobody's. */
const isWildcard = (name: string): boolean => name === '0.0.0.0' || name === '[::]';

/**
 * An origin as browsers send it. To `URL` that of a scheme it does not know is "null", which is
 * also what any page sends that shall have none, such as a sandboxed frame.
 */
const originOf = (url: string): string => {
  const { origin, protocol, host } = new URL(url);
  return origin === 'null' ? `${protocol}//${host}` : origin;
};

/** `Host` headers among names and values in turns; `headers` keeps only the first of them. */
const countHosts = (raw: readonly string[]): number => {
  let count = 0;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
};

/** Checks of `Host` and `Origin` for one door. */
export class NameGuard {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;

  /** `bound` is the host that the door listens on, without brackets. */
  constructor(bound: string, allowedHosts: readonly string[], allowedOrigins: readonly string[]) {
    const own = hostName(bound.includes(':') ? `[${bound}]` : bound);
    const named = allowedHosts.map((name) => hostName(name) ?? name.toLowerCase());
    this.#hosts = new Set(own === undefined || isWildcard(own) ? named : [own, ...named]);
    this.#origins = new Set(allowedOrigins.map(originOf));
  }

  /** The refusal of a request whose names are not ours. */
  check(req: IncomingMessage): Refusal | undefined {
    return this.#checkHost(req) ?? this.#checkOrigin(req.headers.origin);
  }

  /** The origin of a browser page that was configured to be let in. */
  crossOrigin(req: IncomingMessage): string | undefined {
    const { origin } = req.headers;
    return origin !== undefined && this.#origins.has(origin.toLowerCase()) ? origin : undefined;
  }

  #checkHost(req: IncomingMessage): Refusal | undefined {
    const name = countHosts(req.rawHeaders) === 1 ? hostName(req.headers.host ?? '') : undefined;
    if (name === undefined) {
      return {
        status: 400,
        code: CODE.invalidRequest,
        message: 'Bad Request: send exactly one Host header, of the form name or name:port',
      };
    }
    if (isLoopback(name) || this.#hosts.has(name)) return undefined;
    return {
      status: 403,
      message: `Forbidden: this server does not answer to the host "${name}"; if it should, add the name to allowedHosts`,
    };
  }

  #checkOrigin(origin: string | undefined): Refusal | undefined {
    if (origin === undefined || this.#origins.has(origin.toLowerCase())) return undefined;
    const name = /^https?:\/\/(.*)$/i.exec(origin)?.[1];
    if (name !== undefined && isLoopback(hostName(name) ?? '')) return undefined;
    return {
      status: 403,
      message:
        'Forbidden: pages of this origin may not call this server; if they should, add the origin to allowedOrigins',
    };
  }
}

/** True if the `Accept` header lets an answer of that media type through. Absent means any. */
export const accepts = (header: string | undefined, type: string): boolean => {
  if (header === undefined) return true;
  const [major] = type.split('/');
  return header.split(',').some((range) => {
    const [name = '', ...parameters] = range.toLowerCase().split(';');
    const refused = parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter));
    return !refused && [type, `${major}/*`, '*/*'].includes(name.trim());
  });
};

/** As nearly every client writes it. */
const BOTH = 'application/json, text/event-stream';

/** The refusal of a POST whose headers do not fit (2025-11-25, basic/transports, "Sending Messages"). */
export const checkPostHeaders = (req: IncomingMessage): Refusal | undefined => {
  const { 'content-type': contentType, 'content-encoding': encoding, accept } = req.headers;
  if (contentType?.split(';')[0]?.trim().toLowerCase() !== 'application/json') {
    return {
      status: 415,
      code: CODE.invalidRequest,
      message: 'Unsupported Media Type: send Content-Type: application/json',
    };
  }
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return {
      status: 415,
      code: CODE.invalidRequest,
      message: 'Unsupported Media Type: send the body without Content-Encoding',
    };
  }
  if (accept === BOTH) return undefined;
  if (!accepts(accept, 'application/json') || !accepts(accept, 'text/event-stream')) {
    return {
      status: 406,
      code: CODE.invalidRequest,
      message: `Not Acceptable: send Accept: ${BOTH}`,
    };
  }
  return undefined;
};

/**
 * Address of the client. With `hops` trusted proxies it is the one that the outermost of them
 * saw, counted from the right of `X-Forwarded-For`: what stands further left anybody may have
 * written.
 */
export const clientAddress = (req: IncomingMessage, hops: number): string => {
  const peer = (req.socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
  if (hops === 0) return peer;
  const forwarded = req.headers['x-forwarded-for'];
  const list = (Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '')).split(',');
  const seen = list.map((entry) => entry.trim()).filter((entry) => entry !== '');
  return seen.at(-Math.min(hops, seen.length)) ?? peer;
};

/**
 * What the rate limit counts by: an IPv4 address, or the /64 network of an IPv6 one. Whoever has
 * an IPv6 address as a rule has all 2^64 of its network (RFC 6177), and could come with a new one
 * for each request.
 */
export const limitKey = (address: string): string => {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.split('%')[0]?.toLowerCase().split('::') ?? [];
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  // An embedded IPv4 address at the end stands for two groups.
  const groups = before.length + after.length + (after.at(-1)?.includes('.') ? 1 : 0);
  const zeros = tail === undefined ? 0 : 8 - groups;
  const full = [...before, ...Array<string>(zeros).fill('0'), ...after];
  const network = full.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
};
