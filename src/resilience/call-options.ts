/**
 * @module
 * What can be said in code of a pipeline and of each call, beside the settings.
 */
import type { CallContext } from './attempt.ts';
import type { Clock, Random } from './clock.ts';
import type { Deadline } from './deadline.ts';
import type { Classifier, Failure } from './failure.ts';
import type { Priority } from './policy.ts';

/**
 * What can be injected and added in code; the settings themselves are plain data.
 *
 * @example
 * ```ts
 * import { classify, createPipeline, type PipelineOptions, presets } from 'mcp-resilience';
 * const options: PipelineOptions = {
 *   classifyResult: (result) =>
 *     result instanceof Response && !result.ok ? classify(result) : undefined,
 * };
 * const billing = createPipeline('billing', presets.internal, options);
 * await billing.execute(({ signal }) => fetch('https://billing.example/1', { signal }));
 * ```
 */
export interface PipelineOptions {
  /** Default: the process's monotonic clock. */
  readonly clock?: Clock;
  /** Default: `Math.random`. */
  readonly random?: Random;
  /** Put in front of the built-in classification of what was thrown; asked once an attempt. */
  readonly classifier?: Classifier;
  /**
   * Finds the failure in a result that is one, such as a 429 told in a payload. A result of
   * weight `throttled` or `infrastructure` is retried as an error would be; in the end the
   * result itself is the answer, and is not cached.
   */
  readonly classifyResult?: (result: unknown) => Failure | undefined;
  /**
   * Stands around the work of each attempt as the innermost stage, inside the attempt's time
   * limit: what it waits, throws or answers instead of calling `work` meets every policy as the
   * real thing would. For fault injection. Default: none, and nothing is spent on it.
   *
   * @param dependency name of the pipeline
   */
  readonly inject?: <T>(
    dependency: string,
    context: CallContext,
    work: () => T | PromiseLike<T>,
  ) => T | PromiseLike<T>;
}

/**
 * What can differ from call to call.
 *
 * @example
 * ```ts
 * import { type CallOptions, createPipeline, Deadline, presets } from 'mcp-resilience';
 * const options: CallOptions<string> = {
 *   deadline: Deadline.after(5_000),
 *   idempotent: false,
 *   priority: 'background',
 *   fallback: () => 'nobody knows',
 * };
 * await createPipeline('oracle', presets.internal).execute(() => 'yes', options);
 * ```
 */
export interface CallOptions<T> {
  /** Cancels the call: it rejects at once with the signal's reason and counts as cancelled. */
  readonly signal?: AbortSignal;
  /** An earlier end than the settings give. One that is in force around the call is found by itself. */
  readonly deadline?: Deadline;
  /**
   * Whether executing the work twice does no harm. Default true: who sets a retry or a hedge
   * says so. With false, only what was never sent or was refused is repeated, and an answer
   * that got lost is reported as `OUTCOME_UNKNOWN`.
   */
  readonly idempotent?: boolean;
  /** Key of the rate limit, such as the principal. Default: one bucket for all calls. */
  readonly rateLimitKey?: string;
  /**
   * Identity of the answer (`cacheKey`), principal included. Without one nothing is cached. The
   * work must not ask for the same key: it would wait for itself, and fails with `INTERNAL_ERROR`.
   */
  readonly cacheKey?: string;
  /** False asks for a new answer; it is put into the cache all the same. Default true. */
  readonly useCache?: boolean;
  /** Instead of the pipeline's own `classifyResult`. */
  readonly classifyResult?: (result: T) => Failure | undefined;
  /** Default `interactive`. */
  readonly priority?: Priority;
  /**
   * Gives a lesser answer when the call failed in a way that passes by itself; undefined means
   * that there is none. Tried after a stale answer that is still allowed, never cached. The deadline
   * bounds it too; when that has passed before, only what needs no waiting is given.
   */
  readonly fallback?: (failure: Failure) => T | undefined | PromiseLike<T | undefined>;
}
