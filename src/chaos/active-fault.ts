/**
 * @module
 * One fault that is armed: whether it strikes an attempt, how often it has, and whom to tell when
 * it ends.
 */
import type { Clock, Random } from '../resilience/clock.ts';
import type { FaultSpec, FaultTarget } from './fault.ts';
import { drawDelay, grown, isOn, seeded } from './selection.ts';

/** Why a fault is not there any more. */
export type EndReason =
  | 'ttl'
  | 'max_count'
  | 'cleared'
  | 'halted'
  | 'error_rate'
  | 'session_ended'
  | 'shutdown';

/** An attempt that a fault may strike. */
export interface Site {
  readonly tool?: string | undefined;
  readonly dependency?: string | undefined;
  readonly upstream?: string | undefined;
  readonly session?: string | undefined;
  /** 1 for the first attempt of a call. */
  readonly attempt: number;
}

/**
 * What people and programs are told of a fault.
 *
 * @example
 * ```ts
 * import { createChaos, type FaultReport } from 'mcp-resilience/chaos';
 * const chaos = createChaos({ targets: [{ tool: 'headlines' }] });
 * const report: FaultReport = chaos.arm({ kind: 'hang', target: { tool: 'headlines' } });
 * console.error(`${report.id} until ${report.expiresAt}`);
 * ```
 */
export interface FaultReport {
  readonly id: string;
  readonly kind: FaultSpec['kind'];
  readonly target: FaultTarget;
  /** ISO time. */
  readonly armedAt: string;
  /** ISO time. */
  readonly expiresAt: string;
  /** Attempts that it has struck. */
  readonly injected: number;
  /** Attempts that were chosen, but did nothing that the fault could act on. */
  readonly missed: number;
  readonly seed: number;
  /** Who armed it. */
  readonly by: string;
  readonly reason?: string;
  /** The settings that say which attempts it strikes and how. */
  readonly settings: Omit<FaultSpec, 'kind' | 'target' | 'reason' | 'seed'>;
  /** ISO time; once it has ended. */
  readonly endedAt?: string;
  readonly endReason?: EndReason;
}

const matches = (target: FaultTarget, site: Partial<Site>): boolean =>
  (['tool', 'dependency', 'upstream', 'session'] as const).every(
    (key) => target[key] === undefined || target[key] === site[key],
  );

export class ActiveFault {
  readonly id: string;
  readonly spec: FaultSpec;
  readonly by: string;
  readonly seed: number;
  /** Clock time. */
  readonly expiresAt: number;
  injected = 0;
  missed = 0;
  #candidates = 0;
  #endReason: EndReason | undefined;
  #endedAt = 0;
  #released = false;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #armedAt: number;
  readonly #armedAtWall: number;
  readonly #onRelease = new Set<() => void>();

  constructor(id: string, spec: FaultSpec, by: string, seed: number, clock: Clock) {
    this.id = id;
    this.spec = spec;
    this.by = by;
    this.seed = seed;
    this.#clock = clock;
    this.#random = seeded(seed);
    this.#armedAt = clock.now();
    this.#armedAtWall = clock.wallTime();
    this.expiresAt = this.#armedAt + spec.ttlSeconds * 1_000;
  }

  /** True until it has ended, be it that nobody has noticed yet. */
  get active(): boolean {
    return this.#endReason === undefined && this.#clock.now() < this.expiresAt && !this.spent;
  }

  /** True once it has struck as often as it may. */
  get spent(): boolean {
    return this.injected >= (this.spec.maxCount ?? Number.POSITIVE_INFINITY);
  }

  /** True for attempts that it is aimed at, whether or not it strikes this one. */
  aimsAt(site: Partial<Site>): boolean {
    return matches(this.spec.target, site);
  }

  /** True when it strikes the attempt; each call draws anew and counts. */
  chooses(site: Site): boolean {
    const { firstAttempts, every, percent = 100, kind } = this.spec;
    const age = this.#age();
    if (!this.active || !this.aimsAt(site) || !isOn(this.spec, age)) return false;
    if (site.attempt > (firstAttempts ?? Number.POSITIVE_INFINITY)) return false;
    this.#candidates += 1;
    if (every !== undefined && this.#candidates % every !== 0) return false;
    const share = kind === 'latency' ? percent : percent * grown(this.spec, age);
    // Drawn even where it cannot fail, so that the sequence does not depend on the time.
    return this.#random() * 100 < share;
  }

  /** Milliseconds of delay for one attempt; `Infinity` for a hang, 0 for kinds without one. */
  delay(): number {
    const { kind, latency } = this.spec;
    if (kind === 'hang') return Number.POSITIVE_INFINITY;
    if (latency === undefined) return 0;
    return drawDelay(latency, this.#random) * grown(this.spec, this.#age());
  }

  /** Has `listener` called when it lets go of whom it struck; returns what takes that back. */
  onRelease(listener: () => void): () => void {
    this.#onRelease.add(listener);
    return () => void this.#onRelease.delete(listener);
  }

  /**
   * Ends it; true the first time. One that has struck often enough still holds those that it
   * struck, until its time is over or somebody clears it; every other end lets them go.
   */
  end(reason: EndReason): boolean {
    const first = this.#endReason === undefined;
    if (first) {
      this.#endReason = reason;
      this.#endedAt = this.#clock.wallTime();
    }
    if (reason !== 'max_count') {
      this.#released = true;
      const listeners = [...this.#onRelease];
      this.#onRelease.clear();
      for (const listener of listeners) listener();
    }
    return first;
  }

  /** True once it has let go of those that it struck. */
  get released(): boolean {
    return this.#released || this.#clock.now() >= this.expiresAt;
  }

  report(): FaultReport {
    const { kind, target, reason, seed: _, ...settings } = this.spec;
    return {
      id: this.id,
      kind,
      target,
      armedAt: new Date(this.#armedAtWall).toISOString(),
      expiresAt: new Date(this.#armedAtWall + settings.ttlSeconds * 1_000).toISOString(),
      injected: this.injected,
      missed: this.missed,
      seed: this.seed,
      by: this.by,
      ...(reason && { reason }),
      settings,
      ...(this.#endReason && {
        endedAt: new Date(this.#endedAt).toISOString(),
        endReason: this.#endReason,
      }),
    };
  }

  #age(): number {
    return this.#clock.now() - this.#armedAt;
  }
}
