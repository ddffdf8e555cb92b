/**
 * @module
 * The faults that are armed: arms, lists and clears them, decides which attempts they strike, and
 * makes sure that none is left behind. Everything is in memory, so that a restart clears it.
 */
import {
  type Clock,
  type Random,
  systemClock,
  systemRandom,
  type Timer,
} from '../resilience/clock.ts';
import { observeMetrics, type Report } from '../telemetry/instruments.ts';
import { ATTR } from '../telemetry/signals.ts';
import { ActiveFault, type EndReason, type FaultReport, type Site } from './active-fault.ts';
import { auditArmed, auditCleared, auditInjected } from './audit.ts';
import type { ChaosTargets } from './chaos-targets.ts';
import { type FaultSpec, targetText } from './fault.ts';
import { markCall, marksFor } from './fault-marks.ts';

/** Faults that may be active at one time, unless set. */
const MAX_ACTIVE = 5;
/** Faults that have ended and are still listed. */
const RECENT = 20;

/**
 * A fault cannot be armed; the message says why and what to do.
 *
 * @example
 * ```ts
 * import { ChaosError, createChaos } from 'mcp-resilience/chaos';
 * const chaos = createChaos({ targets: [{ tool: 'headlines' }] });
 * try {
 *   chaos.arm({ kind: 'hang', target: { tool: 'headlnies' } });
 * } catch (error) {
 *   if (error instanceof ChaosError) console.error(error.message); // there is no tool "headlnies"; …
 * }
 * ```
 */
export class ChaosError extends Error {
  override readonly name = 'ChaosError';
}

/** Who arms a fault. */
export interface Armer {
  /** Principal, or what the client calls itself. */
  readonly by: string;
  /** Ends the fault when it aborts: its owner has gone. */
  readonly gone?: AbortSignal | undefined;
}

/** One fault that strikes one attempt. */
export interface Injection {
  readonly fault: ActiveFault;
  /**
   * The fault has its effect now: counts it (once for the attempt), marks the call. False when it
   * has ended meanwhile, and nothing must happen.
   */
  strike(): boolean;
}

/**
 * What is armed, and what was.
 *
 * @example
 * ```ts
 * import type { FaultList } from 'mcp-resilience/chaos';
 * const isQuiet = ({ faults, halted }: FaultList): boolean => faults.length === 0 && !halted;
 * ```
 */
export interface FaultList {
  readonly faults: readonly FaultReport[];
  /** Why nothing can be armed; absent unless halted. */
  readonly haltReason?: string;
  readonly halted: boolean;
  /** Faults that have ended, newest first. */
  readonly recent: readonly FaultReport[];
}

/** What a registry is made of. */
export interface FaultRegistryOptions {
  /** What faults can be aimed at. */
  readonly targets: ChaosTargets;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Faults active at one time at most. Default 5. */
  readonly maxActive?: number;
}

interface Armed {
  readonly fault: ActiveFault;
  readonly target: string;
  readonly timer: Timer;
  readonly forget: () => void;
}

export class FaultRegistry {
  readonly clock: Clock;
  readonly targets: ChaosTargets;
  readonly #random: Random;
  readonly #maxActive: number;
  readonly #armed = new Map<string, Armed>();
  /** Have struck as often as they may, and still hold some that they struck. */
  readonly #holding = new Map<string, Armed>();
  #recent: FaultReport[] = [];
  #haltReason: string | undefined;
  /** Series of the gauge that were there once: they go on with 0. */
  readonly #series = new Map<string, Record<string, string>>();
  readonly #unobserve: () => void;

  constructor({ targets, clock, random, maxActive = MAX_ACTIVE }: FaultRegistryOptions) {
    this.targets = targets;
    this.clock = clock ?? systemClock;
    this.#random = random ?? systemRandom;
    this.#maxActive = maxActive;
    this.#unobserve = observeMetrics(this);
  }

  /** False while no attempt can be struck. */
  get active(): boolean {
    return this.#armed.size > 0;
  }

  /** @throws ChaosError when the fault could not be armed now */
  check(spec: FaultSpec): void {
    this.#expire();
    if (this.#haltReason !== undefined) {
      throw new ChaosError(
        `chaos is halted (${this.#haltReason}); call halt_chaos with { "lift": true } to allow faults again`,
      );
    }
    const problem = this.targets.problem(spec);
    if (problem !== undefined) throw new ChaosError(problem);
    if (this.#armed.size >= this.#maxActive) {
      const ids = [...this.#armed.keys()].join(', ');
      throw new ChaosError(
        `${this.#maxActive} faults are active, and no more are allowed at one time; clear one of ${ids}`,
      );
    }
  }

  /**
   * Arms a fault: it strikes from now on, until its time is over.
   *
   * @throws ChaosError when chaos is halted, the target is not known, or too many are active
   */
  arm(spec: FaultSpec, { by, gone }: Armer): FaultReport {
    this.check(spec);
    if (gone?.aborted) throw new ChaosError('the session that asks has ended');
    const id = `fault-${this.#draw().toString(16).padStart(8, '0')}`;
    const seed = spec.seed ?? this.#draw();
    const fault = new ActiveFault(id, spec, by, seed, this.clock);
    const onGone = () => this.#end(id, 'session_ended');
    gone?.addEventListener('abort', onGone, { once: true });
    const target = targetText(spec.target);
    this.#armed.set(id, {
      fault,
      target,
      // The time is looked at whenever the fault could strike, too: timers may be late.
      timer: this.clock.setTimer(spec.ttlSeconds * 1_000, () => this.#end(id, 'ttl')),
      forget: () => gone?.removeEventListener('abort', onGone),
    });
    this.#series.set(`${spec.kind} ${target}`, {
      [ATTR.faultKind]: spec.kind,
      [ATTR.faultTarget]: target,
    });
    auditArmed(fault, target);
    return fault.report();
  }

  /** Clears one fault; false when there is none of that id, as when it was cleared before. */
  clear(id: string): boolean {
    this.#expire();
    const known = this.#armed.has(id);
    this.#end(id, 'cleared');
    return known;
  }

  /** Clears all of them and says how many there were. */
  clearAll(reason: EndReason = 'cleared'): number {
    this.#expire();
    const { size } = this.#armed;
    for (const id of [...this.#armed.keys(), ...this.#holding.keys()]) this.#end(id, reason);
    return size;
  }

  /** Clears all and refuses new ones until `lift`. */
  halt(why: string, reason: EndReason = 'halted'): number {
    this.#haltReason ??= why;
    return this.clearAll(reason);
  }

  /** Allows faults again; true when they were not. */
  lift(): boolean {
    const halted = this.#haltReason !== undefined;
    this.#haltReason = undefined;
    return halted;
  }

  list(): FaultList {
    this.#expire();
    return {
      faults: [...this.#armed.values()].map(({ fault }) => fault.report()),
      halted: this.#haltReason !== undefined,
      ...(this.#haltReason !== undefined && { haltReason: this.#haltReason }),
      recent: [...this.#recent],
    };
  }

  /** True for calls that an active fault is aimed at, in whichever session. */
  aimsAt(site: Partial<Site>): boolean {
    return [...this.#armed.values()].some(({ fault }) => {
      const { session } = fault.spec.target;
      return fault.aimsAt(session === undefined ? site : { ...site, session });
    });
  }

  /**
   * The fault that strikes an attempt: the first one armed that chooses it.
   *
   * @param within a fault that the attempt is part of already; it does not strike twice
   */
  decide(site: Site, within?: Injection): Injection | undefined {
    if (this.#armed.size === 0) return undefined;
    this.#expire();
    for (const { fault, target } of this.#armed.values()) {
      if (fault !== within?.fault && fault.chooses(site)) return this.#injection(fault, target);
    }
    return undefined;
  }

  /** @internal Reports the gauge when metrics are collected. */
  observe(report: Report): void {
    this.#expire();
    const counts = new Map<string, number>();
    for (const { fault, target } of this.#armed.values()) {
      const key = `${fault.spec.kind} ${target}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [key, attributes] of this.#series) {
      report('faultsActive', counts.get(key) ?? 0, attributes);
    }
  }

  /** Clears all for good: the process ends. */
  destroy(): void {
    this.halt('the server is shutting down', 'shutdown');
    this.#unobserve();
  }

  #draw(): number {
    return Math.floor(this.#random() * 2 ** 32);
  }

  #injection(fault: ActiveFault, target: string): Injection {
    const marks = marksFor(fault.id);
    let struck = false;
    return {
      fault,
      strike: () => {
        if (struck) return !fault.released;
        if (!this.#armed.has(fault.id) || !fault.active) return false;
        struck = true;
        fault.injected += 1;
        markCall(marks);
        auditInjected(fault, target);
        if (fault.spent) this.#end(fault.id, 'max_count');
        return true;
      },
    };
  }

  #expire(): void {
    const now = this.clock.now();
    for (const { fault } of this.#armed.values()) {
      if (now >= fault.expiresAt) this.#end(fault.id, 'ttl');
    }
  }

  #end(id: string, reason: EndReason): void {
    const armed = this.#armed.get(id) ?? this.#holding.get(id);
    if (armed === undefined) return;
    const { fault, target, timer, forget } = armed;
    this.#armed.delete(id);
    this.#holding.delete(id);
    if (fault.end(reason)) {
      this.#recent = [fault.report(), ...this.#recent].slice(0, RECENT);
      auditCleared(fault, target, reason);
    }
    if (reason === 'max_count') {
      this.#holding.set(id, armed);
      return;
    }
    timer.cancel();
    forget();
  }
}
