/**
 * @module
 * Identical calls at the same time become one (after Go's x/sync/singleflight), but each
 * caller keeps its own way out.
 */
import { orAborted } from './or-aborted.ts';

/** One call on behalf of everybody who wants its answer. */
interface Flight<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  /** Those who still want the answer. */
  callers: number;
}

/**
 * Runs the work of a key once for all who ask for it while it runs. Nothing is remembered
 * beyond that: an error reaches those who waited for it and nobody after them.
 *
 * A caller whose signal aborts has its answer at once and disturbs nobody else; when the last
 * one has left, the signal handed to the work aborts, and whoever asks next starts anew.
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
  readonly #flights = new Map<string, Flight<T>>();

  /** Flights in the air. */
  get size(): number {
    return this.#flights.size;
  }

  /**
   * Joins the flight of `key`, or starts it: then `start` runs before this returns. Its signal
   * is that of the flight, not that of the caller. What it throws is a rejection.
   *
   * @param signal of this caller; its reason is what `promise` rejects with on abort
   * @returns the answer, and whether the flight was already in the air
   */
  run(
    key: string,
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal) => Promise<T>,
  ): { promise: Promise<T>; shared: boolean } {
    if (signal?.aborted) return { promise: Promise.reject(signal.reason), shared: false };
    const known = this.#flights.get(key);
    const flight = known ?? this.#start(key, start);
    flight.callers += 1;
    const shared = known !== undefined;
    if (signal === undefined) return { promise: flight.promise, shared };
    const leave = () => {
      flight.callers -= 1;
      if (flight.callers > 0) return;
      this.#end(key, flight);
      flight.controller.abort(signal.reason);
    };
    return { promise: orAborted(flight.promise, signal, leave), shared };
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const flight: Flight<T> = { promise, controller: new AbortController(), callers: 0 };
    this.#flights.set(key, flight);
    // Everybody may have left by the time it fails.
    promise.catch(() => {});
    const run = async () => start(flight.controller.signal);
    run().then(
      (value) => {
        this.#end(key, flight);
        resolve(value);
      },
      (error: unknown) => {
        this.#end(key, flight);
        reject(error);
      },
    );
    return flight;
  }

  #end(key: string, flight: Flight<T>): void {
    // An abandoned flight may end when another one has long taken its key.
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}
