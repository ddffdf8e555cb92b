/**
 * @module
 * The stdio transport (2025-11-25, basic/transports, "stdio"): one JSON-RPC message a line.
 * The SDK's own never notices that its client has gone, and dies of a line that is too long.
 */
import type { Readable, Writable } from 'node:stream';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { type Clock, systemClock, type Timer } from '../../resilience/clock.ts';
import { instrumentTransport } from '../instrument.ts';
import {
  CODE,
  cancelledId,
  errorResponse,
  isRequest,
  isResponse,
  parseMessage,
} from '../jsonrpc.ts';
import type { ServerFactory } from '../server.ts';
import { type Frame, LineFramer } from './line-framer.ts';
import { LineOutput } from './line-output.ts';

/** Settings of `serveStdio`. */
export interface StdioOptions {
  /** Where messages come from, usually `process.stdin`. */
  readonly input: Readable;
  /** Where messages go, usually what `guardStdout()` gives. */
  readonly output: Writable;
  /** Longest line that is read, in bytes. Default 10 MiB. */
  readonly maxLineBytes?: number;
  /** Milliseconds that running calls get once the input has ended. Default 5 000. */
  readonly drainTimeout?: number;
  readonly clock?: Clock;
}

/** Unflushed characters from which on nothing more is read: a client that does not listen is not served. */
const MAX_UNFLUSHED = 1024 * 1024;

/**
 * Speaks MCP over a pair of byte streams.
 *
 * - What is no JSON is answered with -32700, what is no message or repeats the id of a running
 *   request with -32600, and the next line is read. So is a line beyond `maxLineBytes`.
 * - When the input ends nobody can ask for anything more: running calls may finish within
 *   `drainTimeout`, their answers are written, and `onclose` is called.
 */
class StdioTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport['onmessage'];

  readonly #input: Readable;
  readonly #output: Writable;
  readonly #lines: LineOutput;
  /** True when a notification or a request of ours may still wait for its write. */
  #notified = false;
  readonly #maxLineBytes: number;
  readonly #drainTimeout: number;
  readonly #clock: Clock;
  readonly #framer: LineFramer;
  readonly #running = new Set<RequestId>();
  #state: 'new' | 'open' | 'draining' | 'closed' = 'new';
  #deadline: Timer | undefined;

  constructor(options: StdioOptions) {
    this.#input = options.input;
    this.#output = options.output;
    this.#lines = new LineOutput(options.output, () => this.#onFlushed());
    this.#maxLineBytes = options.maxLineBytes ?? 10 * 1024 * 1024;
    this.#drainTimeout = options.drainTimeout ?? 5_000;
    this.#clock = options.clock ?? systemClock;
    this.#framer = new LineFramer(this.#maxLineBytes);
  }

  async start(): Promise<void> {
    if (this.#state !== 'new') throw new Error('StdioTransport: start() was called twice');
    this.#state = 'open';
    this.#input.on('data', this.#onData);
    this.#input.on('end', this.#onEnd);
    this.#input.on('close', this.#onEnd);
    this.#input.on('error', this.#onInputError);
    this.#output.on('error', this.#onOutputError);
    // A stream that had ended before we came says nothing more.
    if (this.#input.readableEnded || this.#input.destroyed) this.#onEnd();
  }

  /** Resolves when the message has been flushed, so that awaiting it is backpressure. */
  send(message: JSONRPCMessage): Promise<void> {
    if (this.#state === 'closed') return Promise.reject(new Error('the stdio client has gone'));
    // Clients on the SDK hand a notification on a turn after they have read it, and by then know
    // nothing of a call whose answer came in the same piece: its last progress would be lost.
    if (!isResponse(message)) this.#notified = true;
    else if (this.#notified) {
      this.#notified = false;
      this.#lines.flush();
    }
    const sent = this.#put(message);
    if (isResponse(message) && message.id !== undefined) this.#settle(message.id);
    return sent;
  }

  async close(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    // The process may end at once.
    this.#lines.flush();
    this.#deadline?.cancel();
    this.#detach();
    this.#running.clear();
    this.onclose?.();
  }

  readonly #onData = (chunk: Uint8Array | string): void => {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    for (const frame of this.#framer.push(bytes)) this.#receive(frame);
  };

  readonly #onInputError = (error: Error): void => {
    this.onerror?.(error);
    this.#onEnd();
  };

  // Nobody reads any more (EPIPE): what still runs, runs for nobody. Stays attached after
  // closing, because an 'error' without a listener ends the process.
  readonly #onOutputError = (error: Error): void => {
    if (this.#state === 'closed') return;
    this.onerror?.(error);
    void this.close();
  };

  readonly #onEnd = (): void => {
    if (this.#state !== 'open') return;
    for (const frame of this.#framer.end()) this.#receive(frame);
    this.#detach();
    this.#state = 'draining';
    this.#deadline = this.#clock.setTimer(this.#drainTimeout, () => void this.close());
    this.#closeIfDrained();
  };

  #detach(): void {
    this.#input.off('data', this.#onData);
    this.#input.off('end', this.#onEnd);
    this.#input.off('close', this.#onEnd);
    this.#input.pause();
  }

  #receive(frame: Frame): void {
    if (frame.kind === 'too-long') {
      const limit = `a line is longer than ${this.#maxLineBytes} bytes`;
      this.#refuse(null, CODE.invalidRequest, `Invalid Request: ${limit}; send less at a time`);
      return;
    }
    let value: unknown;
    try {
      if (frame.kind === 'not-utf8') throw new Error('the bytes are not UTF-8');
      value = JSON.parse(frame.text);
    } catch {
      const rule = 'each line must be one JSON-RPC message in UTF-8, without newlines in it';
      this.#refuse(null, CODE.parseError, `Parse error: ${rule}`);
      return;
    }
    const parsed = parseMessage(value);
    if (!parsed.ok) {
      if (parsed.isResponse) this.onerror?.(new Error(`Invalid response: ${parsed.reason}`));
      else this.#refuse(parsed.id, parsed.code, `Invalid Request: ${parsed.reason}`);
      return;
    }
    this.#deliver(parsed.message);
  }

  #deliver(message: JSONRPCMessage): void {
    if (isRequest(message)) {
      if (this.#running.has(message.id)) {
        // With the id in it, this would be taken for the answer to the request that runs.
        const id = JSON.stringify(message.id);
        const rule = `a request with the id ${id} is still running; use a new id for each`;
        this.#refuse(null, CODE.invalidRequest, `Invalid Request: ${rule}`);
        return;
      }
      this.#running.add(message.id);
    }
    this.onmessage?.(message);
    // A cancelled request gets no answer, so this is where it ends.
    const cancelled = cancelledId(message);
    if (cancelled !== undefined) this.#settle(cancelled);
  }

  #refuse(id: RequestId | null, code: number, message: string): void {
    this.onerror?.(new Error(message));
    this.#put(errorResponse(id, code, message)).catch((error) => this.onerror?.(error));
  }

  #put(message: unknown): Promise<void> {
    const sent = this.#lines.write(JSON.stringify(message));
    if (this.#lines.unflushed > MAX_UNFLUSHED) this.#input.pause();
    return sent;
  }

  #onFlushed(): void {
    if (this.#state === 'open' && this.#lines.unflushed <= MAX_UNFLUSHED) this.#input.resume();
    this.#closeIfDrained();
  }

  #settle(id: RequestId): void {
    this.#running.delete(id);
    this.#closeIfDrained();
  }

  #closeIfDrained(): void {
    if (this.#state !== 'draining' || this.#running.size > 0 || this.#lines.unflushed > 0) return;
    // The server has yet to hear that its last answer was sent; closed now, it would still
    // abort the call that gave it.
    setImmediate(() => void this.close());
  }
}

/** One client on stdio. */
export interface StdioDoor {
  /** Resolves once the client has gone and its last answer has been written. */
  readonly closed: Promise<void>;
  /** Ends the session now: running calls are aborted. */
  close(): Promise<void>;
}

/**
 * Serves one client over stdio, with telemetry. The process may end when `closed` resolves;
 * this function does not end it.
 */
export const serveStdio = async (
  options: StdioOptions & { readonly createServer: ServerFactory },
): Promise<StdioDoor> => {
  const server = options.createServer();
  const transport = instrumentTransport(new StdioTransport(options), {
    network: 'pipe',
    ...(options.createServer.known && { known: options.createServer.known }),
  });
  const closed = new Promise<void>((resolve) => {
    transport.onclose = resolve;
  });
  await server.connect(transport);
  return { closed, close: () => server.close() };
};
