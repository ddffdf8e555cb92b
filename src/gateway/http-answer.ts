/**
 * @module
 * The stream on which the answer to one request comes. A server may end it early and have the
 * client come back for the rest (2025-11-25, basic/transports, "Resumability and Redelivery").
 */
import type { RequestId } from '../mcp/jsonrpc.ts';
import { backoffDelay } from '../resilience/backoff.ts';
import type { Timer } from '../resilience/clock.ts';
import type { HttpResponse } from './http-response.ts';
import {
  type HttpSession,
  keeping,
  MIN_PAUSE,
  messagesOf,
  openStream,
  pause,
  STREAM_BACKOFF,
  type StreamPosition,
} from './http-session.ts';
import { broken, cutShort, LinkError, tooLong, unanswered, unusable } from './link-failure.ts';
import { answeredId, parseMessages } from './link-message.ts';
import { readEvents } from './sse-reader.ts';

/** Milliseconds before coming back, where the server does not say. */
const RETRY = 1_000;
/** Attempts in a row that may fail to open the stream again. */
const MAX_FAILURES = 5;
/** Milliseconds that a stream may stay open after the answer, before it is closed from here. */
const LINGER = 1_000;

/** The request whose answer is awaited. */
export interface AwaitedAnswer {
  readonly id: RequestId;
  /** The caller waits no longer. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Delivers the messages of a JSON body: one, or a batch.
 *
 * @throws LinkError when it cannot be read or holds no answer; the signal's reason on abort
 */
export const readAnswer = async (
  session: HttpSession,
  response: HttpResponse,
  { id, signal }: AwaitedAnswer,
): Promise<void> => {
  const body = await response.read(session.maxBytes, Number.POSITIVE_INFINITY, session.clock);
  signal?.throwIfAborted();
  if (body.kind === 'too-large') throw tooLong(session.maxBytes);
  if (body.kind !== 'read') throw cutShort();
  const messages = parseMessages(body.bytes.toString());
  if (messages === undefined) throw unusable('it is no JSON-RPC message');
  let answered = false;
  for (const message of messages) {
    // Said of a request whose id the server could not read: there is only one that it can mean.
    const unread = 'error' in message && (message.id as unknown) === null;
    answered ||= unread || answeredId(message) === id;
    session.deliver(unread ? { ...message, id } : message, id);
  }
  if (!answered) throw unusable('it does not answer the request');
};

/**
 * Delivers what comes on the stream, and goes on with it where it is ended early and its events
 * have ids. Resolves when the answer was delivered or nobody waits for it any more, or with the
 * failure because of which it cannot come. Never rejects.
 */
export const followAnswer = async (
  session: HttpSession,
  first: HttpResponse,
  { id, signal }: AwaitedAnswer,
): Promise<LinkError | undefined> => {
  let stream = first;
  const position: StreamPosition = { lastEventId: undefined, retry: RETRY };
  let answered = false;
  let linger: Timer | undefined;
  const reader = {
    maxLength: session.maxBytes,
    onEvent: (event: Parameters<typeof messagesOf>[0]) => {
      for (const message of messagesOf(event, session)) {
        if (answeredId(message) === id) {
          answered = true;
          linger ??= session.clock.setTimer(LINGER, () => stream.destroy());
        }
        session.deliver(message, id);
      }
    },
    ...keeping(position),
  };
  for (;;) {
    const end = await readEvents(stream, reader);
    linger?.cancel();
    if (answered || signal?.aborted || session.closing.aborted) return undefined;
    if (end.kind === 'too-long') return tooLong(session.maxBytes);
    const { lastEventId, retry } = position;
    if (lastEventId === undefined) {
      return end.kind === 'ended' ? unanswered() : broken(end.error ?? cutShort());
    }
    const again = await reopen(session, lastEventId, retry, signal);
    if (again === undefined || again instanceof LinkError) return again;
    stream = again;
  }
};

/** The stream, opened again; the failure when it cannot be; undefined on abort. */
const reopen = async (
  session: HttpSession,
  lastEventId: string,
  retry: number,
  caller: AbortSignal | undefined,
): Promise<HttpResponse | LinkError | undefined> => {
  const { clock, closing, random } = session;
  const signal = caller === undefined ? closing : AbortSignal.any([caller, closing]);
  for (let failures = 0; ; failures += 1) {
    const backoff = failures === 0 ? 0 : backoffDelay(STREAM_BACKOFF, failures, random);
    if (!(await pause(clock, Math.max(MIN_PAUSE, retry, backoff), signal))) return undefined;
    try {
      return await openStream(session, lastEventId, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      // The request itself was accepted long ago: whatever is said now, its answer is lost.
      const final = error instanceof LinkError && !error.failure.retryable;
      if (final || failures + 1 === MAX_FAILURES) return unanswered();
      if (error instanceof LinkError && error.sessionLost) return unanswered();
    }
  }
};
