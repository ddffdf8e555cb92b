import {
  bulkhead,
  CircuitState,
  ConstantBackoff,
  CountBreaker,
  circuitBreaker,
  DelegateBackoff,
  ExponentialBackoff,
  handleAll,
  handleWhen,
  type IDefaultPolicyContext,
  type IPolicy,
  type IRetryBackoffContext,
  noJitterGenerator,
  type Policy,
  retry,
  TimeoutStrategy,
  timeout,
  wrap,
} from 'cockatiel';
import { callersFault, retryAfterOf } from '../errors.ts';
import { type Library, lacking, NoSuchPolicy, type Spec, type State } from '../spec.ts';

const STATES: Readonly<Record<CircuitState, State>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.Open]: 'open',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Isolated]: 'isolated',
};

const breakerOf = (settings: NonNullable<Spec['breaker']>, policy: Policy) => {
  const { minimumCalls, failureRate = 0.5, openFor, window = 10 } = settings;
  const calls = settings.successes ?? settings.probes ?? 1;
  return circuitBreaker(policy, {
    halfOpenAfter: settings.openForAtMost
      ? new ExponentialBackoff({
          initialDelay: openFor,
          maxDelay: settings.openForAtMost,
          generator: noJitterGenerator,
        })
      : openFor,
    breaker: new CountBreaker({
      threshold: failureRate,
      size: window,
      minimumNumberOfCalls: minimumCalls,
    }),
    ...(calls > 1 && { halfOpenSampling: { calls, threshold: 0 } }),
    ...(settings.restore !== undefined && { initialState: settings.restore }),
  });
};

/** Its documentation shows a delegate that reads the error for waits that depend on it. */
const retryAfterBackoff = new DelegateBackoff<IRetryBackoffContext<unknown>>(({ result }) =>
  'error' in result ? retryAfterOf(result.error) : 0,
);

const backoffOf = (settings: NonNullable<Spec['retry']>, tuned: boolean) => {
  const { delay, factor = 2, maxDelay = 30_000, jitter = 'none', retryAfter } = settings;
  if (retryAfter) return retryAfterBackoff;
  if (jitter === 'own') {
    return tuned
      ? new ExponentialBackoff({ initialDelay: delay, maxDelay })
      : new ConstantBackoff(0);
  }
  const generator = noJitterGenerator;
  return new ExponentialBackoff({ initialDelay: delay, exponent: factor, maxDelay, generator });
};

export const cockatiel: Library = {
  name: 'cockatiel',
  setup:
    '`wrap(timeout, bulkhead, circuitBreaker, retry, timeout)`, of these what the case asks for: `CountBreaker`, `ExponentialBackoff` without jitter, aggressive timeouts. It reads no Retry-After; for that a `DelegateBackoff` reads the error, as its documentation shows.',

  build(spec, tuned) {
    lacking(spec, {
      rateLimit: 'no rate limiter',
      coalesce: 'no coalescing',
      hedge: 'no hedging',
      idempotency: 'no mark for calls that must not be repeated',
    });
    if (spec.bulkhead?.adaptive) throw new NoSuchPolicy('no adaptive limit');
    if (spec.retry?.retryAfter === false) throw new NoSuchPolicy('does not read Retry-After');
    const tuning: string[] = [];
    let policy = handleAll;
    if (spec.filter || tuned) {
      policy = handleWhen((error) => !callersFault(error));
      if (!spec.filter && spec.retry) tuning.push('handleWhen(not a fault of the caller)');
    }
    const { failedResult } = spec;
    if (failedResult) policy = policy.orWhenResult(failedResult);
    if (tuned && spec.retry?.jitter === 'own') tuning.push('new ExponentialBackoff()');

    const stages: IPolicy<IDefaultPolicyContext, unknown>[] = [];
    if (spec.deadline) stages.push(timeout(spec.deadline, TimeoutStrategy.Aggressive));
    // Outside the breaker, so that its refusals are none of the breaker's business.
    if (spec.bulkhead) stages.push(bulkhead(spec.bulkhead.limit));
    const breaker = spec.breaker && breakerOf(spec.breaker, policy);
    if (breaker) stages.push(breaker);
    if (spec.retry) {
      const { retries: maxAttempts } = spec.retry;
      stages.push(retry(policy, { maxAttempts, backoff: backoffOf(spec.retry, tuned) }));
    }
    if (spec.timeout) stages.push(timeout(spec.timeout, TimeoutStrategy.Aggressive));
    const wrapped = wrap(...stages);

    let openings = 0;
    breaker?.onBreak(() => openings++);
    return {
      run: (work, { signal }) => wrapped.execute((context) => work(context), signal),
      state: () => STATES[breaker?.state ?? CircuitState.Closed],
      openings: () => openings,
      snapshot: () => breaker?.toJSON(),
      tuning,
      destroy() {},
    };
  },

  backoff: ({ delay, maxDelay, attempts }) => {
    const context = { attempt: 1, signal: new AbortController().signal, result: { value: 0 } };
    let backoff = new ExponentialBackoff({ initialDelay: delay, maxDelay }).next();
    return Array.from({ length: attempts }, (_, i) => {
      if (i > 0) backoff = backoff.next(context);
      return backoff.duration;
    });
  },
};
