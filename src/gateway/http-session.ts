/**
 * @module
 * What the streams of an HTTP link share: the session they belong to, and how one is opened.
 */
import type { EventSourceMessage } from 'eventsource-parser';
import type { JSONRPCMessage, RequestId } from '../mcp/jsonrpc.ts';
import type { Backoff } from '../resilience/backoff.ts';
import { type Clock, type Random, sleep } from '../resilience/clock.ts';
import type { HttpClient } from './http-client.ts';
import type { HttpResponse } from './http-response.ts';
import { type LinkError, unusable } from './link-failure.ts';
import { parseMessages } from './link-message.ts';

/** The session of a link, as its streams see it. */
export interface HttpSession {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Longest message that is taken, in bytes. */
  readonly maxBytes: number;
  /** Aborted when the link is at its end. */
  readonly closing: AbortSignal;
  /** Those that name the session, and the given ones. */
  headers(more: Readonly<Record<string, string>>): Record<string, string>;
  /** Hands a message on. */
  deliver(message: JSONRPCMessage, related: RequestId | undefined): void;
  /** Something arrived that is no message. */
  ignore(text: string): void;
  /** The failure that an answer without success is; a lost session is noted. */
  refuse(response: HttpResponse): Promise<LinkError>;
}

/** Between attempts to open a stream again, where the server does not say how long to wait. */
export const STREAM_BACKOFF: Backoff = {
  baseDelay: 1_000,
  maxDelay: 60_000,
  factor: 2,
  jitter: 'equal',
};

/** Shortest time between two streams, whatever the server says: a zero must not make a loop. */
export const MIN_PAUSE = 50;

/**
 * Opens a stream with GET, after the event `lastEventId` where there was one.
 *
 * @throws LinkError when there is no such stream; the signal's reason on abort
 */
export const openStream = async (
  session: HttpSession,
  lastEventId: string | undefined,
  signal: AbortSignal,
): Promise<HttpResponse> => {
  // As browsers do it: the bytes of UTF-8, where a header has room for bytes alone.
  const id = lastEventId === undefined ? '' : Buffer.from(lastEventId).toString('latin1');
  const resume = lastEventId === undefined ? undefined : { 'last-event-id': id };
  const headers = session.headers({ accept: 'text/event-stream', ...resume });
  const response = await session.client.request({ method: 'GET', headers, signal });
  if (response.status !== 200) throw await session.refuse(response);
  const problem = response.encodingProblem ?? notEvents(response);
  if (problem !== undefined) {
    response.destroy();
    throw problem;
  }
  return response;
};

const notEvents = (response: HttpResponse): LinkError | undefined =>
  response.mediaType === 'text/event-stream'
    ? undefined
    : unusable('it is no event stream', { severity: 'permanent', retryable: false });

/** The messages in an event. One without data only carries an id to go on after. */
export const messagesOf = (
  event: EventSourceMessage,
  session: Pick<HttpSession, 'ignore'>,
): readonly JSONRPCMessage[] => {
  if (event.data === '' || (event.event ?? 'message') !== 'message') return [];
  const messages = parseMessages(event.data);
  if (messages === undefined) session.ignore(event.data);
  return messages ?? [];
};

/** Waits without keeping the process alive. False: the signal aborted before the time was over. */
export const pause = (clock: Clock, delay: number, signal: AbortSignal): Promise<boolean> =>
  sleep(clock, delay, signal, false).then(
    () => true,
    () => false,
  );

/** How far a stream has been read, and how long its server asks to wait before coming back. */
export interface StreamPosition {
  lastEventId: string | undefined;
  /** Milliseconds. */
  retry: number;
}

/** What a reader of events tells a position. */
export const keeping = (position: StreamPosition) => ({
  onId: (id: string): void => {
    position.lastEventId = id === '' ? undefined : id;
  },
  onRetry: (ms: number): void => {
    position.retry = ms;
  },
});
