/**
 * @module
 * One attempt at the protected work: what the work is told, and the promise that settles when
 * the work ends or is given up, whichever comes first. The abort signal is made only when
 * somebody reads it: making and firing one costs more than all policies together.
 */
import type { Clock, Timer } from './clock.ts';
import { Deadline, runWithDeadline } from './deadline.ts';
import type { Expirable, ExpiryQueue } from './timeout.ts';

/**
 * What the protected work is told about the call it is part of.
 *
 * @example
 * ```ts
 * import { type CallContext, createPipeline, presets } from 'mcp-resilience';
 * const readInvoice = ({ signal, attempt, deadline }: CallContext) => {
 *   console.error(`attempt ${attempt}, ${deadline.remaining()} ms left`);
 *   return fetch('https://billing.example/1', { signal });
 * };
 * await createPipeline('billing', presets.internal).execute(readInvoice);
 * ```
 */
export interface CallContext {
  /**
   * Aborted when the caller cancels, the attempt times out, the deadline passes, or another
   * attempt has won. Pass it to everything that takes a signal.
   */
  readonly signal: AbortSignal;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** When the whole call must have ended. */
  readonly deadline: Deadline;
  /** Says that the work makes progress: the attempt's time limit begins anew, the deadline stays. */
  renew(): void;
}

/**
 * The protected work: called once for each attempt. It fails when it throws or rejects, with
 * anything that `classify` knows, a `Response` among them.
 *
 * @example
 * ```ts
 * import { createPipeline, presets, type Work } from 'mcp-resilience';
 * const readInvoice = (id: string): Work<string> => async ({ signal }) => {
 *   const response = await fetch(`https://billing.example/${id}`, { signal });
 *   if (!response.ok) throw response;
 *   return response.text();
 * };
 * const invoice = await createPipeline('billing', presets.internal).execute(readInvoice('7'));
 * ```
 */
export type Work<T> = (context: CallContext) => T | PromiseLike<T>;

/** What an attempt needs of the call it belongs to. */
export interface AttemptHost {
  readonly clock: Clock;
  readonly deadline: Deadline | undefined;
  readonly callerSignal: AbortSignal | undefined;
  /** Queue of the attempt time limit, if there is one. */
  readonly expiry: ExpiryQueue | undefined;
  /** Milliseconds of the attempt time limit; `Infinity` without one. */
  readonly timeout: number;
  /** Makes the error of an attempt that took too long; `attempt` is its number. */
  timedOut(reason: 'attempt' | 'deadline', attempt: number): Error;
  /** Called once the work itself has ended, however long ago the attempt was given up. */
  workEnded(): void;
}

export class Attempt<T> implements CallContext, Expirable {
  readonly attempt: number;
  expiresAt = 0;
  earlier: Expirable | undefined = undefined;
  later: Expirable | undefined = undefined;
  queued = false;
  readonly #host: AttemptHost;
  #resolve: (value: T) => void = ignore;
  #reject: (error: unknown) => void = ignore;
  #settled = false;
  #controller: AbortController | undefined;
  #abortReason: unknown;
  #aborted = false;
  #timer: Timer | undefined;
  #onCallerAbort: (() => void) | undefined;

  constructor(host: AttemptHost, attempt: number) {
    this.#host = host;
    this.attempt = attempt;
  }

  get deadline(): Deadline {
    return this.#host.deadline ?? Deadline.never;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** Starts the work. Settles with its outcome, or as soon as it is given up. */
  run(work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      let pending: PromiseLike<T>;
      try {
        const { deadline } = this.#host;
        const started =
          deadline === undefined ? work(this) : runWithDeadline(deadline, () => work(this));
        if (!isThenable(started)) {
          this.#workDone(started);
          return;
        }
        // A promise of somebody else's making may call back twice, or throw from `then`.
        pending = started instanceof Promise ? started : Promise.resolve(started);
      } catch (error) {
        this.#workFailed(error);
        return;
      }
      this.#watch();
      pending.then(
        (value) => this.#workDone(value),
        (error: unknown) => this.#workFailed(error),
      );
    });
  }

  renew(): void {
    // What waits for the deadline alone cannot be given more time.
    if (this.#settled || !this.queued) return;
    this.#host.expiry?.remove(this);
    this.#timer?.cancel();
    this.#arm();
  }

  /** Gives the attempt up: the promise rejects at once, the work is told by its signal. */
  abandon(error: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.#aborted = true;
    this.#abortReason = error;
    this.#reject(error);
    this.#controller?.abort(error);
  }

  onExpire(): void {
    // A process that was blocked may come to both at once.
    const reason = this.#host.deadline?.expired ? 'deadline' : 'attempt';
    this.abandon(this.#host.timedOut(reason, this.attempt));
  }

  #watch(): void {
    const { callerSignal } = this.#host;
    if (callerSignal) {
      if (callerSignal.aborted) {
        this.abandon(callerSignal.reason);
        return;
      }
      this.#onCallerAbort = () => this.abandon(callerSignal.reason);
      callerSignal.addEventListener('abort', this.#onCallerAbort, { once: true });
    }
    this.#arm();
  }

  #arm(): void {
    const { clock, deadline, expiry } = this.#host;
    const now = expiry || deadline ? clock.now() : 0;
    if (deadline) this.#endAt(deadline, now);
    expiry?.add(this, now);
  }

  /** A deadline before the time limit has a timer of its own; it may move while that runs. */
  #endAt(deadline: Deadline, now: number): void {
    const { clock, timeout } = this.#host;
    const { at } = deadline;
    if (at - now > timeout) return;
    this.#timer = clock.setTimer(at - now, () => {
      if (deadline.at > at) this.#endAt(deadline, clock.now());
      else this.abandon(this.#host.timedOut('deadline', this.attempt));
    });
  }

  #workDone(value: T): void {
    if (!this.#settled) {
      this.#settle();
      this.#resolve(value);
    }
    this.#host.workEnded();
  }

  #workFailed(error: unknown): void {
    if (!this.#settled) {
      this.#settle();
      this.#reject(error);
    }
    this.#host.workEnded();
  }

  #settle(): void {
    this.#settled = true;
    if (this.queued) this.#host.expiry?.remove(this);
    this.#timer?.cancel();
    if (this.#onCallerAbort) {
      this.#host.callerSignal?.removeEventListener('abort', this.#onCallerAbort);
    }
  }
}

const ignore = (): void => {};

const isThenable = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  value !== null &&
  (typeof value === 'object' || typeof value === 'function') &&
  typeof (value as { then?: unknown }).then === 'function';
