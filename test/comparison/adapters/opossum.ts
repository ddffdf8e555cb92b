import CircuitBreaker from 'opossum';
import { callersFault } from '../errors.ts';
import { type Library, lacking, NoSuchPolicy, type Spec, type Work } from '../spec.ts';

type Arguments = [work: Work, key: string];

/** What opossum 10 takes beyond its published types. */
type Options = CircuitBreaker.Options<Arguments> & {
  coalesce?: boolean;
  coalesceResetOn?: ('error' | 'success' | 'timeout')[];
  state?: unknown;
};

const breakerOptions = (breaker: Spec['breaker']): Options =>
  breaker
    ? {
        volumeThreshold: breaker.minimumCalls,
        errorThresholdPercentage: (breaker.failureRate ?? 0.5) * 100,
        resetTimeout: breaker.openFor,
        ...(breaker.restore as CircuitBreaker.Options<Arguments>),
      }
    : // It is always a breaker; this one never opens.
      { errorThresholdPercentage: 100 };

export const opossum: Library = {
  name: 'opossum',
  setup:
    'One `CircuitBreaker` with `volumeThreshold`, `errorThresholdPercentage`, `capacity`, `timeout` and `coalesce` as the case asks; `errorThresholdPercentage: 100` where no breaker is wanted. Signals come from `getSignal()`.',

  build(spec, tuned) {
    lacking(spec, {
      retry: 'no retry',
      rateLimit: 'no rate limiter',
      hedge: 'no hedging',
      cancel: 'no signal of the caller',
      idempotency: 'no retry',
      failedResult: 'no judging of results',
    });
    if (spec.bulkhead?.adaptive) throw new NoSuchPolicy('no adaptive limit');
    if (spec.breaker?.openForAtMost) throw new NoSuchPolicy('no backoff of the open time');
    const tuning: string[] = [];
    const tune = (note: string, options: Options): Options => {
      tuning.push(note);
      return options;
    };
    const locked = (error: unknown) => (error as { code?: unknown })?.code === 'ESEMLOCKED';
    const breaker: CircuitBreaker<Arguments> = new CircuitBreaker<Arguments>(
      (work) => work({ signal: signalOf() }) as Promise<unknown>,
      {
        timeout: spec.timeout ?? spec.deadline ?? false,
        ...breakerOptions(spec.breaker),
        ...(spec.bulkhead && { capacity: spec.bulkhead.limit }),
        ...(spec.coalesce && { coalesce: true, cacheGetKey: (_, key) => key }),
        ...(spec.filter && { errorFilter: callersFault }),
        ...(spec.abortsWork && { abortController: new AbortController() }),
        ...(tuned && {
          ...(spec.bulkhead &&
            spec.breaker &&
            tune('errorFilter for ESEMLOCKED', { errorFilter: locked })),
          ...(spec.abortsWork &&
            tune('autoRenewAbortController: true', { autoRenewAbortController: true })),
          ...(spec.coalesce &&
            tune("coalesceResetOn: ['error', 'timeout', 'success']", {
              coalesceResetOn: ['error', 'timeout', 'success'],
            })),
          ...(spec.breaker?.window &&
            tune('rollingPercentilesEnabled: false', { rollingPercentilesEnabled: false })),
        }),
      } satisfies Options,
    );
    const signalOf = () => (breaker as unknown as { getSignal(): AbortSignal }).getSignal();
    let openings = 0;
    breaker.on('open', () => openings++);
    return {
      run: (work, { key = '' }) => breaker.fire(work, key),
      state: () => (breaker.opened ? 'open' : breaker.halfOpen ? 'half-open' : 'closed'),
      openings: () => openings,
      snapshot: () => breaker.toJSON(),
      tuning,
      destroy: () => breaker.shutdown(),
    };
  },
};
