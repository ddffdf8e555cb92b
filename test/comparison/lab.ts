/**
 * @module
 * What a case works with: time, the library under test and calls that can be watched.
 */
import { brief, reset } from './errors.ts';
import type { BackoffSpec, Library, RunOptions, Spec, Stack, Work } from './spec.ts';
import { NoSuchPolicy } from './spec.ts';
import { flush, type VirtualTime } from './virtual-time.ts';

/** What a case came to. */
export interface Finding {
  readonly pass: boolean;
  /** What was seen, in one line. */
  readonly observed: string;
}

export interface Case {
  /** Of the case collection. */
  readonly id: string;
  /** What holds if it passes. */
  readonly title: string;
  /** Measures real time, and so must run on it. */
  readonly realTime?: boolean;
  run(lab: Lab): Promise<Finding>;
}

/** A call on its way, and how it ended. */
export interface Watched {
  ended: 'pending' | 'answered' | 'failed';
  value: unknown;
  error: unknown;
  /** Milliseconds of the case at which it ended. */
  at: number;
}

/** Work that ends when told, and keeps count. */
export interface Controlled {
  readonly work: Work;
  readonly started: () => number;
  /** Ends everything that has started. */
  resolve(value?: unknown): void;
  reject(error: unknown): void;
  /** Signals that were handed to it. */
  readonly signals: (AbortSignal | undefined)[];
}

export class Lab {
  readonly #library: Library;
  readonly #tuned: boolean;
  readonly #time: VirtualTime;
  readonly #stacks: Stack[] = [];

  constructor(library: Library, tuned: boolean, time: VirtualTime) {
    this.#library = library;
    this.#tuned = tuned;
    this.#time = time;
  }

  /** @throws NoSuchPolicy if the library has nothing for it */
  stack(spec: Spec): Stack {
    const stack = this.#library.build(spec, this.#tuned);
    this.#stacks.push(stack);
    return stack;
  }

  async backoff(spec: BackoffSpec): Promise<number[]> {
    const { backoff } = this.#library;
    if (!backoff) throw new NoSuchPolicy('no retry');
    const waits = backoff(spec);
    if (waits instanceof Promise) await this.advance(spec.attempts * spec.maxDelay);
    return waits;
  }

  get elapsed(): number {
    return this.#time.elapsed;
  }

  advance(ms: number): Promise<void> {
    return this.#time.advance(ms);
  }

  /** Makes a call and gives it the chance to end at once. */
  async call(stack: Stack, work: Work, options: RunOptions = {}): Promise<Watched> {
    const watched: Watched = { ended: 'pending', value: undefined, error: undefined, at: 0 };
    stack.run(work, options).then(
      (value) => Object.assign(watched, { ended: 'answered', value, at: this.elapsed }),
      (error: unknown) => Object.assign(watched, { ended: 'failed', error, at: this.elapsed }),
    );
    await flush();
    return watched;
  }

  /** Makes `times` calls, one after the other, that fail with `error`. */
  async fail(stack: Stack, times: number, error: () => Error = reset): Promise<void> {
    for (let i = 0; i < times; i++) await this.call(stack, () => Promise.reject(error()));
  }

  /** Whether a call is let through now; it succeeds if so. */
  async letsThrough(stack: Stack): Promise<boolean> {
    let ran = false;
    await this.call(stack, async () => {
      ran = true;
    });
    return ran;
  }

  get tuning(): string[] {
    return [...new Set(this.#stacks.flatMap(({ tuning }) => tuning))];
  }

  destroy(): void {
    for (const stack of this.#stacks) stack.destroy();
  }
}

export const controlled = (): Controlled => {
  const running: PromiseWithResolvers<unknown>[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  return {
    signals,
    started: () => running.length,
    work: ({ signal }) => {
      const flight = Promise.withResolvers<unknown>();
      running.push(flight);
      signals.push(signal);
      return flight.promise;
    },
    resolve: (value) => {
      for (const flight of running) flight.resolve(value);
    },
    reject: (error) => {
      for (const flight of running) flight.reject(error);
    },
  };
};

/** Work that fails `failures` times and then succeeds, with the times at which it was called. */
export const flaky = (lab: Lab, failures: number, error: () => Error = reset) => {
  const calledAt: number[] = [];
  const work: Work = async () => {
    calledAt.push(lab.elapsed);
    if (calledAt.length <= failures) throw error();
    return 'done';
  };
  const gaps = () => calledAt.slice(1).map((at, i) => Math.round(at - (calledAt[i] ?? 0)));
  return { work, calledAt, gaps };
};

/** How a call ended, in a few words. */
export const tell = (call: Watched): string =>
  call.ended === 'failed'
    ? `failed with ${brief(call.error)}`
    : call.ended === 'pending'
      ? 'never settled'
      : 'answered';

export const finding = (pass: boolean, observed: string): Finding => ({ pass, observed });

/** `1 call`, `2 calls`. */
export const times = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
