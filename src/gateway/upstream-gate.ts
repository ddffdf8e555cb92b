/**
 * @module
 * When the next connection to an upstream may be tried. One gate for all sessions with it: after a
 * failure they wait together, one of them tries, and the others go on with what it found out.
 */
import { type Backoff, backoffDelay } from '../resilience/backoff.ts';
import type { Clock, Random, Timer } from '../resilience/clock.ts';

/** Longest wait that an upstream may ask for by Retry-After, in milliseconds. */
const LONGEST_ASKED = 3_600_000;

/** Right to try once. Ends with exactly one of the three. */
export interface Turn {
  /** The upstream is there. Returns the era that the connection belongs to. */
  succeeded(): number;
  /** @param retryAfter seconds that the upstream asked to wait */
  failed(retryAfter?: number): void;
  /** Nobody wants the connection any more. */
  abandoned(): void;
}

interface Waiter {
  readonly enter: (turn: Turn) => void;
}

/**
 * Closed by a failure, open again when a try has succeeded. The waits grow with every failure in a
 * row, up to `maxDelay` and never for good. A success ends the series only when it has lasted, or
 * `useful()` says that the connection was good for something: a server that accepts and dies at
 * once would else be started in a tight loop (python-sdk#3356).
 */
export class RestartGate {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backoff: Backoff;
  readonly #onChange: () => void;
  readonly #waiters = new Set<Waiter>();
  /** Counts failures for good; what began in an earlier one says nothing new. */
  #era = 0;
  #failures = 0;
  #closed = false;
  #failedAt = 0;
  #nextAt = 0;
  #probing = false;
  #timer: Timer | undefined;
  #settling: Timer | undefined;

  constructor(
    settings: { readonly initialDelay: number; readonly maxDelay: number },
    env: { readonly clock: Clock; readonly random: Random; readonly onChange: () => void },
  ) {
    const { initialDelay: baseDelay, maxDelay } = settings;
    // Equal jitter: never at once, and so never in a tight loop.
    this.#backoff = { baseDelay, maxDelay, factor: 2, jitter: 'equal' };
    this.#clock = env.clock;
    this.#random = env.random;
    this.#onChange = env.onChange;
  }

  /** The last try failed, or a connection was lost since. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Failures without a connection in between that was good for something. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until the next try may begin; 0 when it may begin now, or has begun. */
  get wait(): number {
    return this.#closed && !this.#probing ? Math.max(0, this.#nextAt - this.#clock.now()) : 0;
  }

  /**
   * Waits for the turn to try.
   *
   * @throws the signal's reason as soon as it aborts
   */
  enter(signal: AbortSignal): Promise<Turn> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (!this.#closed) return Promise.resolve(this.#turn(false));
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) this.#stopTimer();
        reject(signal.reason);
      };
      const waiter: Waiter = {
        enter: (turn) => {
          signal.removeEventListener('abort', onAbort);
          resolve(turn);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
      this.#pump();
    });
  }

  /** A new client has come: it need not wait longer than after a first failure. */
  hurry(): void {
    this.#nextAt = Math.min(this.#nextAt, this.#failedAt + this.#backoff.baseDelay);
    this.#stopTimer();
    this.#pump();
  }

  /** A connection of that era was lost. */
  lost(era: number): void {
    this.#fail(era, 0);
  }

  /** A connection has proved good for something: the next failure is a first one. */
  useful(): void {
    if (this.#failures === 0 || this.#closed) return;
    this.#settled();
  }

  /** Ends its timers. */
  destroy(): void {
    this.#stopTimer();
    this.#settling?.cancel();
  }

  #turn(probe: boolean): Turn {
    const era = this.#era;
    const end = () => {
      if (probe) this.#probing = false;
    };
    return {
      succeeded: () => {
        end();
        this.#open();
        return this.#era;
      },
      failed: (retryAfter = 0) => {
        end();
        this.#fail(era, retryAfter);
        this.#pump();
      },
      abandoned: () => {
        end();
        this.#pump();
      },
    };
  }

  #open(): void {
    if (!this.#closed) return;
    this.#closed = false;
    this.#stopTimer();
    this.#settling = this.#clock.setTimer(this.#backoff.maxDelay, () => this.#settled());
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter);
      waiter.enter(this.#turn(false));
    }
  }

  #settled(): void {
    this.#settling?.cancel();
    this.#settling = undefined;
    this.#failures = 0;
    this.#onChange();
  }

  #fail(era: number, retryAfter: number): void {
    if (era !== this.#era) return;
    this.#settling?.cancel();
    this.#era += 1;
    this.#failures += 1;
    this.#closed = true;
    this.#failedAt = this.#clock.now();
    const delay = backoffDelay(this.#backoff, this.#failures, this.#random);
    const asked = Math.min(retryAfter * 1_000, LONGEST_ASKED);
    this.#nextAt = this.#failedAt + Math.max(delay, asked);
  }

  #stopTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #pump(): void {
    if (!this.#closed || this.#probing || this.#timer || this.#waiters.size === 0) return;
    const wait = this.wait;
    if (wait > 0) {
      const onTime = () => {
        this.#timer = undefined;
        this.#pump();
      };
      // A session waits for it, and a process with nothing else to do must not end meanwhile.
      this.#timer = this.#clock.setTimer(wait, onTime, true);
      return;
    }
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter);
      this.#probing = true;
      waiter.enter(this.#turn(true));
      return;
    }
  }
}
