/**
 * @module
 * Callers that wait in line for a token or a place. Internal to the rate limiter and the
 * bulkhead.
 *
 * The line is a linked list, so that whoever leaves (abort, timeout) does so in constant time
 * and holds nothing back: an abandoned waiter is no tombstone that must be stepped over later.
 */
import { type Context, context } from '@opentelemetry/api';
import { faultHook } from '../telemetry/instruments.ts';
import type { Clock, Timer } from './clock.ts';
import type { Deadline } from './deadline.ts';
import type { Priority } from './policy.ts';

/** How a caller waits for its turn. */
export interface WaitOptions {
  /** Ends the wait at once, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** End of the call: a turn that would come later is refused. Default: none. */
  readonly deadline?: Deadline | undefined;
  /** `background` waits behind `interactive` and is shed first. Default `interactive`. */
  readonly priority?: Priority | undefined;
}

/** Told when a waiter has stopped waiting by itself. */
export interface WaitOwner {
  /** Its time is up. It is still in line: grant or refuse it. */
  expired(waiter: Waiter): void;
  /** Its signal aborted. It has left the line and its caller has been told. */
  cancelled(waiter: Waiter): void;
}

/** First in, first out; leaving from the middle costs the same. */
export class WaitQueue {
  head: Waiter | undefined;
  tail: Waiter | undefined;
  length = 0;
}

/** One caller in line. Ends exactly once: granted, refused or aborted. */
export class Waiter {
  readonly promise: Promise<void>;
  readonly since: number;
  readonly deadline: Deadline | undefined;
  readonly queue: WaitQueue;
  /** Where the events of its end belong, whoever brings it about. */
  readonly #context: Context = context.active();
  /** The same for fault injection; undefined without it. */
  readonly #call = faultHook()?.call();
  next: Waiter | undefined;
  /** False once it was granted, refused or aborted. */
  waiting = true;
  #previous: Waiter | undefined;
  #timer: Timer | undefined;
  readonly #longest: number;
  readonly #clock: Clock;
  readonly #owner: WaitOwner;
  readonly #signal: AbortSignal | undefined;
  readonly #resolve: () => void;
  readonly #reject: (reason: unknown) => void;

  /** Joins the end of `queue` until `longest`, milliseconds of `clock`, or the deadline. */
  constructor(
    queue: WaitQueue,
    owner: WaitOwner,
    clock: Clock,
    since: number,
    longest: number,
    { signal, deadline }: WaitOptions,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.promise = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.queue = queue;
    this.#owner = owner;
    this.#clock = clock;
    this.since = since;
    this.#longest = longest;
    this.deadline = deadline;
    this.#signal = signal;

    this.#previous = queue.tail;
    if (queue.tail === undefined) queue.head = this;
    else queue.tail.next = this;
    queue.tail = this;
    queue.length += 1;

    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#arm(since);
  }

  /** The turn has come. */
  grant(): void {
    if (this.#leave()) this.#resolve();
  }

  /** The turn will not come. */
  refuse(reason: unknown): void {
    if (this.#leave()) this.#reject(reason);
  }

  /** Runs what tells of its end as part of its own call, in the midst of whichever other. */
  asCall<T>(run: () => T): T {
    const hook = faultHook();
    return hook ? hook.enter(this.#call ?? {}, run) : run();
  }

  /** The same for what tells its span. */
  inContext<T>(run: () => T): T {
    return context.with(this.#context, () => this.asCall(run));
  }

  // A function: V8 frees no call in a minor collection that listens by an object with handleEvent.
  readonly #onAbort = (): void => {
    if (!this.#leave()) return;
    this.#reject(this.#signal?.reason);
    this.#owner.cancelled(this);
  };

  // Timers of the platform are cut to whole milliseconds and may fire a little early, and the
  // deadline may have moved meanwhile.
  #arm(now: number): void {
    const left = Math.min(this.#longest, this.deadline?.at ?? Number.POSITIVE_INFINITY) - now;
    if (left <= 0) this.#owner.expired(this);
    else if (left < Number.POSITIVE_INFINITY) {
      this.#timer = this.#clock.setTimer(left, () => this.#arm(this.#clock.now()));
    }
  }

  #leave(): boolean {
    if (!this.waiting) return false;
    this.waiting = false;
    this.#timer?.cancel();
    this.#signal?.removeEventListener('abort', this.#onAbort);
    const queue = this.queue;
    if (this.#previous === undefined) queue.head = this.next;
    else this.#previous.next = this.next;
    if (this.next === undefined) queue.tail = this.#previous;
    else this.next.#previous = this.#previous;
    queue.length -= 1;
    // Who has left and grown old must not keep alive who came later (`transient.ts`).
    this.next = undefined;
    this.#previous = undefined;
    return true;
  }
}
