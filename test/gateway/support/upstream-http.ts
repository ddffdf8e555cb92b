/**
 * @module
 * The scripted upstream over HTTP: Streamable HTTP on /mcp, HTTP+SSE of 2024-11-05 on /sse and
 * /messages. Written by hand so that every fault is exact.
 */
import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import type { Json } from '../../../src/gateway/types.ts';
import {
  type Id,
  newRecord,
  ScriptedSession,
  type UpstreamRecord,
  type UpstreamSettings,
} from './upstream-session.ts';

/** Settings of the HTTP server. */
export interface HttpUpstreamSettings extends UpstreamSettings {
  /** Default 0: any that is free. */
  readonly port?: number;
  /** How requests are answered. Default `sse`. */
  readonly answer?: 'sse' | 'json';
  /** GET stream: offered (default), 405, or closed at once. */
  readonly get?: 'stream' | 'none' | 'end';
  /** Events have ids, and a stream can be resumed. Default false. */
  readonly eventIds?: boolean;
  /** `retry` of the streams, in milliseconds. */
  readonly retry?: number;
  /** Default true. False: no session ids; 404 is never answered. */
  readonly sessions?: boolean;
  /** What the SSE endpoint event says. Default: the right path. */
  readonly endpoint?: string;
}

/** What happens to a request in place of what would. */
type Fault =
  /** Answered with this, and not executed. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
    }
  /** JSON-RPC error -32600 "Session terminated" with HTTP 200, and not executed. */
  | { readonly kind: 'terminated' }
  /** Never answered, and not executed. */
  | { readonly kind: 'hang' }
  /** Connection reset, and not executed. */
  | { readonly kind: 'reset' }
  /** Executed; then the connection is reset where the answer should be. */
  | { readonly kind: 'lost' }
  /** Executed; its SSE stream ends in an orderly way, without the answer. */
  | { readonly kind: 'end' }
  /** Executed; its SSE stream ends after an event id; the answer waits for Last-Event-ID. */
  | { readonly kind: 'poll' };

/** A request as it came. */
interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json | undefined;
}

/** A running HTTP upstream. */
export interface HttpUpstream {
  /** Of Streamable HTTP. */
  readonly url: string;
  /** Of HTTP+SSE. */
  readonly sseUrl: string;
  readonly port: number;
  readonly record: UpstreamRecord;
  readonly requests: readonly SeenRequest[];
  /** Sessions it knows. */
  readonly sessions: ReadonlySet<string>;
  /** Connections open now, and GET streams among them. */
  readonly open: number;
  readonly streams: number;
  /**
   * The next `times` requests of `what` meet the fault. `what`: a JSON-RPC method, `tools/call
   * NAME`, or `GET`, `DELETE`, `POST`.
   */
  fail(what: string, fault: Fault, times?: number): void;
  /** Sends it on the GET stream of every session. */
  push(message: Json): void;
  /** Knows no session any more; connections stay. */
  forget(): void;
  /** As after a crash: all connections broken, all sessions forgotten, the port served again. */
  restart(): void;
  /** Ends all GET streams in an orderly way. */
  endStreams(): void;
  /** Does not listen any more; `start` does again, on the same port. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

interface Stream {
  readonly key: string;
  readonly events: string[];
  response: ServerResponse | undefined;
  fault: Fault | undefined;
  readonly json: boolean;
}

interface Session {
  readonly id: string;
  readonly scripted: ScriptedSession;
  /** By the id of the request it answers. */
  readonly streams: Map<Id, Stream>;
  readonly byKey: Map<string, Stream>;
  readonly get: Stream;
  readonly legacy: boolean;
}

const SSE = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };

export const startHttpUpstream = async (
  settings: HttpUpstreamSettings = {},
): Promise<HttpUpstream> => {
  const {
    answer = 'sse',
    get = 'stream',
    eventIds = false,
    sessions: sessionful = true,
  } = settings;
  const record = newRecord();
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  const sessions = new Map<string, Session>();
  const faults: { what: string; fault: Fault; left: number }[] = [];
  let port = settings.port ?? 0;

  const write = (stream: Stream, message: Json): void => {
    stream.events.push(JSON.stringify(message));
    if (stream.json || stream.response === undefined) return;
    const id = eventIds ? `id: ${stream.key}/${stream.events.length}\n` : '';
    stream.response.write(`event: message\n${id}data: ${stream.events.at(-1)}\n\n`);
  };

  const begin = (
    stream: Stream,
    response: ServerResponse,
    headers: Record<string, string>,
  ): void => {
    stream.response = response;
    response.writeHead(200, { ...SSE, ...headers });
    response.flushHeaders();
    response.once('close', () => {
      if (stream.response === response) stream.response = undefined;
    });
    if (eventIds || settings.retry !== undefined) {
      const id = eventIds ? `id: ${stream.key}/${stream.events.length}\n` : '';
      const retry = settings.retry === undefined ? '' : `retry: ${settings.retry}\n`;
      response.write(`${id}${retry}data: \n\n`);
    }
  };

  const openSession = (legacy: boolean): Session => {
    const id = sessionful || legacy ? randomUUID() : 'none';
    const streams = new Map<Id, Stream>();
    const getStream: Stream = {
      key: 'get',
      events: [],
      response: undefined,
      fault: undefined,
      json: false,
    };
    const session: Session = {
      id,
      streams,
      byKey: new Map([['get', getStream]]),
      get: getStream,
      legacy,
      scripted: new ScriptedSession(settings, record, {
        session: id,
        send: (message, related) => {
          const stream = legacy || related === undefined ? getStream : streams.get(related);
          const answers = 'result' in message || 'error' in message;
          if (stream === undefined) return;
          if (stream.fault?.kind === 'lost' && answers) {
            stream.response?.socket?.resetAndDestroy();
            return;
          }
          if (stream.fault?.kind === 'end' && answers) {
            stream.response?.end();
            return;
          }
          if (stream.json) {
            if (!answers) write(getStream, message);
            else {
              stream.response?.writeHead(200, { 'content-type': 'application/json' });
              stream.response?.end(JSON.stringify(message));
            }
            return;
          }
          write(stream, message);
          if (answers && stream !== getStream) stream.response?.end();
        },
        print: () => {},
        die: () => restart(),
      }),
    };
    sessions.set(id, session);
    return session;
  };

  const takeFault = (method: string, body: Json | undefined): Fault | undefined => {
    const rpc = String(body?.method);
    const tool = `${rpc} ${(body?.params as Json | undefined)?.name}`;
    const found = faults.find(({ what, left }) => left > 0 && [method, rpc, tool].includes(what));
    if (found !== undefined) found.left -= 1;
    return found?.fault;
  };

  const refuse = (
    res: ServerResponse,
    status: number,
    code: number,
    message: string,
    id: unknown,
  ): void => {
    res.writeHead(status, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message } }));
  };

  /** True when the fault was all there is to the request. */
  const suffer = (
    fault: Fault | undefined,
    res: ServerResponse,
    body: Json | undefined,
  ): boolean => {
    switch (fault?.kind) {
      case 'status':
        res.writeHead(fault.status, fault.headers ?? {});
        res.end(fault.body ?? '');
        return true;
      case 'terminated':
        refuse(res, 200, -32600, 'Session terminated', body?.id);
        return true;
      case 'hang':
        return true;
      case 'reset':
        res.socket?.resetAndDestroy();
        return true;
      default:
        return false;
    }
  };

  const post = (
    req: IncomingMessage,
    res: ServerResponse,
    body: Json,
    fault: Fault | undefined,
  ): void => {
    const given = req.headers['mcp-session-id'];
    let session = sessions.get(sessionful ? String(given) : 'none');
    if (body.method === 'initialize') session = openSession(false);
    if (session === undefined && !sessionful) session = openSession(false);
    if (session === undefined || session.legacy) {
      if (given === undefined) refuse(res, 400, -32000, 'Mcp-Session-Id is missing', null);
      else refuse(res, 404, -32001, 'Session not found', null);
      return;
    }
    if (body.method === undefined || body.id === undefined) {
      res.writeHead(202).end();
      session.scripted.receive(body);
      return;
    }
    const id = body.id as Id;
    const headers: Record<string, string> = sessionful ? { 'mcp-session-id': session.id } : {};
    const json = answer === 'json' && fault?.kind !== 'end' && fault?.kind !== 'poll';
    const stream: Stream = { key: randomUUID(), events: [], response: res, fault, json };
    session.streams.set(id, stream);
    session.byKey.set(stream.key, stream);
    if (json) for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    else begin(stream, res, headers);
    if (fault?.kind === 'poll') {
      stream.response = undefined;
      res.end();
    }
    session.scripted.receive(body);
  };

  const getRequest = (req: IncomingMessage, res: ServerResponse): void => {
    const session = sessions.get(sessionful ? String(req.headers['mcp-session-id']) : 'none');
    if (get === 'none') {
      res.writeHead(405, { allow: 'POST, DELETE' }).end();
      return;
    }
    if (session === undefined) {
      refuse(res, 404, -32001, 'Session not found', null);
      return;
    }
    const [key = 'get', from] = String(req.headers['last-event-id'] ?? 'get').split('/');
    const stream = session.byKey.get(key) ?? session.get;
    const seen = from === undefined ? stream.events.length : Number(from);
    begin(stream, res, {});
    for (const [index, event] of stream.events.entries()) {
      if (index < seen) continue;
      res.write(`event: message\nid: ${stream.key}/${index + 1}\ndata: ${event}\n\n`);
      const message = JSON.parse(event) as Json;
      if (stream !== session.get && ('result' in message || 'error' in message)) res.end();
    }
    if (get === 'end') res.end();
  };

  const legacy = (res: ServerResponse): void => {
    const session = openSession(true);
    res.writeHead(200, SSE);
    session.get.response = res;
    res.once('close', () => sessions.delete(session.id));
    const endpoint = settings.endpoint ?? `/messages?sessionId=${session.id}`;
    res.write(`event: endpoint\ndata: ${endpoint}\n\n`);
  };

  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    void (async () => {
      const { method = '', url = '/' } = req;
      const { pathname: path, searchParams } = new URL(url, 'http://upstream');
      const body = method === 'POST' ? ((await readJson(req)) as Json) : undefined;
      requests.push({ method, path, headers: req.headers, body });
      const fault = takeFault(method, body);
      if (suffer(fault, res, body)) return;
      if (path === '/sse' && method === 'GET') legacy(res);
      else if (path === '/messages' && body !== undefined) {
        const session = sessions.get(searchParams.get('sessionId') ?? '');
        if (session === undefined) {
          refuse(res, 404, -32001, 'Session not found', body.id);
          return;
        }
        res.writeHead(202).end('Accepted');
        session.scripted.receive(body);
      } else if (path !== '/mcp') res.writeHead(404).end();
      else if (body !== undefined) post(req, res, body, fault);
      else if (method === 'GET') getRequest(req, res);
      else {
        const known = sessions.delete(String(req.headers['mcp-session-id']));
        res.writeHead(known ? 200 : 404).end();
      }
    })().catch(() => res.destroy());
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });

  const forget = (): void => {
    for (const session of sessions.values()) session.scripted.close();
    sessions.clear();
  };
  const restart = (): void => {
    forget();
    for (const socket of sockets) socket.destroy();
  };
  const start = async (): Promise<void> => {
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  };
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      restart();
    });
  await start();
  const live = () => [...sessions.values()].filter((session) => session.get.response !== undefined);

  return {
    url: `http://127.0.0.1:${port}/mcp`,
    sseUrl: `http://127.0.0.1:${port}/sse`,
    port,
    record,
    requests,
    get sessions() {
      return new Set(sessions.keys());
    },
    get open() {
      return sockets.size;
    },
    get streams() {
      return live().length;
    },
    fail: (what, fault, times = 1) => void faults.push({ what, fault, left: times }),
    push: (message) => {
      for (const session of sessions.values()) write(session.get, message);
    },
    forget,
    restart,
    endStreams: () => {
      for (const session of live()) session.get.response?.end();
    },
    stop,
    start,
    close: stop,
  };
};
