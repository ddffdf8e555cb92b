/**
 * @module
 * The MCP endpoint: what POST, GET and DELETE do (2025-11-25, basic/transports, "Streamable
 * HTTP"; clients of 2025-06-18 and 2025-03-26 are served as well).
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../resilience/clock.ts';
import { instrumentTransport } from '../instrument.ts';
import { CODE, isRequest } from '../jsonrpc.ts';
import { ownerOf } from '../principal.ts';
import type { ServerFactory } from '../server.ts';
import { type Refusal, refuse, retryAfter, sendEmpty } from './http-answer.ts';
import { discardRest, parseBody, readBody } from './http-body.ts';
import {
  badRequest,
  checkBatch,
  checkIds,
  checkVersion,
  SHUTTING_DOWN,
  tooManyRequests,
} from './http-checks.ts';
import { accepts, checkPostHeaders } from './http-guards.ts';
import { readMessages } from './http-messages.ts';
import { type Caller, extraOf, type Post } from './http-post.ts';
import { SESSION_NOT_FOUND, SessionTransport } from './http-session.ts';
import { Sessions } from './http-sessions.ts';
import type { ResolvedHttpSettings } from './http-settings.ts';

/** What the endpoint needs. */
export interface EndpointOptions {
  readonly createServer: ServerFactory;
  readonly settings: ResolvedHttpSettings;
  readonly clock: Clock;
  /** Takes one token of the caller; milliseconds to wait if there is none. */
  readonly tryTake: (caller: Caller) => number;
  readonly onError: (error: Error) => void;
}

/** What is refused is returned; what is served has been, or will be, answered. */
type Answer = Refusal | undefined;

/** The endpoint of one door, with its sessions. */
export class Endpoint {
  readonly sessions: Sessions;
  readonly #options: EndpointOptions;
  /** Transports that serve a single POST, without sessions. */
  readonly #single = new Set<SessionTransport>();
  #draining = false;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.sessions = new Sessions({ ...options.settings, clock: options.clock });
  }

  /** Requests that wait for their answer. */
  get running(): number {
    return [...this.#single, ...this.sessions.all()].reduce((sum, { running }) => sum + running, 0);
  }

  /** GET streams that are open. */
  get streams(): number {
    return this.sessions.all().filter(({ streaming }) => streaming).length;
  }

  /** Takes no further requests; what belongs to running ones is still let through. */
  drain(): void {
    this.#draining = true;
  }

  /** Aborts everything. */
  end(): void {
    this.sessions.endAll(SHUTTING_DOWN);
    for (const transport of this.#single) transport.end(SHUTTING_DOWN);
  }

  async handle(req: IncomingMessage, res: ServerResponse, caller: Caller): Promise<void> {
    const refusal = await this.#route(req, res, caller);
    if (refusal) refuse(res, refusal);
    if (refusal?.status === 413) discardRest(req, this.#options.settings.maxBodyBytes);
  }

  #route(req: IncomingMessage, res: ServerResponse, caller: Caller): Answer | Promise<Answer> {
    if (req.method === 'POST') return this.#post(req, res, caller);
    const { sessions } = this.#options.settings;
    if (sessions && req.method === 'GET') return this.#get(req, res, caller);
    if (sessions && req.method === 'DELETE') return this.#delete(req, res, caller);
    const advice = sessions ? 'use POST, GET or DELETE' : 'this server has no sessions; use POST';
    return {
      status: 405,
      code: CODE.invalidRequest,
      message: `Method Not Allowed: ${advice}`,
      headers: { allow: sessions ? 'POST, GET, DELETE' : 'POST' },
    };
  }

  async #post(req: IncomingMessage, res: ServerResponse, caller: Caller): Promise<Answer> {
    const { settings, clock } = this.#options;
    const badHeaders = checkPostHeaders(req);
    if (badHeaders) return badHeaders;
    const { maxBodyBytes: maxBytes, readTimeout: timeout } = settings;
    const body = await readBody(req, { maxBytes, timeout, clock });
    // Gone while its body was read: no 'close' would tell us a second time.
    if (body.kind === 'gone' || res.destroyed) return undefined;
    if (body.kind === 'too-large') {
      const message = `Payload Too Large: a request body may have ${maxBytes} bytes; send less at a time`;
      return { status: 413, message };
    }
    if (body.kind === 'timeout') {
      const message = `Request Timeout: the body was not complete within ${timeout} ms`;
      return { status: 408, message, headers: { connection: 'close' } };
    }
    const read = readMessages(parseBody(body.bytes), settings.maxBatch);
    if (!read.ok) return read.refusal;
    const { messages, batch } = read;
    const refusal = await this.#dispatch({ req, res, caller, messages, batch });
    // A request is answered under its id, if it is the only one (JSON-RPC 2.0, section 5).
    const [only, ...more] = messages;
    const id = only && more.length === 0 && isRequest(only) ? only.id : null;
    return refusal && { id, ...refusal };
  }

  #dispatch(post: Post): Answer | Promise<Answer> {
    const { settings, tryTake } = this.#options;
    const { caller, messages } = post;
    // A batch is no way around the rate limit: every further message takes its own token.
    for (let further = 1; further < messages.length; further += 1) {
      const wait = tryTake(caller);
      if (wait > 0) return tooManyRequests(wait);
    }
    if (this.#draining && messages.some(isRequest)) return SHUTTING_DOWN;
    if (!settings.sessions) return this.#serveSingle(post);
    const opens = messages.some((message) => isRequest(message) && message.method === 'initialize');
    return opens ? this.#initialize(post) : this.#serve(post);
  }

  async #initialize(post: Post): Promise<Answer> {
    const { req, caller, messages } = post;
    if (messages.length > 1) return badRequest('initialize must be the only message in its POST');
    const principal = ownerOf(caller.authInfo);
    const named = req.headers['mcp-session-id'];
    const known = typeof named === 'string' ? this.sessions.use(named) : undefined;
    if (known && known.principal === principal) {
      return badRequest('the session is initialized; for a new one leave Mcp-Session-Id out');
    }
    if (!this.sessions.makeRoom()) {
      const message = 'Service Unavailable: every session of this server is at work; try again';
      return { status: 503, message, headers: retryAfter(5_000) };
    }
    const id = randomUUID();
    const session = new SessionTransport({
      ...this.#options.settings,
      clock: this.#options.clock,
      id,
      principal,
      onIdle: () => {
        // A session whose initialize failed is none: nobody was told its id.
        if (session.protocolVersion === undefined) session.end(SESSION_NOT_FOUND);
        else this.sessions.use(id);
      },
      onEnded: () => this.sessions.delete(id),
    });
    this.sessions.add(id, session);
    return this.#open(session, post);
  }

  /** Without sessions: a transport and a server of its own for each POST, shared with no other. */
  async #serveSingle(post: Post): Promise<Answer> {
    const { req, res, batch, messages } = post;
    const version = String(req.headers['mcp-protocol-version'] ?? '2025-03-26');
    const refusal = checkVersion(req) ?? checkBatch(batch, version) ?? checkIds(messages);
    if (refusal) return refusal;
    if (!messages.some(isRequest)) {
      // Nothing is running that a notification or a response could be meant for.
      sendEmpty(res, 202);
      return undefined;
    }
    const transport = new SessionTransport({
      ...this.#options.settings,
      clock: this.#options.clock,
      onEnded: () => this.#single.delete(transport),
    });
    this.#single.add(transport);
    // A turn later: the server has yet to hear that its answer was sent, and closed before, it
    // would still abort the call that gave it.
    res.once('close', () => setImmediate(() => transport.end(SESSION_NOT_FOUND)));
    return this.#open(transport, post);
  }

  /** Puts a new server behind a new transport, and serves its first POST. */
  async #open(transport: SessionTransport, post: Post): Promise<Answer> {
    const { createServer, onError, settings } = this.#options;
    const { known } = createServer;
    try {
      const server = createServer();
      server.onerror ??= onError;
      await server.connect(
        instrumentTransport(transport, {
          network: 'tcp',
          sessions: settings.sessions,
          ...(known && { known }),
        }),
      );
    } catch (error) {
      transport.end(SESSION_NOT_FOUND);
      throw error;
    }
    transport.serve(post.messages, post.batch, extraOf(post), post.res);
    return undefined;
  }

  #serve(post: Post): Answer {
    const { req, res, caller, batch, messages } = post;
    const session = this.#find(req, caller, 'send initialize first');
    if (!(session instanceof SessionTransport)) return session;
    const refusal = checkBatch(batch, session.protocolVersion) ?? checkIds(messages, session);
    if (refusal) return refusal;
    if (messages.some(isRequest)) {
      session.serve(messages, batch, extraOf(post), res);
    } else {
      session.receive(messages, extraOf(post));
      sendEmpty(res, 202);
    }
    return undefined;
  }

  #get(req: IncomingMessage, res: ServerResponse, caller: Caller): Answer {
    const code = CODE.invalidRequest;
    if (req.headers['mcp-session-id'] === undefined) {
      // Clients of every version take 405 for "no stream here", not for a fault.
      const message = 'Method Not Allowed: GET needs the Mcp-Session-Id that initialize gave';
      return { status: 405, code, message, headers: { allow: 'POST' } };
    }
    if (!accepts(req.headers.accept, 'text/event-stream')) {
      return { status: 406, code, message: 'Not Acceptable: send Accept: text/event-stream' };
    }
    if (this.#draining) return SHUTTING_DOWN;
    const session = this.#find(req, caller, '');
    if (!(session instanceof SessionTransport)) return session;
    if (session.streaming) {
      const message = 'Conflict: this session has a GET stream already; close it first';
      return { status: 409, code, message };
    }
    session.openStream(res);
    return undefined;
  }

  #delete(req: IncomingMessage, res: ServerResponse, caller: Caller): Answer {
    const session = this.#find(req, caller, 'it names the session to end');
    if (!(session instanceof SessionTransport)) return session;
    session.end(SESSION_NOT_FOUND);
    sendEmpty(res, 204);
    return undefined;
  }

  #find(req: IncomingMessage, caller: Caller, hint: string): SessionTransport | Refusal {
    const id = req.headers['mcp-session-id'];
    if (typeof id !== 'string') return badRequest(`the header Mcp-Session-Id is missing; ${hint}`);
    const session = this.sessions.use(id);
    // Somebody else's session does not exist, as far as the caller can tell.
    if (!session || session.principal !== ownerOf(caller.authInfo)) return SESSION_NOT_FOUND;
    return checkVersion(req) ?? session;
  }
}
