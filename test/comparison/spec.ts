/**
 * @module
 * What a case asks of a library, in words that are nobody's: each adapter translates them into
 * the settings that its library's documentation gives for them.
 */

/** Every duration in milliseconds. What is absent is not set up at all. */
export interface Spec {
  /** Opens when at least `failureRate` of at least `minimumCalls` failed. */
  readonly breaker?: {
    readonly minimumCalls: number;
    /** Above this share of failures it opens. Default 0.5. */
    readonly failureRate?: number;
    readonly openFor: number;
    /** Calls remembered. Default 10. */
    readonly window?: number;
    /** Probes at one time while half-open. Default 1. */
    readonly probes?: number;
    /** Successful probes needed to close. Default 1. */
    readonly successes?: number;
    /** Time after which a probe that has not ended no longer counts, for those that know such a thing. */
    readonly lease?: number;
    /** The open time doubles with each failed recovery, up to this. */
    readonly openForAtMost?: number;
    /** What `snapshot` gave. */
    readonly restore?: unknown;
  };
  readonly retry?: {
    readonly retries: number;
    readonly delay: number;
    readonly factor?: number;
    readonly maxDelay?: number;
    /** Default `none`; `own`: whatever the library recommends. */
    readonly jitter?: 'none' | 'own';
    /** Whether Retry-After decides about the wait. Absent: nothing sends one. */
    readonly retryAfter?: boolean;
    /** Extra attempts that the budget allows. */
    readonly budget?: number;
  };
  /** Of one attempt. */
  readonly timeout?: number;
  /** Of the whole call. */
  readonly deadline?: number;
  /** Calls at one time; `adaptive`: found out from latency, beginning with that many. */
  readonly bulkhead?: { readonly limit: number; readonly adaptive?: boolean };
  readonly rateLimit?: {
    readonly limit: number;
    readonly interval: number;
    readonly maxWait?: number;
  };
  /** Identical calls at the same time become one. */
  readonly coalesce?: boolean;
  readonly hedge?: { readonly delay: number };
  /** Results that are failures in disguise. */
  readonly failedResult?: (result: unknown) => boolean;
  /** Tells the library which errors are the caller's own fault, where it must be told. */
  readonly filter?: boolean;
  /** The case needs: the caller can cancel. */
  readonly cancel?: boolean;
  /** The case needs: the work is told when nobody waits for it any more. */
  readonly abortsWork?: boolean;
  /** The case needs: a call can be marked as not to be repeated. */
  readonly idempotency?: boolean;
  /** The case needs: the work may be a plain function. */
  readonly syncWork?: boolean;
}

/** What is to be protected; the signal is there if the library hands one on. */
export type Work = (context: { readonly signal: AbortSignal | undefined }) => unknown;

export interface RunOptions {
  readonly signal?: AbortSignal;
  /** Calls with the same key are identical. */
  readonly key?: string;
  readonly idempotent?: boolean;
}

export type State = 'closed' | 'open' | 'half-open' | 'isolated';

/** The policies of a spec, put together. */
export interface Stack {
  run(work: Work, options: RunOptions): Promise<unknown>;
  state(): State;
  /** How often it went to open. */
  openings(): number;
  /** What can be written down and handed to `restore`. */
  snapshot(): unknown;
  /** Settings that were chosen for this case and are not what one gets without asking. */
  readonly tuning: readonly string[];
  destroy(): void;
}

/** Settings of a backoff without a retry around it. */
export interface BackoffSpec {
  readonly delay: number;
  readonly factor: number;
  readonly maxDelay: number;
  readonly attempts: number;
}

export interface Library {
  /** That of its package. */
  readonly name: string;
  /** How specs are translated, for readers of the report. */
  readonly setup: string;
  /** @param tuned false: nothing but what the spec names, everything else as it comes */
  build(spec: Spec, tuned: boolean): Stack;
  /** The waits between `attempts` attempts; absent if it has no retry. */
  backoff?(spec: BackoffSpec): number[] | Promise<number[]>;
}

/** The library has nothing for what the case is about: neither passed nor failed. */
export class NoSuchPolicy extends Error {
  override readonly name = 'NoSuchPolicy';
}

/** Refuses a spec that asks for something in `lacks`; the text says what is missing. */
export const lacking = (spec: Spec, lacks: { readonly [Feature in keyof Spec]?: string }): void => {
  for (const [feature, what] of Object.entries(lacks)) {
    const wanted = spec[feature as keyof Spec];
    if (wanted !== undefined && wanted !== false) throw new NoSuchPolicy(what);
  }
};
