/**
 * @module
 * How much extra load a dependency may be given. Without one, three retries at each of three
 * layers turn one failing call into 64; with one, an outage costs the share that was set.
 */
import { budgetRules } from './policy.ts';
import { resolve } from './settings.ts';

/**
 * Settings of a retry budget.
 *
 * @example
 * ```ts
 * import { createPipeline, type RetryBudgetSettings } from 'mcp-resilience';
 * const budget: RetryBudgetSettings = { ratio: 0.1, floor: 5, interval: 30_000 };
 * const billing = createPipeline('billing', { retry: { maxRetries: 3, budget } });
 * ```
 */
export interface RetryBudgetSettings {
  /** Extra attempts allowed per call made, 0 to 10. Default 0.2, as Finagle and Envoy. */
  readonly ratio?: number;
  /** Extra attempts always allowed per period, so that little traffic can retry too. Default 3. */
  readonly floor?: number;
  /** Period over which both are counted, in milliseconds. Default 10 000. */
  readonly interval?: number;
}

const SLOTS = 10;

/**
 * Counts calls and extra attempts (retries and hedges share it) over the last `interval`.
 * An exhausted budget suppresses extras and nothing else: the call that runs is not failed.
 *
 * @example
 * ```ts
 * import { RetryBudget, systemClock } from 'mcp-resilience';
 * const budget = new RetryBudget({ ratio: 0.1, floor: 1 });
 * budget.onCall(systemClock.now());
 * budget.tryTake(systemClock.now()); // true: the floor allows one
 * budget.tryTake(systemClock.now()); // false: one call allows a tenth of another
 * ```
 */
export class RetryBudget {
  readonly #ratio: number;
  readonly #floor: number;
  readonly #width: number;
  readonly #calls = new Uint32Array(SLOTS);
  readonly #extras = new Uint32Array(SLOTS);
  /** The time at which slot 0 began for the first time; a clock may count from anywhere. */
  #origin: number | undefined;
  #newest = 0;
  #callCount = 0;
  #extraCount = 0;

  /** @throws SettingsError naming the setting, its range and the value given */
  constructor(settings: RetryBudgetSettings = {}) {
    const resolved = resolve(budgetRules, settings, 'retry.budget');
    const { ratio, floor, interval } = resolved as Required<RetryBudgetSettings>;
    this.#ratio = ratio;
    this.#floor = floor;
    this.#width = interval / SLOTS;
  }

  /** A call has begun. Counted at the start: an outage must not starve its own budget of calls. */
  onCall(now: number): void {
    this.#evict(now);
    const slot = this.#newest % SLOTS;
    this.#calls[slot] = (this.#calls[slot] ?? 0) + 1;
    this.#callCount++;
  }

  /** Takes one extra attempt out of the budget, or says that there is none left. */
  tryTake(now: number): boolean {
    this.#evict(now);
    if (this.#extraCount + 1 > Math.max(this.#floor, this.#ratio * this.#callCount)) return false;
    const slot = this.#newest % SLOTS;
    this.#extras[slot] = (this.#extras[slot] ?? 0) + 1;
    this.#extraCount++;
    return true;
  }

  /** What the budget holds now. */
  stats(now: number): { calls: number; extras: number; available: number } {
    this.#evict(now);
    const allowed = Math.max(this.#floor, this.#ratio * this.#callCount);
    return {
      calls: this.#callCount,
      extras: this.#extraCount,
      available: Math.max(0, Math.floor(allowed - this.#extraCount)),
    };
  }

  #evict(now: number): void {
    this.#origin ??= now;
    const newest = Math.floor((now - this.#origin) / this.#width);
    const passed = Math.min(newest - this.#newest, SLOTS);
    if (passed <= 0) return;
    for (let index = newest - passed + 1; index <= newest; index++) {
      const slot = index % SLOTS;
      this.#callCount -= this.#calls[slot] ?? 0;
      this.#extraCount -= this.#extras[slot] ?? 0;
      this.#calls[slot] = 0;
      this.#extras[slot] = 0;
    }
    this.#newest = newest;
  }
}
