/**
 * @module
 * The stream on which an HTTP server says what nobody asked for: a GET that stays open.
 */
import type { EventSourceMessage } from 'eventsource-parser';
import { backoffDelay } from '../resilience/backoff.ts';
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
import { LinkError } from './link-failure.ts';
import { readEvents } from './sse-reader.ts';

/** Milliseconds after which a stream counts as one that worked, though nothing came on it. */
const SETTLED = 5_000;

/** Statuses of 4xx that pass by themselves. The others mean that there is no such stream. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429]);

const isFinal = (error: unknown): boolean => {
  if (!(error instanceof LinkError)) return true;
  const { status, sessionLost, failure } = error;
  if (sessionLost) return true;
  if (status === undefined) return !failure.retryable;
  return status < 500 && !PASSING.has(status);
};

/**
 * Keeps the stream open until the link ends, the session is lost, or the server says that it
 * offers none: one try is enough to know that (usually 405). A stream that ends is opened again
 * after the event it ended at, with a backoff that grows while nothing comes of it, so that a
 * server that closes at once is asked once a minute. Never rejects.
 */
export const runServerStream = async (session: HttpSession): Promise<void> => {
  const { clock, closing, random } = session;
  const position: StreamPosition = { lastEventId: undefined, retry: 0 };
  let fruitless = 0;
  const reader = {
    maxLength: session.maxBytes,
    onEvent: (event: EventSourceMessage) => {
      for (const message of messagesOf(event, session)) {
        fruitless = 0;
        session.deliver(message, undefined);
      }
    },
    ...keeping(position),
  };
  for (;;) {
    const since = clock.now();
    let asked = 0;
    fruitless += 1;
    try {
      const end = await readEvents(
        await openStream(session, position.lastEventId, closing),
        reader,
      );
      // Read again from its id, the same event would be as long as before.
      if (end.kind === 'too-long') position.lastEventId = undefined;
      if (clock.now() - since >= SETTLED) fruitless = 0;
    } catch (error) {
      if (closing.aborted) return;
      if (isFinal(error)) {
        if (position.lastEventId === undefined || (error instanceof LinkError && error.sessionLost))
          return;
        // The event may be too old for the server: the stream without its past is worth a try.
        position.lastEventId = undefined;
      } else if (error instanceof LinkError) {
        asked = (error.failure.retryAfter ?? 0) * 1_000;
      }
    }
    const backoff = backoffDelay(STREAM_BACKOFF, Math.max(1, fruitless), random);
    if (!(await pause(clock, Math.max(MIN_PAUSE, position.retry, asked, backoff), closing))) return;
  }
};
