/**
 * @module
 * Notifications on their way to the client: none before it is ready for them, and of many
 * changes of a list at once only one.
 */
import type { RequestId } from '../mcp/jsonrpc.ts';
import type { Clock, Timer } from '../resilience/clock.ts';
import { orAborted } from '../resilience/or-aborted.ts';
import type { Json } from './types.ts';

/** Sends one notification. Resolves when it has gone out; never rejects. */
export type SendNotification = (
  method: string,
  params: Json | undefined,
  related: RequestId | undefined,
) => Promise<void>;

/**
 * Notifications on their way to a client that does not read, from which on more of those that are
 * worth nothing later are left out.
 */
const MAX_UNSENT = 1_000;
const EPHEMERAL = new Set(['notifications/progress', 'notifications/message']);

/** Notifications that wait for the client at most. */
const MAX_WAITING = 1_000;

/** Milliseconds in which changes of the same list become one notification. */
const CHANGE_DELAY = 50;

/** The notifications of one client session. */
export class RelayNotifier {
  readonly #clock: Clock;
  readonly #send: SendNotification;
  readonly #changes = new Map<string, Timer>();
  #unsent = 0;
  #waiting: (() => void)[] | undefined = [];
  readonly #begun: Promise<void>;
  #begin = (): void => {};

  constructor(clock: Clock, send: SendNotification) {
    this.#clock = clock;
    this.#send = send;
    this.#begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  /** The client has been initialised: what waited goes out, in order. */
  begin(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    this.#waiting = undefined;
    for (const send of waiting) send();
    this.#begin();
  }

  /**
   * Resolves once the client has been initialised: it is asked nothing before (2025-11-25,
   * basic/lifecycle).
   */
  begun(signal: AbortSignal): Promise<void> {
    return orAborted(this.#begun, signal);
  }

  /** Sends a notification, in its turn. */
  send(method: string, params: Json | undefined, related: RequestId | undefined): void {
    const send = (): void => this.#put(method, params, related);
    if (!this.#waiting) send();
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(send);
  }

  /** A list has changed; a client that has not begun has not seen any. */
  changed(method: string): void {
    if (this.#waiting || this.#changes.has(method)) return;
    const timer = this.#clock.setTimer(CHANGE_DELAY, () => {
      this.#changes.delete(method);
      this.#put(method, undefined, undefined);
    });
    this.#changes.set(method, timer);
  }

  #put(...[method, params, related]: Parameters<SendNotification>): void {
    if (this.#unsent >= MAX_UNSENT && EPHEMERAL.has(method)) return;
    this.#unsent += 1;
    void this.#send(method, params, related).then(() => {
      this.#unsent -= 1;
    });
  }

  /** Sends nothing more. */
  end(): void {
    for (const timer of this.#changes.values()) timer.cancel();
    this.#changes.clear();
    this.#waiting = [];
  }
}
