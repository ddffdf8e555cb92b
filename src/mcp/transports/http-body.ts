/**
 * @module
 * Reads a request body within a size and a time.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../resilience/clock.ts';
import { ByteCollector } from '../byte-collector.ts';

/** What became of reading a body. `gone`: the client left before it was complete. */
export type Body =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'gone' };

/** Limits of `readBody`. */
export interface BodyLimits {
  readonly maxBytes: number;
  readonly timeout: number;
  readonly clock: Clock;
}

/**
 * Resolves as soon as the outcome is certain: a body whose declared length is too large is
 * never read at all. Never rejects, and leaves neither timer nor listener behind.
 */
export const readBody = (req: IncomingMessage, limits: BodyLimits): Promise<Body> =>
  new Promise((resolve) => {
    const { maxBytes, timeout, clock } = limits;
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) {
      resolve({ kind: 'too-large' });
      return;
    }
    const received = new ByteCollector();
    const finish = (body: Body) => {
      timer.cancel();
      req.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
      // An aborted request emits 'error' after 'close'; unheard, that would end the process.
      req.on('error', () => {});
      resolve(body);
    };
    const onData = (chunk: Buffer) => {
      if (received.size + chunk.length > maxBytes) finish({ kind: 'too-large' });
      else received.add(chunk);
    };
    const onEnd = () => finish({ kind: 'read', bytes: received.take() });
    const onGone = () => finish({ kind: 'gone' });
    const timer = clock.setTimer(timeout, () => finish({ kind: 'timeout' }));
    req.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
  });

/**
 * Throws the rest of a refused body away, so that the client gets to read the answer before its
 * connection ends, but no more than `maxBytes` of it.
 */
export const discardRest = (req: IncomingMessage, maxBytes: number): void => {
  let discarded = 0;
  req.on('data', (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > maxBytes) req.socket.destroy();
  });
  req.resume();
};

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The JSON value in a body; undefined when it holds none. */
export const parseBody = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined;
  }
};
