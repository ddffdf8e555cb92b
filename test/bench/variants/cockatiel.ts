/**
 * @module
 * cockatiel with the same settings as ours.
 */
import type { IBreaker } from 'cockatiel';
import { failingWork, TIMEOUT, type Variant, work } from '../variant.ts';
import { FOUR, WINDOWS } from './ours.ts';

const load = async () => {
  const library = await import('cockatiel');
  const breaker = (counting: IBreaker, halfOpenAfter: number = FOUR.breaker.openDuration) =>
    library.circuitBreaker(library.handleAll, { halfOpenAfter, breaker: counting });
  const retry = () =>
    library.retry(library.handleAll, {
      maxAttempts: FOUR.retry.maxRetries,
      backoff: new library.ExponentialBackoff({ initialDelay: FOUR.retry.baseDelay }),
    });
  const timeout = () => library.timeout(TIMEOUT, library.TimeoutStrategy.Aggressive);
  const bulkhead = () => library.bulkhead(FOUR.bulkhead.limit, FOUR.bulkhead.queue);
  const consecutive = () => breaker(new library.ConsecutiveBreaker(FOUR.breaker.threshold));
  return { library, breaker, consecutive, retry, timeout, bulkhead };
};

type Loaded = Awaited<ReturnType<typeof load>>;

const policy = (
  what: string,
  about: string,
  make: (loaded: Loaded) => { execute(work: () => Promise<number>): Promise<number> },
): Variant => ({
  name: `cockatiel: ${what}`,
  about,
  make: async () => {
    const made = make(await load());
    return () => made.execute(work);
  },
});

const failing = (size: number): Variant => ({
  name: `cockatiel: failing and succeeding call, window ${size}`,
  about: `\`CountBreaker\` with a full window of ${size}, above its failure rate never: a call that fails and one that succeeds`,
  make: async () => {
    const { library, breaker } = await load();
    const made = breaker(new library.CountBreaker({ threshold: 0.9, size }));
    const pair = async () => {
      await made.execute(failingWork).catch(() => {});
      await made.execute(work);
    };
    for (let i = 0; i < size; i++) await pair();
    return pair;
  },
});

export const cockatiel: readonly Variant[] = [
  policy('breaker', '`circuitBreaker` with `ConsecutiveBreaker`', ({ consecutive }) =>
    consecutive(),
  ),
  policy('retry', '`retry` with `ExponentialBackoff`', ({ retry }) => retry()),
  policy(
    'timeout',
    '`timeout`, aggressive: as ours, it answers when the time is up',
    ({ timeout }) => timeout(),
  ),
  policy('bulkhead', '`bulkhead`, 100 places', ({ bulkhead }) => bulkhead()),
  policy('wrap of the same four', '`wrap(bulkhead, circuitBreaker, retry, timeout)`', (loaded) =>
    loaded.library.wrap(loaded.bulkhead(), loaded.consecutive(), loaded.retry(), loaded.timeout()),
  ),
  {
    name: 'cockatiel: refusal',
    about: '`circuitBreaker` while open',
    fails: true,
    make: async () => {
      const { library, breaker } = await load();
      const made = breaker(new library.ConsecutiveBreaker(1), 86_400_000);
      await made.execute(failingWork).catch(() => {});
      return () => made.execute(work);
    },
  },
  ...WINDOWS.map(failing),
];
