/**
 * @module
 * Which attempts a fault strikes and how hard: chance that can be replayed, distributions of
 * delays, faults that come and go or grow. Pure functions of time and of a seed.
 */
import type { Random } from '../resilience/clock.ts';
import type { FaultSpec } from './fault.ts';

/** Longest delay, in milliseconds: a distribution with a long tail has an end here. */
const MAX_DELAY = 300_000;

/** Random numbers out of a seed: the same seed, the same numbers (mulberry32, T. Ettinger). */
export const seeded = (seed: number): Random => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** A standard normal number (Box and Muller 1958). */
const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Milliseconds of delay, drawn; from 0 to 300 000. */
export const drawDelay = (latency: NonNullable<FaultSpec['latency']>, random: Random): number => {
  const { distribution, delayMs, spreadMs = 0, shape = 2 } = latency;
  const drawn = {
    fixed: () => delayMs,
    uniform: () => delayMs + (2 * random() - 1) * spreadMs,
    normal: () => delayMs + normal(random) * spreadMs,
    pareto: () => delayMs / (1 - random()) ** (1 / shape),
  }[distribution]();
  return Math.min(Math.max(0, drawn), MAX_DELAY);
};

/** True in the times that a flapping fault is on; one that does not flap always is. */
export const isOn = ({ flapping }: Pick<FaultSpec, 'flapping'>, ageMs: number): boolean => {
  if (flapping === undefined) return true;
  const period = (flapping.onSeconds + flapping.offSeconds) * 1_000;
  return ageMs % period < flapping.onSeconds * 1_000;
};

/** How far a fault has grown, from 0 to 1. */
export const grown = ({ ramp }: Pick<FaultSpec, 'ramp'>, ageMs: number): number =>
  ramp === undefined ? 1 : Math.min(1, ageMs / (ramp.overSeconds * 1_000));
