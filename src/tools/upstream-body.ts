/**
 * @module
 * Bodies of answers: read to a bound, or emptied so that the connection can be used again.
 */
import { ByteCollector } from '../mcp/byte-collector.ts';
import { systemClock } from '../resilience/clock.ts';

/** Bytes that are read of a body nobody needs; beyond that a new connection is cheaper. */
const DRAIN_BYTES = 64 * 1024;
/** Milliseconds given to a body nobody needs: the status must not wait for it. */
const DRAIN_TIME = 500;
/** Characters kept of it. */
const HEAD = 1_000;

/**
 * The whole body, or undefined when it is longer than `maxBytes`; its connection is closed
 * then. Rejects as the stream does: on abort, and when the connection breaks.
 */
export const readBody = async (
  response: Response,
  maxBytes: number,
): Promise<Uint8Array | undefined> => {
  const { body } = response;
  if (body === null) return new Uint8Array();
  if (Number(response.headers.get('content-length')) > maxBytes) {
    await body.cancel();
    return undefined;
  }
  const received = new ByteCollector();
  // Leaving the loop cancels the stream.
  for await (const chunk of body) {
    if (received.size + chunk.length > maxBytes) return undefined;
    received.add(chunk);
  }
  return received.take();
};

/**
 * Empties the body and returns its beginning, for what it says. Undici gives a connection back
 * only when its body was read to the end; one that does not end soon is closed. Never rejects:
 * what was to be known stands in the status.
 */
export const drain = async (response: Response): Promise<string> => {
  const reader = response.body?.getReader();
  if (reader === undefined) return '';
  const cancel = () => void reader.cancel().catch(() => {});
  const timer = systemClock.setTimer(DRAIN_TIME, cancel);
  const decoder = new TextDecoder();
  let head = '';
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (head.length < HEAD) head += decoder.decode(value, { stream: true });
      if (size > DRAIN_BYTES) {
        cancel();
        break;
      }
    }
  } catch {
    // Broken or aborted; the connection is gone with it.
  } finally {
    timer.cancel();
  }
  return head.slice(0, HEAD);
};
