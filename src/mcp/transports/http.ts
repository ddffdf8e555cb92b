/**
 * @module
 * The HTTP door: a node:http server around the MCP endpoint, with health checks, guards,
 * limits and an orderly end. The SDK's own transport leaves the work of a client that has gone
 * running, never ends the POST of a cancelled request, and answers an over-long body with HTML.
 */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { diag } from '@opentelemetry/api';
import { type Clock, systemClock, type Timer } from '../../resilience/clock.ts';
import { RateLimiter } from '../../resilience/rate-limiter.ts';
import { CODE } from '../jsonrpc.ts';
import { principalOf } from '../principal.ts';
import type { ServerFactory } from '../server.ts';
import { Admission, type Authenticate, pathOf } from './http-admission.ts';
import { refuse, sendJson } from './http-answer.ts';
import { Connections } from './http-connections.ts';
import { allowOrigin, answerPreflight } from './http-cors.ts';
import { Endpoint } from './http-endpoint.ts';
import { limitKey, NameGuard } from './http-guards.ts';
import type { Caller } from './http-post.ts';
import { type HttpSettings, httpSettingsSchema } from './http-settings.ts';

/** Counts calls per client: 0 when one more fits, else the milliseconds until it does. */
interface DoorLimiter {
  tryTake(key: string): number;
  /** Told of every refusal, with what `tryTake` returned. */
  refusal?(wait: number): unknown;
}

/** What `serveHttp` takes. */
export interface ServeHttpOptions extends HttpSettings {
  /** Makes the server of each session; see `createServer`. */
  readonly createServer: ServerFactory;
  /** Address to listen on. Default 127.0.0.1: this machine only. */
  readonly host?: string;
  /** Port to listen on; 0 for any that is free. */
  readonly port: number;
  /** False makes `/readyz` answer 503. Default: always ready. */
  readonly ready?: () => boolean;
  /**
   * Finds out who calls, before the body is read: what it finds, or the refusal. Who is found is
   * who the rate limit counts for; what was sent to prove it is not handed on.
   */
  readonly authenticate?: Authenticate;
  /** JSON documents that anybody may read with GET, by their paths. Default: none. */
  readonly documents?: Readonly<Record<string, object>>;
  /** Replaces the limiter that `rateLimit` describes. */
  readonly limiter?: DoorLimiter;
  readonly clock?: Clock;
}

/** How a door is at this moment. */
interface HttpDoorStats {
  readonly connections: number;
  readonly sessions: number;
  /** GET streams. */
  readonly streams: number;
  /** Requests that wait for their answer. */
  readonly running: number;
}

/** An open door. */
export interface HttpDoor {
  /** Of the MCP endpoint. */
  readonly url: string;
  readonly port: number;
  stats(): HttpDoorStats;
  /**
   * Takes nothing new, lets running calls finish within `drainTimeout`, aborts the rest, ends
   * all sessions and connections. Resolves when nothing is left.
   */
  close(): Promise<void>;
}

// zod refuses keys it does not know, so that a misspelt setting is not ignored.
const settingsOf = (options: ServeHttpOptions): HttpSettings => {
  const { createServer, host, port, ready, limiter, clock, ...more } = options;
  const { authenticate, documents, ...settings } = more;
  return settings;
};

/**
 * Serves MCP over Streamable HTTP, with telemetry. Also answers `/healthz` (200 while the
 * process lives) and `/readyz` (200, or 503 while it is not ready or shutting down).
 *
 * Rejects with the error of `listen`, such as EADDRINUSE, and with a `ZodError` for settings
 * that are out of range.
 *
 * @example
 * ```ts
 * const door = await serveHttp({ createServer: createServer({ name, version, tools }), port: 3000 });
 * process.once('SIGTERM', () => door.close());
 * ```
 */
export const serveHttp = async (options: ServeHttpOptions): Promise<HttpDoor> => {
  const { createServer, host = '127.0.0.1', port, ready = () => true, authenticate } = options;
  const { limiter: injected, clock = systemClock, documents = {} } = options;
  const settings = httpSettingsSchema.parse(settingsOf(options));
  const { rateLimit, readTimeout } = settings;
  const limiter: DoorLimiter | undefined =
    injected ?? (rateLimit ? new RateLimiter('mcp.http', rateLimit, { clock }) : undefined);
  const names = new NameGuard(host, settings.allowedHosts, settings.allowedOrigins);
  const tryTake = ({ address, authInfo }: Caller): number => {
    const principal = principalOf(authInfo);
    const key = principal === undefined ? limitKey(address) : `principal ${principal}`;
    const wait = limiter?.tryTake(key) ?? 0;
    if (wait > 0) limiter?.refusal?.(wait);
    return wait;
  };
  const onError = (error: Error) => diag.debug('mcp-resilience: HTTP', error.message);
  const endpoint = new Endpoint({ createServer, settings, clock, tryTake, onError });
  let draining = false;
  let wake = () => {};

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    if (pathOf(req) === '/healthz') {
      sendJson(res, 200, { status: 'ok' });
    } else if (pathOf(req) === '/readyz') {
      const status = draining ? 'draining' : ready() ? 'ready' : 'not ready';
      sendJson(res, status === 'ready' ? 200 : 503, { status });
    } else {
      const origin = names.crossOrigin(req);
      if (origin !== undefined) allowOrigin(res, origin);
      if (origin !== undefined && req.method === 'OPTIONS' && !names.check(req)) {
        answerPreflight(res);
        return;
      }
      const admitted = await admission.admit(req);
      if ('status' in admitted) {
        refuse(res, admitted);
      } else if ('document' in admitted) {
        sendJson(res, 200, admitted.document);
      } else {
        res.once('close', () => wake());
        await endpoint.handle(req, res, admitted);
      }
    }
  };

  const http = createHttpServer(
    {
      // The body has a timer of its own on the injected clock; these are for what comes before.
      headersTimeout: readTimeout,
      requestTimeout: readTimeout,
      connectionsCheckingInterval: Math.min(1_000, readTimeout),
      requireHostHeader: false,
    },
    (req, res) => {
      connections.began(req.socket, res);
      serve(req, res).catch((error) => {
        diag.error('mcp-resilience: an HTTP request failed', error);
        const message = 'Internal error: the server failed to handle the request';
        refuse(res, { status: 500, code: CODE.internalError, message });
      });
    },
  );
  const connections = new Connections(settings.maxConnections);
  const admission = new Admission({
    settings,
    isExcess: (socket) => connections.isExcess(socket),
    names,
    tryTake,
    authenticate,
    documents,
  });
  http.on('connection', (socket: Socket) => connections.opened(socket));
  http.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
    connections.answerClientError(error, socket),
  );
  // Far beyond the limit not even the 503 is worth its socket.
  http.maxConnections = settings.maxConnections * 2 + 10;

  await new Promise<void>((resolve, reject) => {
    http.once('error', reject);
    http.listen(port, host, () => {
      http.off('error', reject);
      resolve();
    });
  });
  const bound = http.address() as AddressInfo;

  const drained = () =>
    new Promise<void>((resolve) => {
      let timer: Timer | undefined;
      wake = () => {
        if (endpoint.running > 0) return;
        timer?.cancel();
        resolve();
      };
      timer = clock.setTimer(settings.drainTimeout, resolve);
      wake();
    });

  const shutDown = async (): Promise<void> => {
    // The listener stays until the end: whoever comes meanwhile is told to come back later.
    draining = true;
    endpoint.drain();
    await drained();
    endpoint.end();
    await connections.flushed(clock, 1_000);
    await new Promise<void>((resolve) => {
      http.close(() => resolve());
      http.closeAllConnections();
    });
  };
  let closing: Promise<void> | undefined;

  return {
    url: `http://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}${settings.path}`,
    port: bound.port,
    stats: () => ({
      connections: connections.size,
      sessions: endpoint.sessions.size,
      streams: endpoint.streams,
      running: endpoint.running,
    }),
    close: () => {
      closing ??= shutDown();
      return closing;
    },
  };
};
