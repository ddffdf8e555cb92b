/**
 * @module
 * Reads a stream of server-sent events to its end.
 */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { HttpResponse } from './http-response.ts';

/** How a stream ended. */
export interface EventStreamEnd {
  /**
   * `ended` in an orderly way; `broken`: the connection was lost or aborted; `too-long`: an event
   * was longer than allowed, and the stream was given up.
   */
  readonly kind: 'ended' | 'broken' | 'too-long';
  /** What broke it. */
  readonly error?: unknown;
}

/** What becomes of a stream's events. */
export interface EventStreamReader {
  /** Most characters of one event. */
  readonly maxLength: number;
  onEvent(event: EventSourceMessage): void;
  /** Id to go on after, should the stream end. It comes before the event that carries it. */
  onId?(id: string): void;
  /** Milliseconds that the server asks to wait before coming back. */
  onRetry?(ms: number): void;
}

/**
 * Resolves when the stream is over, whatever the reason. Holds at most one event: chunks are
 * joined once, when the event is complete, so that a long one costs no more than its length.
 */
export const readEvents = (
  response: HttpResponse,
  reader: EventStreamReader,
): Promise<EventStreamEnd> =>
  new Promise((resolve) => {
    const decoder = new TextDecoder();
    let over = false;
    const parser = createParser({
      maxBufferSize: reader.maxLength,
      onEvent: (event) => {
        // The parser minds what it holds, not what it is given at once.
        if (event.data.length > reader.maxLength) finish({ kind: 'too-long' });
        else if (!over) reader.onEvent(event);
      },
      onId: (id) => reader.onId?.(id),
      onRetry: (ms) => reader.onRetry?.(ms),
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') finish({ kind: 'too-long' });
      },
    });
    const finish = (end: EventStreamEnd): void => {
      if (over) return;
      over = true;
      if (end.kind === 'too-long') response.destroy();
      resolve(end);
    };
    response.consume({
      onData: (chunk) => {
        if (!over) parser.feed(decoder.decode(chunk, { stream: true }));
      },
      onEnd: (complete, error) => finish(complete ? { kind: 'ended' } : { kind: 'broken', error }),
    });
  });
