/**
 * @module
 * Runs work that holds a place of a bulkhead. Internal to the bulkhead.
 */
import { faultHook } from '../telemetry/instruments.ts';
import { saysOverload } from './adaptive-limit.ts';
import type { Clock } from './clock.ts';
import { classify } from './failure.ts';
import { orAborted } from './or-aborted.ts';

/** Where the place came from. */
interface Places {
  release(rtt?: number, dropped?: boolean): void;
}

/** What runs in a place; the signal is that of its caller. */
export type PlacedWork<T> = (signal: AbortSignal | undefined) => T | PromiseLike<T>;

/**
 * Runs `work` and gives its place back when it has really ended. The caller hears of an abort
 * at once, however long the work goes on.
 *
 * @param clock to measure the work with, if somebody wants to learn from it
 */
export const runInPlace = <T>(
  places: Places,
  work: PlacedWork<T>,
  signal: AbortSignal | undefined,
  clock: Clock | undefined,
): Promise<T> => {
  const held = heldByCall(places);
  const running = clock ? measure(held, work, signal, clock) : hold(held, work, signal);
  return signal === undefined ? running : orAborted(running, signal);
};

const hold = async <T>(
  places: Places,
  work: PlacedWork<T>,
  signal: AbortSignal | undefined,
): Promise<T> => {
  try {
    return await work(signal);
  } finally {
    places.release();
  }
};

const measure = async <T>(
  places: Places,
  work: PlacedWork<T>,
  signal: AbortSignal | undefined,
  clock: Clock,
): Promise<T> => {
  const started = clock.now();
  let dropped: boolean | undefined;
  try {
    const value = await work(signal);
    dropped = false;
    return value;
  } catch (error) {
    if (saysOverload(classify(error))) dropped = true;
    throw error;
  } finally {
    // What the caller cut short, or what failed otherwise, says nothing of the capacity.
    if (dropped === undefined || signal?.aborted) places.release();
    else places.release(clock.now() - started, dropped);
  }
};

/** The places, with one of them held by the call that we are in, if faults can be injected into it. */
const heldByCall = (places: Places): Places => {
  const call = faultHook()?.call();
  if (call === undefined) return places;
  faultHook()?.hold(places, call, 1);
  return {
    release: (rtt, dropped) => {
      faultHook()?.hold(places, call, -1);
      places.release(rtt, dropped);
    },
  };
};
