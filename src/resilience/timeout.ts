/**
 * @module
 * Ends what takes too long. Calls of one policy all have the same time limit, so they expire
 * in the order they began: a linked list and one timer for its head serve any number of them,
 * and a call that ends in time costs neither a timer nor a closure.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock, Timer } from './clock.ts';

/** Something that expires unless it is removed first. Member of at most one queue. */
export interface Expirable {
  expiresAt: number;
  earlier: Expirable | undefined;
  later: Expirable | undefined;
  queued: boolean;
  onExpire(): void;
}

// One timer serves many calls: it must not hold, or run in, the async context of one of them.
const detached = AsyncLocalStorage.snapshot();

/** Expires its members `duration` milliseconds after they were added, in that order. */
export class ExpiryQueue {
  readonly #clock: Clock;
  readonly #duration: number;
  #head: Expirable | undefined;
  #tail: Expirable | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, duration: number) {
    this.#clock = clock;
    this.#duration = duration;
  }

  add(member: Expirable, now: number): void {
    member.expiresAt = now + this.#duration;
    member.queued = true;
    member.earlier = this.#tail;
    member.later = undefined;
    if (this.#tail === undefined) this.#head = member;
    else this.#tail.later = member;
    this.#tail = member;
    if (this.#timer === undefined) this.#arm(this.#duration);
  }

  /** Takes a member out; does nothing when it is not in the queue any more. */
  remove(member: Expirable): void {
    if (!member.queued) return;
    member.queued = false;
    if (member.earlier === undefined) this.#head = member.later;
    else member.earlier.later = member.later;
    if (member.later === undefined) this.#tail = member.earlier;
    else member.later.earlier = member.earlier;
    member.earlier = undefined;
    member.later = undefined;
  }

  /** Ends the timer, unless members are left that it has to end. */
  destroy(): void {
    if (this.#head !== undefined) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delay: number): void {
    // Whoever was told of an end may have added a member meanwhile, and a timer with it.
    this.#timer?.cancel();
    this.#timer = detached(() => this.#clock.setTimer(delay, this.#onTimer));
  }

  // The timer is not cancelled when its member leaves: it finds the next one to wait for, or
  // none, and then rests until something is added.
  readonly #onTimer = (): void => {
    this.#timer = undefined;
    for (let head = this.#head; head !== undefined; head = this.#head) {
      const left = head.expiresAt - this.#clock.now();
      if (left > 0) {
        this.#arm(left);
        return;
      }
      this.remove(head);
      head.onExpire();
    }
  };
}
