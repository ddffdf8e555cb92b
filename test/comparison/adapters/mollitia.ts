import {
  BreakerState,
  Bulkhead,
  Circuit,
  type Module,
  Ratelimit,
  Retry,
  RetryMode,
  SlidingCountBreaker,
  Timeout,
} from 'mollitia';
import { callersFault, retryAfterOf } from '../errors.ts';
import { type Library, lacking, NoSuchPolicy, type Spec, type State, type Work } from '../spec.ts';

const STATES: Readonly<Record<BreakerState, State>> = {
  [BreakerState.CLOSED]: 'closed',
  [BreakerState.OPENED]: 'open',
  [BreakerState.HALF_OPENED]: 'half-open',
};

interface Stored {
  readonly state: { readonly state: BreakerState; readonly timestamp: number };
}

const breakerOf = (settings: NonNullable<Spec['breaker']>, filter: boolean, tuned: boolean) => {
  const stored = (settings.restore as Stored | undefined)?.state;
  const breaker = new SlidingCountBreaker({
    name: 'breaker',
    active: true,
    slidingWindowSize: settings.window ?? 10,
    minimumNumberOfCalls: settings.minimumCalls,
    failureRateThreshold: (settings.failureRate ?? 0.5) * 100,
    openStateDelay: settings.openFor,
    permittedNumberOfCallsInHalfOpenState: settings.successes ?? settings.probes ?? 1,
    ...(settings.lease && tuned && { halfOpenStateMaxDelay: settings.lease }),
    ...(filter && { onError: (error: unknown) => !callersFault(error) }),
    ...(stored && { state: stored.state }),
  });
  if (stored) breaker.stateTimestamp = stored.timestamp;
  return breaker;
};

const retryOf = (settings: NonNullable<Spec['retry']>, filter: boolean, tuned: boolean) => {
  const { retries, delay, factor = 2, maxDelay, jitter = 'none', retryAfter } = settings;
  const asItComes = jitter === 'own' && !tuned;
  return new Retry({
    name: 'retry',
    active: true,
    attempts: retries,
    ...(!asItComes && {
      mode: jitter === 'own' ? RetryMode.JITTER : RetryMode.EXPONENTIAL,
      interval: delay,
      factor,
    }),
    ...(maxDelay && { maxInterval: maxDelay }),
    ...(filter && { onRejection: (error: unknown) => !callersFault(error) }),
    // Its documentation: a number retries after that many milliseconds.
    ...(retryAfter && { onRejection: retryAfterOf }),
  });
};

export const mollitia: Library = {
  name: 'mollitia',
  setup:
    'A `Circuit` with `Timeout`, `Ratelimit`, `Bulkhead`, `SlidingCountBreaker`, `Retry`, `Timeout`, of these what the case asks for, `permittedNumberOfCallsInHalfOpenState: 1`. It reads no Retry-After; for that `onRejection` returns the milliseconds. Restored by `state` and `stateTimestamp` from `getState()`.',

  build(spec, tuned) {
    lacking(spec, {
      coalesce: 'no coalescing',
      hedge: 'no hedging',
      cancel: 'no signal of the caller',
      abortsWork: 'does not tell the work to stop',
      idempotency: 'no mark for calls that must not be repeated',
      failedResult: 'no judging of results',
      syncWork: 'takes functions that return a promise only',
    });
    if (spec.bulkhead?.adaptive) throw new NoSuchPolicy('no adaptive limit');
    if (spec.breaker?.openForAtMost) throw new NoSuchPolicy('no backoff of the open time');
    if (spec.rateLimit?.maxWait) throw new NoSuchPolicy('its rate limiter does not wait');
    if (spec.retry?.retryAfter === false) throw new NoSuchPolicy('does not read Retry-After');
    const filter = spec.filter === true || tuned;
    const tuning: string[] = [];
    if (!spec.filter && spec.retry && tuned) {
      tuning.push('onRejection: not a fault of the caller');
    }
    if (spec.breaker?.lease && tuned) tuning.push('halfOpenStateMaxDelay');
    if (spec.retry?.jitter === 'own' && tuned) tuning.push('mode: jitter');

    const modules: Module[] = [];
    const named = { name: 'module', active: true };
    if (spec.deadline) modules.push(new Timeout({ ...named, delay: spec.deadline }));
    if (spec.rateLimit) {
      const { limit: limitForPeriod, interval: limitPeriod } = spec.rateLimit;
      modules.push(new Ratelimit({ ...named, limitForPeriod, limitPeriod }));
    }
    if (spec.bulkhead) {
      const { limit: concurrentSize } = spec.bulkhead;
      modules.push(new Bulkhead({ ...named, concurrentSize, queueSize: 0 }));
    }
    const breaker = spec.breaker && breakerOf(spec.breaker, filter, tuned);
    if (breaker) modules.push(breaker);
    if (spec.retry) modules.push(retryOf(spec.retry, filter, tuned));
    if (spec.timeout) modules.push(new Timeout({ ...named, delay: spec.timeout }));

    let openings = 0;
    breaker?.on('state-changed', (state: BreakerState) => {
      if (state === BreakerState.OPENED) openings++;
    });
    const circuit = new Circuit({
      func: (work: Work) => work({ signal: undefined }) as Promise<unknown>,
      options: { modules },
    });
    return {
      run: (work) => circuit.execute(work),
      state: () => STATES[breaker?.state ?? BreakerState.CLOSED],
      openings: () => openings,
      snapshot: () => breaker?.getState(),
      tuning,
      destroy: () => circuit.dispose(),
    };
  },

  async backoff({ delay, factor, maxDelay, attempts }) {
    const waits: number[] = [];
    const retry = retryOf(
      { retries: attempts, delay, factor, maxDelay, jitter: 'own' },
      false,
      true,
    );
    retry.on('delay-before-next-retry', (_circuit: unknown, wait: number) => waits.push(wait));
    const func = () => Promise.reject(new Error('down'));
    await new Circuit({ func, options: { modules: [retry] } }).execute().catch(() => {});
    return waits;
  },
};
