/**
 * @module
 * Watches the calls that no fault is aimed at: when they begin to fail, the experiment hurts
 * bystanders and must end.
 */
import type { Clock } from '../resilience/clock.ts';

/**
 * When faults end by themselves: too many calls fail that no fault is aimed at.
 *
 * @example
 * ```ts
 * import { type AutoStop, createChaos } from 'mcp-resilience/chaos';
 * const autoStop: AutoStop = { errorRate: 0.1, minimumCalls: 50, windowSeconds: 30 };
 * const chaos = createChaos({ targets: [{ tool: 'headlines' }], autoStop });
 * ```
 */
export interface AutoStop {
  /** Share of failed calls from which all faults end, 0 to 1. Default 0.5. */
  readonly errorRate: number;
  /** Calls outside the targets that must have ended before it is judged. Default 20. */
  readonly minimumCalls: number;
  /** Seconds that are looked back. Default 60. */
  readonly windowSeconds: number;
}

const AUTO_STOP: AutoStop = { errorRate: 0.5, minimumCalls: 20, windowSeconds: 60 };

/** Most calls remembered: beyond, the oldest are forgotten though they lie in the window. */
const MAX_CALLS = 10_000;

interface Ended {
  readonly at: number;
  readonly failed: boolean;
}

/** The outcomes of calls outside the targets. */
export class OutsideErrors {
  readonly #clock: Clock;
  readonly #settings: AutoStop;
  // A ring: the oldest is at `#first`.
  readonly #calls: (Ended | undefined)[] = [];
  #first = 0;
  #total = 0;
  #failures = 0;

  constructor(clock: Clock, settings: AutoStop = AUTO_STOP) {
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Counts one call; says what is wrong once too many of them have failed. */
  record(failed: boolean): string | undefined {
    const { errorRate, minimumCalls, windowSeconds } = this.#settings;
    const now = this.#clock.now();
    this.#forget(now - windowSeconds * 1_000);
    this.#calls[(this.#first + this.#total) % MAX_CALLS] = { at: now, failed };
    this.#total += 1;
    if (failed) this.#failures += 1;
    if (this.#total < minimumCalls || this.#failures < errorRate * this.#total) return undefined;
    return (
      `${this.#failures} of ${this.#total} calls that no fault is aimed at failed within ` +
      `${windowSeconds} s (limit ${errorRate * 100} %)`
    );
  }

  /** Forgets all: without a fault there is nothing to judge. */
  reset(): void {
    this.#calls.length = 0;
    this.#first = 0;
    this.#total = 0;
    this.#failures = 0;
  }

  #forget(before: number): void {
    for (;;) {
      const oldest = this.#total > 0 ? this.#calls[this.#first] : undefined;
      if (oldest === undefined || (oldest.at >= before && this.#total < MAX_CALLS)) return;
      this.#calls[this.#first] = undefined;
      this.#first = (this.#first + 1) % MAX_CALLS;
      this.#total -= 1;
      if (oldest.failed) this.#failures -= 1;
    }
  }
}
