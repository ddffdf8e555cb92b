import {
  type BreakerSettings,
  type BreakerSnapshot,
  Bulkhead,
  backoffDelay,
  createPipeline,
  type PolicySettings,
  type RetrySettings,
  throttledResult,
} from '../../../src/index.ts';
import type { Library, Spec, Stack } from '../spec.ts';

const breakerSettings = (breaker: NonNullable<Spec['breaker']>): BreakerSettings => ({
  window: 'count',
  size: breaker.window ?? 10,
  minimumCalls: breaker.minimumCalls,
  failureRate: breaker.failureRate ?? 0.5,
  openDuration: breaker.openFor,
  ...(breaker.probes && { probes: breaker.probes }),
  ...(breaker.successes && { successThreshold: breaker.successes }),
  ...(breaker.lease && { probeLease: breaker.lease }),
  ...(breaker.openForAtMost && { openBackoff: 2, maxOpenDuration: breaker.openForAtMost }),
});

const retrySettings = (retry: NonNullable<Spec['retry']>): RetrySettings => ({
  maxRetries: retry.retries,
  baseDelay: retry.delay,
  ...(retry.factor && { factor: retry.factor }),
  ...(retry.maxDelay && { maxDelay: retry.maxDelay }),
  ...(retry.jitter !== 'own' && { jitter: 'none' }),
  ...(retry.retryAfter === false && { respectRetryAfter: false }),
  ...(retry.budget !== undefined && { budget: { floor: retry.budget, ratio: 0 } }),
});

const settingsOf = (spec: Spec): PolicySettings => ({
  ...(spec.deadline && { deadline: spec.deadline }),
  ...(spec.timeout && { timeout: spec.timeout }),
  ...(spec.rateLimit && { rateLimit: spec.rateLimit }),
  ...(spec.bulkhead && { bulkhead: { limit: spec.bulkhead.limit } }),
  ...(spec.breaker && { breaker: breakerSettings(spec.breaker) }),
  ...(spec.retry && { retry: retrySettings(spec.retry) }),
  ...(spec.hedge && { hedge: spec.hedge }),
  ...(spec.coalesce && { cache: { ttl: 60_000 } }),
});

/** The one policy that stands outside the pipeline. */
const adaptive = (initial: number): Stack => {
  const bulkhead = new Bulkhead('dependency', { limit: { initial, max: 1_000 } });
  return {
    run: (work) => bulkhead.execute((signal) => work({ signal })),
    state: () => 'closed',
    openings: () => 0,
    snapshot: () => undefined,
    tuning: [],
    destroy: () => bulkhead.destroy(),
  };
};

export const ours: Library = {
  name: 'mcp-resilience',
  setup:
    '`createPipeline` with the settings that the case asks for and no error filter: what is a failure it finds out by itself. Its default retry budget is in force: at little traffic it allows three extra attempts in ten seconds, so no case here asks for more. The adaptive limit is a `Bulkhead` of its own.',

  build(spec) {
    if (spec.bulkhead?.adaptive) return adaptive(spec.bulkhead.limit);
    const pipeline = createPipeline(
      'dependency',
      settingsOf(spec),
      spec.failedResult ? { classifyResult: throttledResult } : {},
    );
    const { breaker } = pipeline;
    let openings = 0;
    breaker?.on('open', () => openings++);
    if (spec.breaker?.restore) breaker?.restore(spec.breaker.restore as BreakerSnapshot);
    return {
      run: (work, { signal, key, idempotent }) =>
        pipeline.execute((context) => work(context), {
          ...(signal && { signal }),
          ...(key && { cacheKey: key }),
          ...(idempotent === false && { idempotent }),
        }),
      state: () => breaker?.state ?? 'closed',
      openings: () => openings,
      snapshot: () => breaker?.toJSON(),
      tuning: [],
      destroy: () => pipeline.destroy(),
    };
  },

  backoff: ({ delay, factor, maxDelay, attempts }) => {
    const settings = { baseDelay: delay, factor, maxDelay, jitter: 'full' } as const;
    return Array.from({ length: attempts }, (_, i) => backoffDelay(settings, i + 1));
  },
};
