/**
 * @module
 * Sends the same request once more while the first is still out, and takes the answer that
 * comes first (Dean and Barroso, "The Tail at Scale", CACM 2013): cuts the slowest percent at
 * the price of a few percent of load. Only for work that may be executed twice.
 */
import type { Clock, Timer } from './clock.ts';
import { type HedgeSettings, hedgeRules } from './policy.ts';
import { resolve } from './settings.ts';

/** One attempt under way. */
export interface Racer<T> {
  readonly promise: Promise<T>;
  abandon(reason: unknown): void;
}

/** What a race needs of the call it is run for. */
export interface HedgeHost<T> {
  readonly clock: Clock;
  launch(): Racer<T>;
  /** Takes one extra attempt out of the budget; false leaves the race as it is. */
  mayHedge(): boolean;
  /** True when waiting for another racer cannot help. */
  isFatal(error: unknown): boolean;
  /** Told how each hedge ended. */
  onHedge(outcome: 'won' | 'lost'): void;
}

/** Reason that the signal of a hedge's loser is aborted with. */
const LOST = new DOMException('another attempt answered first', 'AbortError');

const BUCKETS_PER_OCTAVE = 4;
const ENOUGH_SAMPLES = 20;
const MEMORY = 1_000;

/** Latency by quantile: logarithmic buckets (19 % wide), halved now and then so that it forgets. */
class LatencyQuantile {
  readonly #counts = new Float64Array(32 * BUCKETS_PER_OCTAVE);
  #total = 0;

  record(duration: number): void {
    const index = Math.round(Math.log2(Math.max(1, duration)) * BUCKETS_PER_OCTAVE);
    const at = Math.min(index, this.#counts.length - 1);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    if (++this.#total < MEMORY) return;
    this.#total = 0;
    for (let i = 0; i < this.#counts.length; i++) {
      const halved = (this.#counts[i] ?? 0) / 2;
      this.#counts[i] = halved;
      this.#total += halved;
    }
  }

  /** Upper edge of the bucket that holds the quantile, or undefined while there is little data. */
  at(quantile: number): number | undefined {
    if (this.#total < ENOUGH_SAMPLES) return undefined;
    let left = quantile * this.#total;
    for (let i = 0; i < this.#counts.length; i++) {
      left -= this.#counts[i] ?? 0;
      if (left <= 0) return 2 ** ((i + 0.5) / BUCKETS_PER_OCTAVE);
    }
    return undefined;
  }
}

/** The hedging policy of one dependency. */
export class Hedge {
  readonly #delay: number;
  readonly #quantile: number | undefined;
  readonly #maxHedges: number;
  readonly #latency = new LatencyQuantile();

  /** @throws SettingsError naming the setting, its range and the value given */
  constructor(settings: HedgeSettings = {}) {
    const resolved = resolve(hedgeRules, settings, 'hedge');
    this.#delay = resolved.delay ?? 0;
    this.#quantile = resolved.quantile;
    this.#maxHedges = resolved.maxHedges ?? 1;
  }

  /** Milliseconds after which the next hedge would be sent. */
  get delay(): number {
    const measured = this.#quantile === undefined ? undefined : this.#latency.at(this.#quantile);
    return measured ?? this.#delay;
  }

  /**
   * Runs a race. Settles with the first answer; a failure ends it when it is fatal or when no
   * racer is left. The losers are abandoned.
   */
  race<T>(host: HedgeHost<T>): Promise<T> {
    return new Promise<T>((resolveRace, rejectRace) => {
      const racers: Racer<T>[] = [];
      let out = 0;
      let over = false;
      let timer: Timer | undefined;
      const end = (winner: number, settle: () => void): void => {
        if (over) return;
        over = true;
        timer?.cancel();
        racers.forEach((racer, index) => {
          if (index !== winner) racer.abandon(LOST);
          if (index > 0) host.onHedge(index === winner ? 'won' : 'lost');
        });
        settle();
      };
      const enter = (): void => {
        const index = racers.length;
        const started = host.clock.now();
        const racer = host.launch();
        racers.push(racer);
        out++;
        racer.promise.then(
          (value) => {
            this.#latency.record(host.clock.now() - started);
            end(index, () => resolveRace(value));
          },
          (error: unknown) => {
            out--;
            if (!over && (out === 0 || host.isFatal(error))) end(-1, () => rejectRace(error));
          },
        );
        if (racers.length <= this.#maxHedges) {
          timer = host.clock.setTimer(this.delay, () => {
            if (!over && host.mayHedge()) enter();
          });
        }
      };
      enter();
    });
  }
}
