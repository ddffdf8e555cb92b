/**
 * @module
 * Stops calling what keeps failing. The state machine stands here; what it remembers of past
 * calls stands in `failure-window.ts`, what it tells in `breaker-reporter.ts`.
 *
 * A call takes a permit and gives it back with its outcome. The permit belongs to the state it
 * was taken in, so a result that arrives after the state has changed decides nothing.
 */
import { observeMetrics, type Report } from '../telemetry/instruments.ts';
import { ATTR } from '../telemetry/signals.ts';
import {
  BREAKER_STATES,
  type BreakerEvent,
  type BreakerOutcome,
  type BreakerPermit,
  type BreakerSnapshot,
  type BreakerState,
  closed,
  type Inner,
  openingOf,
  type ResolvedBreakerSettings,
  waitIn,
} from './breaker-model.ts';
import { BreakerReporter } from './breaker-reporter.ts';
import { CircuitOpenError } from './circuit-open-error.ts';
import { type Clock, systemClock, type Timer } from './clock.ts';
import { classify } from './failure.ts';
import { createWindow, type FailureWindow } from './failure-window.ts';
import { type BreakerSettings, breakerRules } from './policy.ts';
import { rejected } from './rejected.ts';
import { resolve } from './settings.ts';

/**
 * A circuit breaker (Nygard, "Release It!", 2nd ed. 2018, ch. 5).
 *
 * @example
 * ```ts
 * import { CircuitBreaker } from 'mcp-resilience';
 * const breaker = new CircuitBreaker('billing', { threshold: 5, openDuration: 30_000 });
 * breaker.on('open', () => console.error('billing is failing'));
 * const invoice = await breaker.execute(() => fetch('https://billing.example/invoice/1'));
 * ```
 */
export class CircuitBreaker {
  readonly name: string;
  readonly settings: ResolvedBreakerSettings;
  readonly #clock: Clock;
  readonly #window: FailureWindow;
  /**
   * Whether `settle` wants to know when the call began: reading the clock costs more than the
   * rest of a closed breaker, so it is left out where nothing depends on it.
   */
  readonly timed: boolean;
  readonly #slowFrom: number;
  readonly #longestOpen: number;
  readonly #reporter: BreakerReporter;
  readonly #unobserve: () => void;
  #inner: Inner;
  #timer: Timer | undefined;
  #refusal: CircuitOpenError | undefined;
  #successes = 0;
  #openings = 0;
  /** Since when it has not been closed: monotonic for the recovery time, wall for people. */
  #brokenAt = 0;
  #openedAtWall = 0;

  /**
   * @param name of the dependency; appears on every signal
   * @throws RangeError naming the setting, its range and the value given
   */
  constructor(name: string, settings: BreakerSettings = {}, env: { clock?: Clock } = {}) {
    this.name = name;
    this.settings = resolve(breakerRules, settings, 'breaker') as ResolvedBreakerSettings;
    this.#clock = env.clock ?? systemClock;
    this.#window = createWindow(this.settings);
    this.#slowFrom = this.settings.slowCallDuration ?? Number.POSITIVE_INFINITY;
    const { openDuration, maxOpenDuration } = this.settings;
    this.#longestOpen = settings.maxOpenDuration ?? Math.max(maxOpenDuration, openDuration);
    this.timed = this.settings.window === 'time' || Number.isFinite(this.#slowFrom);
    this.#inner = closed();
    this.#reporter = new BreakerReporter(this);
    this.#unobserve = observeMetrics(this);
  }

  /** The state at this moment: an open time that has run out shows without any traffic. */
  get state(): BreakerState {
    this.#poll();
    return this.#inner.state;
  }

  /**
   * Seconds until a call may be let through; undefined while one may be now, and when isolated.
   * While probes take every place it is the longest that one can keep it, at most an open time.
   */
  get retryAfter(): number | undefined {
    this.#poll();
    const wait = waitIn(this.#inner, this.#clock.now(), this.settings);
    return wait === undefined ? undefined : wait / 1000;
  }

  /**
   * Runs `work` if the state allows. What it throws is thrown on, after it was classified:
   * infrastructure failures count, everything else decides nothing.
   *
   * @throws CircuitOpenError with code `CIRCUIT_OPEN` when the call is refused
   */
  execute<T>(work: () => T | PromiseLike<T>): Promise<T> {
    const permit = this.tryAcquire();
    return permit === undefined ? rejected(this.refuse()) : this.#run(permit, work);
  }

  async #run<T>(permit: BreakerPermit, work: () => T | PromiseLike<T>): Promise<T> {
    const started = this.timed ? this.#clock.now() : 0;
    try {
      const value = await work();
      this.settle(permit, 'success', started);
      return value;
    } catch (error) {
      const { weight } = classify(error);
      this.settle(permit, weight === 'infrastructure' ? 'failure' : 'ignored', started);
      throw error;
    }
  }

  /** Takes a permit for one call, or undefined when the call must be refused. Never waits. */
  tryAcquire(): BreakerPermit | undefined {
    const inner = this.#inner;
    if (inner.state === 'closed') return inner.permit;
    return this.#tryAcquireProbe();
  }

  /**
   * Gives a permit back with the outcome of its call. Every permit taken must be settled once.
   * After the state has changed it decides nothing; neither does a probe that is settled after its
   * lease or again. While closed, each time counts as a call.
   *
   * @param started clock time at which the call began; without it the call is not a slow one
   */
  settle(
    permit: BreakerPermit,
    outcome: BreakerOutcome,
    started: number = Number.POSITIVE_INFINITY,
  ): void {
    const inner = this.#inner;
    const now = this.timed ? this.#clock.now() : 0;
    const slow = now - started >= this.#slowFrom;
    this.#reporter.count(outcome === 'success' && slow ? 'slow' : outcome);
    if (inner.state === 'closed') {
      if (permit === inner.permit && outcome !== 'ignored') this.#record(outcome, slow, now);
    } else if (inner.state === 'half-open' && inner.probes.delete(permit)) {
      if (permit.leaseUntil > this.#clock.now()) this.#decide(inner, outcome, slow);
    }
  }

  /** Counts a success of work that did not run through `execute`. */
  recordSuccess(): void {
    this.#recordByHand('success');
  }

  /** Counts a failure of work that did not run through `execute`. */
  recordFailure(): void {
    this.#recordByHand('failure');
  }

  /** Closes it and forgets what it has seen. Leaves `isolated` too. */
  reset(): void {
    this.#successes = 0;
    if (this.#inner.state === 'closed') {
      this.#window.reset();
      // A new permit: calls that run now belong to the time before the reset.
      this.#inner = closed();
    } else this.#close();
  }

  /** Refuses every call until `reset()`. */
  isolate(): void {
    if (this.#inner.state !== 'isolated') this.#enter({ state: 'isolated' });
  }

  /**
   * Calls `listener` at each such event, after the change; what it throws is reported to the
   * OpenTelemetry diagnostics and changes nothing. Returns a function that stops it.
   */
  on(event: BreakerEvent, listener: (breaker: CircuitBreaker) => void): () => void {
    return this.#reporter.listen(event, listener);
  }

  /** Ends its timer, listeners and metrics. Calls go on being decided. Idempotent. */
  destroy(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#reporter.forgetListeners();
    this.#unobserve();
  }

  /** What it is doing, for people and for `restore`. */
  toJSON(): BreakerSnapshot {
    const { state, retryAfter } = this;
    const inner = this.#inner;
    const failureCount =
      inner.state === 'open' ? inner.failureCount : this.#window.counts(this.#clock.now()).failures;
    return {
      name: this.name,
      state,
      failureCount,
      successCount: this.#successes,
      openings: this.#openings,
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...(state === 'open' || state === 'half-open'
        ? { openedAt: new Date(this.#openedAtWall).toISOString() }
        : {}),
    };
  }

  /**
   * Takes up the state of a former process: one that was open stays so for the rest of its
   * open time, counted by the calendar from when it opened.
   *
   * @throws TypeError when the snapshot is not one of `toJSON()`
   */
  restore(snapshot: BreakerSnapshot): void {
    const openedAt = openingOf(snapshot);
    if (snapshot.state === 'closed') this.reset();
    else if (openedAt === undefined) this.isolate();
    else {
      this.#openings = Math.max(0, Math.trunc(snapshot.openings) - 1 || 0);
      // A calendar that was set back must not make the rest longer than a whole open time.
      const age = Math.max(0, this.#clock.wallTime() - openedAt);
      this.#open(snapshot.failureCount, age);
    }
  }

  /** True for the error that `refuse` of this very breaker gave. */
  refused(error: unknown): boolean {
    return error !== undefined && error === this.#refusal;
  }

  /** The error for a refused call, counted and told to listeners. */
  refuse(): CircuitOpenError {
    this.#reporter.rejected();
    this.#refusal ??= CircuitOpenError.of(this);
    return this.#refusal;
  }

  /** @internal Reports the state series when metrics are collected. */
  observe(report: Report): void {
    const current = this.state;
    for (const state of BREAKER_STATES) {
      report('breakerState', state === current ? 1 : 0, {
        [ATTR.dependency]: this.name,
        [ATTR.state]: state,
      });
    }
  }

  #tryAcquireProbe(): BreakerPermit | undefined {
    this.#poll();
    const inner = this.#inner;
    if (inner.state === 'closed') return inner.permit;
    if (inner.state !== 'half-open') return undefined;
    const now = this.#clock.now();
    const { probes } = inner;
    if (probes.size >= this.settings.probes) {
      // A probe that hangs must not keep everyone out: its place goes to the next call.
      for (const probe of probes) if (probe.leaseUntil <= now) probes.delete(probe);
      if (probes.size >= this.settings.probes) return undefined;
    }
    const permit = { leaseUntil: now + this.settings.probeLease };
    probes.add(permit);
    return permit;
  }

  /** Open to half-open follows from the time alone; the timer only makes it visible sooner. */
  #poll(): void {
    const inner = this.#inner;
    if (inner.state === 'open' && inner.until <= this.#clock.now()) {
      this.#enter({ state: 'half-open', probes: new Set(), successes: 0 });
    }
  }

  #recordByHand(outcome: 'success' | 'failure'): void {
    this.#poll();
    this.#reporter.count(outcome);
    const inner = this.#inner;
    if (inner.state === 'closed') this.#record(outcome, false, this.#clock.now());
    else if (inner.state === 'half-open') this.#decide(inner, outcome, false);
  }

  #record(outcome: 'success' | 'failure', slow: boolean, now: number): void {
    const failed = outcome === 'failure';
    this.#successes = failed ? 0 : this.#successes + 1;
    this.#window.record(failed, slow, now);
    if ((failed || slow) && this.#window.tripped(now)) {
      this.#open(this.#window.counts(now).failures);
    }
  }

  #decide(inner: Inner & { state: 'half-open' }, outcome: BreakerOutcome, slow: boolean): void {
    if (outcome === 'ignored') return;
    if (outcome === 'failure' || slow) {
      this.#successes = 0;
      this.#open(1);
    } else {
      this.#successes++;
      if (++inner.successes >= this.settings.successThreshold) this.#close();
    }
  }

  #open(failureCount: number, age = 0): void {
    const { openDuration, openBackoff } = this.settings;
    const now = this.#clock.now();
    const { state } = this.#inner;
    if (state === 'closed' || state === 'isolated') this.#brokenAt = now - age;
    const duration = Math.min(openDuration * openBackoff ** this.#openings, this.#longestOpen);
    this.#openings++;
    this.#openedAtWall = this.#clock.wallTime() - age;
    const next: Inner = { state: 'open', until: now + duration - age, failureCount };
    this.#enter(next);
    // A listener may have moved it on already.
    if (this.#inner === next) this.#arm(next.until - now);
  }

  #arm(delay: number): void {
    this.#timer = this.#clock.setTimer(delay, () => {
      this.#timer = undefined;
      this.#poll();
      // Timers of the platform are cut to whole milliseconds and may fire a little early.
      const inner = this.#inner;
      if (inner.state === 'open' && this.#timer === undefined)
        this.#arm(inner.until - this.#clock.now());
    });
  }

  #close(): void {
    const seconds = (this.#clock.now() - this.#brokenAt) / 1000;
    const recovered = this.#openings > 0;
    this.#window.reset();
    this.#openings = 0;
    this.#enter(closed());
    if (recovered) this.#reporter.recovered(seconds);
  }

  #enter(next: Inner): void {
    const from = this.#inner.state;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#inner = next;
    this.#reporter.changed(from, next.state);
  }
}
