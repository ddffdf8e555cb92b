/**
 * @module
 * What a refused call gets.
 */
import type { CircuitBreaker } from './circuit-breaker.ts';
import { createFailure, type Failure, ResilienceError } from './failure.ts';

/**
 * The refusal of an open breaker. Made once per breaker and thrown for every refused call, so
 * it has no useful stack; `failure` is computed when read, with the wait that is left then
 * (`retryAfter`, in seconds). Its `code` is `CIRCUIT_OPEN`.
 *
 * @example
 * ```ts
 * import { CircuitBreaker, CircuitOpenError } from 'mcp-resilience';
 * const breaker = new CircuitBreaker('billing');
 * try {
 *   await breaker.execute(() => fetch('https://billing.example/invoice/1'));
 * } catch (error) {
 *   if (!(error instanceof CircuitOpenError)) throw error;
 *   console.error(`billing is paused for ${error.failure.retryAfter ?? 0} s`);
 * }
 * ```
 */
export class CircuitOpenError extends ResilienceError {
  override readonly name = 'CircuitOpenError';
  readonly #breaker: CircuitBreaker;

  /** One without a stack: it would be that of the first refused call, shown for all of them. */
  static of(breaker: CircuitBreaker): CircuitOpenError {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return new CircuitOpenError(breaker);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }

  constructor(breaker: CircuitBreaker) {
    const message = `circuit breaker "${breaker.name}" is open: recent calls failed`;
    super(createFailure('CIRCUIT_OPEN', { message }));
    this.#breaker = breaker;
  }

  override get failure(): Failure {
    const { name, retryAfter, state } = this.#breaker;
    const isolated = state === 'isolated';
    return {
      ...super.failure,
      ...(isolated && { message: `circuit breaker "${name}" was isolated by hand` }),
      retryable: !isolated,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    };
  }
}
