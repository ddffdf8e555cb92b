/**
 * @module
 * Identical calls at the same time become one (after Go's x/sync/singleflight), but each
 * caller keeps its own way out.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from './clock.ts';
import { Deadline, LiveDeadline } from './deadline.ts';
import { createFailure, ResilienceError } from './failure.ts';
import { sentence } from './inspect.ts';
import { waitFor } from './or-aborted.ts';
import { TransientMap } from './transient.ts';

/** The call of one who waits for a flight. */
export interface Passenger {
  readonly clock: Clock;
  /** When this one leaves; the flight goes on for those who have more time. */
  readonly deadline: Deadline | undefined;
  /** What this one is told then. */
  timedOut(reason: 'deadline'): unknown;
}

/** What something waits for: a flight for the calls that its work makes, these for their flights. */
interface Waiting extends Set<Waiting> {}

/** One call on behalf of everybody who wants its answer. */
interface Flight<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  readonly waiting: Waiting;
  /** Of who began it: until then it is lengthened for whoever comes. */
  readonly first: Deadline;
  /** The latest of all who came. */
  latest: Deadline;
  /** Whose that is leaves with the flight; if it is lengthened, by a timer of its own. */
  outlast?: () => void;
  /** Those who still want the answer. */
  callers: number;
}

/** The flight whose work we are in. */
const inside = new AsyncLocalStorage<Waiting | undefined>();

/** Runs what the flight that we are in does not wait for. */
export const apart = <T>(run: () => T): T => inside.run(undefined, run);

/**
 * Runs the work of a key once for all who ask for it while it runs. Nothing is remembered
 * beyond that: an error reaches those who waited for it and nobody after them.
 *
 * A caller whose signal aborts has its answer at once and disturbs nobody else; when the last
 * one has left, the signal handed to the work aborts, and whoever asks next starts anew. Work that
 * asks for what waits for it fails at once: neither would ever end.
 *
 * @example
 * ```ts
 * import { SingleFlight } from 'mcp-resilience';
 * const flights = new SingleFlight<Response>();
 * const { promise, shared } = flights.run('GET /rates', undefined, (signal) =>
 *   fetch('https://rates.example', { signal }),
 * );
 * ```
 */
export class SingleFlight<T> {
  readonly #flights = new TransientMap<string, Flight<T>>();

  /** Flights in the air. */
  get size(): number {
    return this.#flights.size;
  }

  /**
   * Joins the flight of `key`, or starts it: then `start` runs before this returns. Its signal
   * is that of the flight, not that of the caller. What it throws is a rejection.
   *
   * With passengers the flight has their latest deadline, at which `start` must end it, and each
   * of them leaves at its own. Who would lengthen it when the time of the first one is over starts
   * another: work that hangs would never end as long as somebody comes.
   *
   * @param signal of this caller; its reason is what `promise` rejects with on abort
   * @param passenger the call of this caller, if that has an end. Default: it waits for ever
   * @returns the answer, and whether the flight was already in the air; a rejection with the
   *   `ResilienceError` `INTERNAL_ERROR` when that waits for this very call
   */
  run(
    key: string,
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal, deadline?: Deadline) => Promise<T>,
    passenger?: Passenger,
  ): { promise: Promise<T>; shared: boolean } {
    if (signal?.aborted) return { promise: Promise.reject(signal.reason), shared: false };
    const deadline = passenger?.deadline ?? Deadline.never;
    const around = inside.getStore();
    let known = this.#flights.get(key);
    if (known && deadline.at > known.latest.at && known.first.expired) known = undefined;
    const shared = known !== undefined;
    if (known && leadsTo(known.waiting, around)) {
      const message = sentence('the work waits for its own answer, that of the key', key);
      const error = new ResilienceError(createFailure('INTERNAL_ERROR', { message }));
      return { promise: Promise.reject(error), shared };
    }
    const flight = known ?? this.#start(key, start, deadline, passenger?.clock);
    flight.callers += 1;
    around?.add(flight.waiting);
    const { promise, leaveAt } = waitFor(flight.promise, signal, (left, reason) => {
      around?.delete(flight.waiting);
      if (!left) return;
      flight.callers -= 1;
      if (flight.callers > 0) return;
      this.#end(key, flight);
      flight.controller.abort(reason);
    });
    // Some never look at what they were given.
    promise.catch(() => {});
    const watch = () =>
      passenger && leaveAt(deadline, passenger.clock, () => passenger.timedOut('deadline'));
    if (shared && deadline.at <= flight.latest.at) watch();
    else {
      flight.outlast?.();
      flight.outlast = watch;
      flight.latest = deadline;
    }
    return { promise, shared };
  }

  #start(
    key: string,
    start: (signal: AbortSignal, deadline?: Deadline) => Promise<T>,
    first: Deadline,
    clock: Clock | undefined,
  ): Flight<T> {
    const { promise, resolve } = Promise.withResolvers<T>();
    const controller = new AbortController();
    const waiting: Waiting = new Set();
    const flight: Flight<T> = { promise, controller, waiting, first, latest: first, callers: 0 };
    this.#flights.set(key, flight);
    // Before the work, which may ask for the flight around it at once.
    inside.getStore()?.add(waiting);
    const deadline =
      first.at < Number.POSITIVE_INFINITY
        ? new LiveDeadline(() => flight.latest.at, clock)
        : undefined;
    const run = async () => {
      try {
        return await inside.run(waiting, () => start(controller.signal, deadline));
      } finally {
        this.#end(key, flight);
      }
    };
    resolve(run());
    return flight;
  }

  #end(key: string, flight: Flight<T>): void {
    // An abandoned flight may end when another one has long taken its key.
    if (this.#flights.get(key) === flight) this.#flights.take(key);
  }
}

/** Whether `from` would wait for `to`, over however many others. */
const leadsTo = (from: Waiting, to: Waiting | undefined): boolean => {
  const found: Set<Waiting> = new Set([from]);
  for (const each of found) for (const next of each) found.add(next);
  return to !== undefined && found.has(to);
};
