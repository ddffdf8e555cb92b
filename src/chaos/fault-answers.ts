/**
 * @module
 * What the fault server does with a request, kind by kind.
 */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../resilience/clock.ts';
import { type FaultSpec, type HttpFaultKind, retryAfterHeader } from './fault.ts';
import type { Play } from './fault-server.ts';

/** Kinds that a connection has been made for. */
type AnsweredKind = Exclude<HttpFaultKind, 'connection_refused' | 'dns'>;

/** A well-formed answer, for kinds that spoil it. */
const JSON_BODY = JSON.stringify({ status: 'ok', data: { items: [1, 2, 3], total: 3 } });
/** More than any reader should take: it must stop by itself. */
const OVERSIZED = 64 * 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024, 'x');
/** Milliseconds between two bytes of a dripping body, and how many bytes it promises. */
const DRIP = 250;
const DRIP_LENGTH = 10_000;

const head = (status: number, headers: Readonly<Record<string, string | number>>): string =>
  [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n');

/** A complete answer as far as HTTP knows. */
const answer = (
  socket: Socket,
  body: string,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void => {
  const length = Buffer.byteLength(body);
  const type = 'application/json';
  const all = { 'content-type': type, 'content-length': length, connection: 'close', ...headers };
  socket.end(head(status, all) + body);
};

const flood = (socket: Socket): void => {
  socket.write(
    `${head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked', connection: 'close' })}1\r\n"\r\n`,
  );
  let sent = 0;
  const frame = `${CHUNK.length.toString(16)}\r\n`;
  const pour = (): void => {
    while (sent < OVERSIZED && !socket.destroyed) {
      sent += CHUNK.length;
      socket.write(frame);
      socket.write(CHUNK);
      if (!socket.write('\r\n')) return;
    }
    if (!socket.writableEnded) socket.end('1\r\n"\r\n0\r\n\r\n');
  };
  socket.on('drain', pour);
  pour();
};

const drip = (socket: Socket, clock: Clock): void => {
  socket.write(head(200, { 'content-type': 'application/json', 'content-length': DRIP_LENGTH }));
  let sent = 0;
  let timer: Timer | undefined;
  const drop = (): void => {
    socket.write(sent === 0 ? '"' : 'x');
    sent += 1;
    timer = clock.setTimer(DRIP, drop);
  };
  drop();
  socket.once('close', () => timer?.cancel());
};

const PLAYS: Readonly<
  Record<AnsweredKind, (socket: Socket, spec: FaultSpec, clock: Clock) => void>
> = {
  status: (socket, spec, clock) => {
    const { status = 503 } = spec;
    const retryAfter = retryAfterHeader(spec, clock.wallTime());
    const body = JSON.stringify({ error: STATUS_CODES[status] });
    answer(socket, body, status, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
  },
  connection_reset: (socket) => void socket.resetAndDestroy(),
  half_closed_body: (socket) => {
    // Without "connection: close": whoever announces the end does not break off.
    const length = Buffer.byteLength(JSON_BODY);
    const headers = { 'content-type': 'application/json', 'content-length': length };
    socket.end(head(200, headers) + JSON_BODY.slice(0, length / 2));
  },
  malformed_json: (socket) => answer(socket, `${JSON_BODY.slice(0, -1)},,`),
  truncated_body: (socket) => answer(socket, JSON_BODY.slice(0, JSON_BODY.length / 2)),
  empty_body: (socket) => answer(socket, ''),
  oversized_body: (socket) => flood(socket),
  dripping_body: (socket, _spec, clock) => drip(socket, clock),
  wrong_content_type: (socket) =>
    answer(socket, '<!doctype html><title>Sign in</title><p>Please sign in.', 200, {
      'content-type': 'text/html; charset=utf-8',
    }),
};

/** What happens to a request that a fault of that kind strikes. */
export const playFor =
  (kind: AnsweredKind, spec: FaultSpec, clock: Clock): Play =>
  (socket) =>
    PLAYS[kind](socket, spec, clock);
