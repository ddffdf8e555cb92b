/**
 * @module
 * Stops a model that repeats a failing call (the opposite of a breaker: the tool works, but says
 * no, and will say it again). Off unless configured; one for each client.
 */
import { JsonRpcError } from '../mcp/jsonrpc.ts';
import { cacheKey } from '../resilience/cache-key.ts';
import type { Clock } from '../resilience/clock.ts';
import { createFailure, ResilienceError } from '../resilience/failure.ts';
import { clean } from '../resilience/inspect.ts';
import type { Json } from './types.ts';

/** Milliseconds after a failure from which the same call is let through again: things change. */
const HOLD = 60_000;

/** What of a tool's text is repeated. */
const MAX_TEXT = 200;

/** What a call is known by; undefined for arguments without identity. */
const identityOf = (tool: string, args: unknown): string | undefined => {
  try {
    return cacheKey({ dependency: '', operation: tool, args });
  } catch {
    return undefined;
  }
};

/** What a failed answer says; undefined for one that is none. */
const complaintOf = (answer: Json | JsonRpcError): string | undefined => {
  if (answer instanceof JsonRpcError) return `error ${answer.code}: ${answer.message}`;
  if (answer.isError !== true) return undefined;
  const content = Array.isArray(answer.content) ? answer.content : [];
  return content.map((block: { text?: unknown } | null) => String(block?.text ?? '')).join(' ');
};

/** Counts identical calls in a row that failed alike. Any other call in between starts anew. */
export class ToolGuard {
  readonly #limit: number;
  readonly #clock: Clock;
  #call: string | undefined;
  #complaint = '';
  #failures = 0;
  #failedAt = 0;

  /** @param limit identical failures after which the next call is answered here */
  constructor(limit: number, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /**
   * Must precede each call of a tool.
   *
   * @throws ResilienceError `TOOL_ERROR` for one that has failed alike too often in a row
   */
  check(upstream: string, tool: string, args: unknown): void {
    const call = identityOf(tool, args);
    if (call === undefined || call !== this.#call) {
      this.#call = call;
      this.#failures = 0;
      return;
    }
    if (this.#failures < this.#limit) return;
    const left = this.#failedAt + HOLD - this.#clock.now();
    if (left <= 0) return;
    const message = `the tool "${tool}" of upstream "${upstream}" was not called again: ${this.#failures} identical calls in a row have failed with the same error: ${clean(this.#complaint, MAX_TEXT)}`;
    const suggestion =
      'Do not repeat this call. Change the arguments, use another tool, or tell the user what the error says.';
    const details = {
      message,
      suggestion,
      delivery: 'not_sent',
      retryAfter: left / 1_000,
    } as const;
    throw new ResilienceError(createFailure('TOOL_ERROR', details));
  }

  /** Takes the answer to a call. */
  answered(tool: string, args: unknown, answer: Json | JsonRpcError): void {
    if (this.#call === undefined || identityOf(tool, args) !== this.#call) return;
    const complaint = complaintOf(answer);
    if (complaint === undefined) this.#failures = 0;
    else {
      this.#failures =
        complaint === this.#complaint || this.#failures === 0 ? this.#failures + 1 : 1;
      this.#complaint = complaint;
      this.#failedAt = this.#clock.now();
    }
  }
}
