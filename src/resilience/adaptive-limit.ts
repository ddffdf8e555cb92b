/**
 * @module
 * How many calls at one time are good for a dependency, found out from its latency: while
 * more calls mean more answers, latency stays what it was; once they only wait for each other,
 * latency rises with their number.
 *
 * A gradient limit after Envoy's adaptive concurrency filter (limit = gradient * limit +
 * headroom, against the latency measured while the limit was lowered on purpose) and Netflix
 * concurrency-limits' Gradient2Limit (means, a tolerance, no growth while the limit is not in
 * use). Their long-term average as the baseline was left out: under lasting overload it takes
 * the overload for normal and lets the limit grow without end.
 */
import type { Failure } from './failure.ts';
import { type AdaptiveLimitSettings, adaptiveLimitRules } from './policy.ts';
import { resolve, SettingsError } from './settings.ts';

/** Fewest samples that a decision rests on. */
const WINDOW = 16;
/** Decisions between two measurements of the unloaded latency. */
const PROBE_EVERY = 50;
/** Decisions before the first one, and while the last one came as a surprise. */
const FIRST_PROBE = 3;
/** Decisions in a row that do not go with the baseline, after which it is measured again. */
const DOUBT_AFTER = 4;
/** What the limit is divided by for a probe: deep enough to empty a queue of our own making. */
const PROBE_DEPTH = 3;

/** Whether a failure says that the dependency has too much to do; our own refusals do not. */
export const saysOverload = ({ source, weight, delivery }: Failure): boolean =>
  source === 'timeout' || (weight === 'throttled' && delivery !== 'not_sent');

/**
 * A concurrency limit that follows the capacity of what it protects. It decides once per
 * `max(16, limit)` samples and knows no time but that of the samples, so it needs no clock, and
 * a dependency that answers nothing changes nothing: the calls in flight still count.
 *
 * @example
 * ```ts
 * import { AdaptiveLimit } from 'mcp-resilience';
 * const limit = new AdaptiveLimit({ min: 2, max: 100 });
 * limit.onSample(35, 8, false); // a call took 35 ms, 8 were in flight, it did not fail
 * limit.limit; // calls that should be in flight at most
 * ```
 */
export class AdaptiveLimit {
  readonly #min: number;
  readonly #max: number;
  readonly #tolerance: number;
  /** The limit with its fraction; while probing, the one to go back to. */
  #estimate: number;
  #limit: number;
  /** Mean latency of the unloaded dependency; 0 until known. */
  #baseline = 0;
  #probing = false;
  #untilProbe = FIRST_PROBE;
  #doubts = 0;
  /** Samples to come of calls that began under another limit. */
  #stale = 0;
  // The window: samples, of them dropped, sum of the others' latency, most in flight.
  #samples = 0;
  #dropped = 0;
  #sum = 0;
  #peak = 0;

  /**
   * @param path names the settings in errors
   * @throws SettingsError naming the setting, its range and the value given
   */
  constructor(settings: AdaptiveLimitSettings, path = 'adaptiveLimit') {
    const {
      min = 1,
      max,
      initial = 10,
      tolerance = 1.5,
    } = resolve(adaptiveLimitRules, settings, path);
    if (max < min)
      throw new SettingsError([`${path}.max must be at least ${path}.min (${min}), got ${max}`]);
    this.#min = min;
    this.#max = max;
    this.#tolerance = tolerance;
    this.#estimate = Math.min(max, Math.max(min, initial));
    this.#limit = this.#estimate;
  }

  /** Calls that should be in flight at most; a whole number. */
  get limit(): number {
    return this.#limit;
  }

  /**
   * Learns from one call that has ended.
   *
   * @param rtt milliseconds it took
   * @param inflight calls in flight when it ended, itself included
   * @param dropped whether it failed by overload: its time then says nothing
   */
  onSample(rtt: number, inflight: number, dropped: boolean): void {
    if (this.#stale > 0) {
      this.#stale -= 1;
      return;
    }
    this.#samples += 1;
    if (dropped) this.#dropped += 1;
    else this.#sum += rtt;
    if (inflight > this.#peak) this.#peak = inflight;
    if (this.#samples >= WINDOW && this.#samples >= this.#limit) this.#decide(inflight);
  }

  #decide(inflight: number): void {
    const measured = this.#samples - this.#dropped;
    const mean = measured === 0 ? 0 : this.#sum / measured;
    const dropShare = this.#dropped / this.#samples;
    const inUse = this.#peak * 2 >= this.#limit;
    this.#samples = 0;
    this.#dropped = 0;
    this.#sum = 0;
    this.#peak = 0;

    if (mean > 0 && (this.#probing || !inUse || this.#baseline === 0)) this.#measured(mean);
    if (this.#probing) {
      this.#probing = false;
      this.#doubts = 0;
      this.#apply(inflight);
      return;
    }
    const before = this.#estimate;
    const good = this.#tolerance * this.#baseline;
    let next = before * (1 - dropShare / 2);
    if (inUse) {
      if (mean > good) next *= Math.max(0.5, good / mean);
      // Room to grow into. Not the whole root, as Envoy has it: a limit of 4 would become 9.
      if (dropShare === 0) next += Math.max(1, Math.sqrt(before) / 2);
    }
    this.#estimate = Math.min(this.#max, Math.max(this.#min, next));
    this.#doubts = next < before || mean < this.#baseline * 0.7 ? this.#doubts + 1 : 0;
    this.#untilProbe -= 1;
    if (inUse && (this.#untilProbe <= 0 || this.#doubts >= DOUBT_AFTER)) {
      this.#probing = true;
      this.#untilProbe = FIRST_PROBE;
      this.#apply(inflight);
    } else {
      this.#limit = Math.floor(this.#estimate);
    }
  }

  /** Takes in a mean of calls that were few for what the dependency can bear. */
  #measured(mean: number): void {
    const weight = this.#baseline === 0 ? 1 : this.#probing ? 0.5 : 0.1;
    const error = mean - this.#baseline;
    this.#untilProbe = Math.abs(error) > this.#baseline * 0.3 ? FIRST_PROBE : PROBE_EVERY;
    this.#baseline += error * weight;
  }

  /** Lowers the limit for a probe or restores it; what is in flight belongs to the old one. */
  #apply(inflight: number): void {
    this.#limit = Math.floor(
      this.#probing ? Math.max(this.#min, this.#estimate / PROBE_DEPTH) : this.#estimate,
    );
    this.#stale = inflight - 1;
  }
}
