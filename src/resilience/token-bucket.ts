/**
 * @module
 * The arithmetic of a token bucket, without drift. Internal to the rate limiter.
 *
 * A bucket that adds `elapsed * rate` to a fraction of a token at each call gathers a rounding
 * error at each call. This one counts whole tokens since it was last full, and derives from
 * that count when the next one is there: one rounding, however long it has been busy. It is
 * the virtual scheduling form of the generic cell rate algorithm (ITU-T I.371, annex A).
 */

/** `limit` tokens per `interval` milliseconds, at most `burst` of them kept. */
export interface Rate {
  readonly limit: number;
  readonly interval: number;
  readonly burst: number;
}

export class TokenBucket {
  /** When it was last full. */
  #since: number;
  /** Tokens taken since then. */
  #taken = 0;

  constructor(now: number) {
    this.#since = now;
  }

  /** Must precede every question: a bucket that has filled up again forgets its past. */
  refill(rate: Rate, now: number): void {
    if (this.#since + (this.#taken * rate.interval) / rate.limit <= now) {
      this.#since = now;
      this.#taken = 0;
    }
  }

  /** When the `nth` token from now is there, if nobody else takes one. */
  readyAt(rate: Rate, nth: number): number {
    return this.#since + ((this.#taken + nth - rate.burst) * rate.interval) / rate.limit;
  }

  take(): void {
    this.#taken += 1;
  }

  /** Whole tokens that may be taken at once. */
  available(rate: Rate, now: number): number {
    this.refill(rate, now);
    const about = Math.floor(
      rate.burst - this.#taken + ((now - this.#since) * rate.limit) / rate.interval,
    );
    // The division may land on the wrong side of a whole number; `readyAt` is what decides.
    if (this.readyAt(rate, about + 1) <= now) return Math.max(0, about + 1);
    return Math.max(0, this.readyAt(rate, about) <= now ? about : about - 1);
  }
}
