/**
 * @module
 * What a request has to pass before the MCP endpoint looks at it: room, names, path, credentials
 * and the rate limit.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import { CODE } from '../jsonrpc.ts';
import { type Refusal, retryAfter } from './http-answer.ts';
import { tooManyRequests } from './http-checks.ts';
import { clientAddress, type NameGuard } from './http-guards.ts';
import type { Caller } from './http-post.ts';
import type { ResolvedHttpSettings } from './http-settings.ts';

/** Finds out who calls: what it finds, or the refusal. */
export type Authenticate = (req: IncomingMessage) => Promise<AuthInfo | Refusal>;

/** Something that is there for anybody to read. */
interface Published {
  readonly document: object;
}

/** What deciding needs. */
interface AdmissionOptions {
  readonly settings: ResolvedHttpSettings;
  readonly names: NameGuard;
  readonly isExcess: (socket: Socket) => boolean;
  /** Takes one token of the caller; milliseconds to wait if there is none. */
  readonly tryTake: (caller: Caller) => number;
  readonly authenticate: Authenticate | undefined;
  readonly documents: Readonly<Record<string, object>>;
}

/** Path of a request, without its query. */
export const pathOf = ({ url }: IncomingMessage): string | undefined => {
  const query = url?.indexOf('?') ?? -1;
  return query === -1 ? url : url?.slice(0, query);
};

/** Decides who comes in through one door. */
export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Who calls, or what they may read without that; or the refusal. */
  async admit(req: IncomingMessage): Promise<Caller | Published | Refusal> {
    const { settings, names, isExcess, tryTake, authenticate } = this.#options;
    if (isExcess(req.socket)) {
      const message = `Service Unavailable: all ${settings.maxConnections} connections are in use; try again`;
      return { status: 503, message, headers: { ...retryAfter(1_000), connection: 'close' } };
    }
    const foreign = names.check(req);
    if (foreign) return foreign;
    const published = this.#published(req);
    if (!published && pathOf(req) !== settings.path) {
      const message = `Not Found: the MCP endpoint is ${settings.path}`;
      return { status: 404, code: CODE.invalidRequest, message };
    }
    const stranger = this.#stranger(req);
    const found = published ?? (await authenticate?.(req));
    const isCaller = found !== undefined && 'token' in found;
    const caller = isCaller ? { ...stranger, authInfo: found } : stranger;
    // Whoever proves who they are does not pay for others behind the same address.
    const wait = tryTake(caller);
    if (wait > 0) return tooManyRequests(wait);
    if (!isCaller) return found ?? caller;
    // It was meant for this door alone: no handler can log it, or send it to another server.
    delete req.headers.authorization;
    return caller;
  }

  #published(req: IncomingMessage): Published | Refusal | undefined {
    const { documents } = this.#options;
    const path = pathOf(req) ?? '';
    const document = Object.hasOwn(documents, path) ? documents[path] : undefined;
    if (document === undefined) return undefined;
    if (req.method === 'GET' || req.method === 'HEAD') return { document };
    return { status: 405, message: 'Method Not Allowed: use GET', headers: { allow: 'GET' } };
  }

  #stranger(req: IncomingMessage): Caller {
    const { trustProxy } = this.#options.settings;
    const address = clientAddress(req, trustProxy);
    // What is known of the connection is known of the proxy, where there is one.
    const port = address === clientAddress(req, 0) ? req.socket.remotePort : undefined;
    return { address, port, authInfo: undefined };
  }
}
