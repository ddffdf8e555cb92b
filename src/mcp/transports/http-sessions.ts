/**
 * @module
 * The sessions of an HTTP door: how many there may be, and when one has been idle too long. A
 * client that leaves without a word, which is how most leave, must not cost memory for ever.
 */
import type { Clock, Timer } from '../../resilience/clock.ts';
import type { Refusal } from './http-answer.ts';
import { SESSION_NOT_FOUND, type SessionTransport } from './http-session.ts';

interface Entry {
  readonly session: SessionTransport;
  lastUsed: number;
  timer: Timer | undefined;
}

/** Settings of `Sessions`. */
export interface SessionLimits {
  readonly clock: Clock;
  readonly maxSessions: number;
  readonly sessionIdleTimeout: number;
}

/** Sessions by id. Holds one timer a session, and nothing of one that has ended. */
export class Sessions {
  readonly #limits: SessionLimits;
  // In order of last use, longest ago first.
  readonly #entries = new Map<string, Entry>();

  constructor(limits: SessionLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** All of them; ending one while looking is allowed. */
  all(): SessionTransport[] {
    return [...this.#entries.values()].map(({ session }) => session);
  }

  /**
   * Makes room for one more, if need be by ending the session that has been idle longest.
   * False when all of them are at work.
   */
  makeRoom(): boolean {
    if (this.#entries.size < this.#limits.maxSessions) return true;
    for (const { session } of this.#entries.values()) {
      if (session.running > 0) continue;
      session.end(SESSION_NOT_FOUND);
      return true;
    }
    return false;
  }

  add(id: string, session: SessionTransport): void {
    const entry: Entry = { session, lastUsed: this.#limits.clock.now(), timer: undefined };
    this.#entries.set(id, entry);
    this.#watch(entry, this.#limits.sessionIdleTimeout);
  }

  /** The session with that id, which counts as used now. */
  use(id: string): SessionTransport | undefined {
    const entry = this.#entries.get(id);
    if (!entry) return undefined;
    entry.lastUsed = this.#limits.clock.now();
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry.session;
  }

  /** Forgets a session that has ended. */
  delete(id: string): void {
    this.#entries.get(id)?.timer?.cancel();
    this.#entries.delete(id);
  }

  /** Ends all sessions. */
  endAll(reason: Refusal): void {
    for (const session of this.all()) session.end(reason);
  }

  // Not re-armed at every use: when it fires it looks how long ago the last one was.
  #watch(entry: Entry, delay: number): void {
    const { clock, sessionIdleTimeout } = this.#limits;
    entry.timer = clock.setTimer(delay, () => {
      if (entry.session.running > 0) {
        this.#watch(entry, sessionIdleTimeout);
        return;
      }
      const left = entry.lastUsed + sessionIdleTimeout - clock.now();
      if (left > 0) this.#watch(entry, left);
      else entry.session.end(SESSION_NOT_FOUND);
    });
  }
}
