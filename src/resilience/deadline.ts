/**
 * @module
 * The absolute end of a call. A duration must be re-computed at every hop and is wrong at
 * the second one; a point in time is handed on as it is (gRPC's rule for deadlines).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Clock, systemClock } from './clock.ts';

/**
 * A point in monotonic time by which a call must have ended, with everything in it:
 * queueing, attempts and the waits between them.
 *
 * @example
 * ```ts
 * import { Deadline } from 'mcp-resilience';
 * const deadline = Deadline.after(5_000);
 * deadline.remaining(); // 5000 or a little less
 * ```
 */
export class Deadline {
  /** No end at all. */
  static readonly never: Deadline = new Deadline(Number.POSITIVE_INFINITY, systemClock);

  readonly #clock: Clock;
  readonly #at: number;

  /** @throws RangeError for NaN: it would never pass, and hide every other deadline */
  constructor(at: number, clock: Clock = systemClock) {
    if (Number.isNaN(at)) throw new RangeError('Deadline: at must be a number, got NaN');
    this.#at = at;
    this.#clock = clock;
  }

  /** When it ends, in milliseconds of the clock it was made with. */
  get at(): number {
    return this.#at;
  }

  /** A deadline `ms` milliseconds from now. */
  static after(ms: number, clock: Clock = systemClock): Deadline {
    return new Deadline(clock.now() + ms, clock);
  }

  /** Milliseconds left; 0 once it has passed, `Infinity` if it never does. */
  remaining(): number {
    return Math.max(0, this.at - this.#clock.now());
  }

  /** True from the moment it has passed. */
  get expired(): boolean {
    return this.at <= this.#clock.now();
  }

  /** The earlier of the two. */
  earlier(other: Deadline | undefined): Deadline {
    if (other === undefined) return this;
    // Which of the two it is may change.
    if (this instanceof LiveDeadline || other instanceof LiveDeadline) {
      return new LiveDeadline(() => Math.min(this.at, other.at), this.#clock);
    }
    return other.at < this.at ? other : this;
  }
}

/**
 * A deadline that may move to a later time, as that of a flight does when one comes who has more.
 * Whoever acts when it passes must look whether it still is the time. Internal to shared flights.
 */
export class LiveDeadline extends Deadline {
  readonly #latest: () => number;

  constructor(latest: () => number, clock?: Clock) {
    super(latest(), clock);
    this.#latest = latest;
  }

  override get at(): number {
    return this.#latest();
  }
}

const ambient = new AsyncLocalStorage<Deadline>();

/**
 * The deadline of the protected call that we are inside of, if there is one. A pipeline reads
 * it on its own, so a call made within another one never outlives the outer one.
 *
 * @example
 * ```ts
 * import { currentDeadline } from 'mcp-resilience';
 * const enough = () => (currentDeadline()?.remaining() ?? Infinity) > 500; // milliseconds
 * ```
 */
export const currentDeadline = (): Deadline | undefined => ambient.getStore();

/**
 * Runs `work` so that `currentDeadline()` answers `deadline` in everything it starts, however
 * long that goes on. What `work` returns and throws is passed on.
 *
 * @example
 * ```ts
 * import { createPipeline, Deadline, presets, runWithDeadline } from 'mcp-resilience';
 * const search = createPipeline('search', presets.internal);
 * await runWithDeadline(Deadline.after(2_000), () =>
 *   search.execute(({ signal }) => fetch('https://search.example/?q=otel', { signal })),
 * );
 * ```
 */
export const runWithDeadline = <T>(deadline: Deadline, work: () => T): T =>
  ambient.run(deadline, work);
