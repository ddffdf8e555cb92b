/**
 * @module
 * How many calls there were in the last five minutes, for those who want to know what a fault
 * would strike. Memory is bounded by the number of tools and dependencies, not of calls.
 */
import type { Clock } from '../resilience/clock.ts';
import type { FaultTarget } from './fault.ts';

/** Milliseconds that are remembered. */
const SPAN = 5 * 60_000;
/** Slots of 10 seconds: a count is of the last 4 minutes and 50 seconds to 5 minutes. */
const SLOTS = 30;
const SLOT = SPAN / SLOTS;

/** Where a call was made. */
export interface Route {
  readonly tool?: string | undefined;
  readonly dependency?: string | undefined;
  readonly upstream?: string | undefined;
}

interface Ring {
  readonly route: Route;
  readonly counts: number[];
  /** Number of the newest slot. */
  newest: number;
}

/** Counts of calls by tool, dependency and upstream. */
export class RecentCalls {
  readonly #clock: Clock;
  readonly #rings = new Map<string, Ring>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts one call. Names must be ours: each combination is remembered. */
  record({ tool, dependency, upstream }: Route): void {
    const key = JSON.stringify([tool, dependency, upstream]);
    let ring = this.#rings.get(key);
    if (ring === undefined) {
      const counts = new Array<number>(SLOTS).fill(0);
      ring = { route: { tool, dependency, upstream }, counts, newest: this.#slot() };
      this.#rings.set(key, ring);
    }
    this.#turn(ring);
    const index = ring.newest % SLOTS;
    ring.counts[index] = (ring.counts[index] ?? 0) + 1;
  }

  /** The routes that a target names, with their calls in the last five minutes. */
  of(target: FaultTarget): readonly (Route & { readonly calls: number })[] {
    return [...this.#rings.values()]
      .filter(({ route }) =>
        (['tool', 'dependency', 'upstream'] as const).every(
          (key) => target[key] === undefined || target[key] === route[key],
        ),
      )
      .map((ring) => {
        this.#turn(ring);
        return { ...ring.route, calls: ring.counts.reduce((sum, count) => sum + count, 0) };
      });
  }

  #slot(): number {
    return Math.floor(this.#clock.now() / SLOT);
  }

  /** Empties the slots that have gone by. */
  #turn(ring: Ring): void {
    const now = this.#slot();
    for (let slot = Math.max(ring.newest + 1, now - SLOTS + 1); slot <= now; slot += 1) {
      ring.counts[slot % SLOTS] = 0;
    }
    ring.newest = Math.max(ring.newest, now);
  }
}
