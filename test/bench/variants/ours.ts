/**
 * @module
 * Our primitives, each alone, and what it costs to have many of one.
 */
import { failingWork, TIMEOUT, type Variant, work } from '../variant.ts';

/** The four policies that the libraries are compared with. */
export const FOUR = {
  bulkhead: { limit: 100, queue: 100 },
  breaker: { threshold: 5, openDuration: 30_000 },
  retry: { maxRetries: 2, baseDelay: 100 },
  timeout: TIMEOUT,
} as const;

/** Loads the library; the type of the settings is that of `createPipeline`. */
const load = () => import('../../../src/index.ts');

type Settings = Parameters<Awaited<ReturnType<typeof load>>['createPipeline']>[1];

const pipeline = (what: string, settings: Settings, about: string): Variant => ({
  name: `ours: ${what}`,
  about,
  make: async () => {
    const { createPipeline } = await load();
    const made = createPipeline('bench', settings);
    return () => made.execute(work);
  },
});

/** Opens for good, as far as a benchmark can tell. */
const OPEN = { threshold: 1, openDuration: 86_400_000, maxOpenDuration: 86_400_000 };

const failing = (size: number): Variant => ({
  name: `ours: failing call, window ${size}`,
  about: `\`CircuitBreaker\` with a full count window of ${size}: one call that fails, after one success counted by hand so that it stays closed`,
  fails: true,
  make: async () => {
    const { CircuitBreaker } = await load();
    const breaker = new CircuitBreaker('bench', { window: 'count', size, failureRate: 0.9 });
    for (let i = 0; i < size; i++) {
      breaker.recordSuccess();
      breaker.recordFailure();
    }
    return () => {
      breaker.recordSuccess();
      return breaker.execute(failingWork);
    };
  },
});

export const WINDOWS = [10, 1_000, 100_000] as const;
export const BREAKERS = 10_000;
export const KEYS = 100_000;

const limiter = (keys: number): Variant => ({
  name: keys === 1 ? 'ours: rate limiter' : `ours: rate limiter, ${keys} keys`,
  about: `\`RateLimiter\`, ${keys === 1 ? 'one key' : `${keys} keys in turn`}: \`await take(key)\`, then the work`,
  make: async () => {
    const { RateLimiter } = await load();
    const made = new RateLimiter('bench', { limit: 1_000_000, interval: 1, maxKeys: keys });
    const names = Array.from({ length: keys }, (_, i) => `tenant-${i}`);
    let next = 0;
    const call = async () => {
      next = next + 1 === keys ? 0 : next + 1;
      await made.take(names[next]);
      return work();
    };
    for (let i = 0; i < keys; i++) await call();
    return call;
  },
});

export const ours: readonly Variant[] = [
  { name: 'bare call', about: 'the async function itself, awaited', make: async () => work },
  {
    name: 'ours: breaker',
    about: '`CircuitBreaker.execute`, consecutive window',
    make: async () => {
      const { CircuitBreaker } = await load();
      const breaker = new CircuitBreaker('bench', FOUR.breaker);
      return () => breaker.execute(work);
    },
  },
  pipeline('retry', { retry: FOUR.retry }, '`createPipeline` with nothing but `retry`'),
  pipeline('timeout', { timeout: TIMEOUT }, '`createPipeline` with nothing but `timeout`'),
  {
    name: 'ours: bulkhead',
    about: '`Bulkhead.execute`, 100 places',
    make: async () => {
      const { Bulkhead } = await load();
      const bulkhead = new Bulkhead('bench', FOUR.bulkhead);
      return () => bulkhead.execute(work);
    },
  },
  limiter(1),
  {
    name: 'ours: cache hit',
    about: '`createPipeline` with nothing but `cache`: a fresh answer of a known key',
    make: async () => {
      const { createPipeline } = await load();
      const made = createPipeline('bench', { cache: { ttl: 86_400_000 } });
      await made.execute(work, { cacheKey: 'key' });
      return () => made.execute(work, { cacheKey: 'key' });
    },
  },
  pipeline(
    'hedge, not firing',
    { hedge: { delay: TIMEOUT } },
    '`createPipeline` with nothing but `hedge`: the answer comes before its delay',
  ),
  pipeline('pipeline', FOUR, '`createPipeline` with breaker, retry, timeout and bulkhead'),
  {
    name: 'ours: refusal',
    about: '`CircuitBreaker.execute` while open',
    fails: true,
    make: async () => {
      const { CircuitBreaker } = await load();
      const breaker = new CircuitBreaker('bench', OPEN);
      breaker.recordFailure();
      return () => breaker.execute(work);
    },
  },
  {
    name: 'ours: refusal of the pipeline',
    about: 'the pipeline of four while its breaker is open',
    fails: true,
    make: async () => {
      const { createPipeline } = await load();
      const made = createPipeline('bench', { ...FOUR, breaker: OPEN });
      made.breaker?.recordFailure();
      return () => made.execute(work);
    },
  },
  ...WINDOWS.map(failing),
  {
    name: `ours: ${BREAKERS} breakers`,
    about: `${BREAKERS} breakers, called in turn`,
    make: async () => {
      const { CircuitBreaker } = await load();
      const breakers = Array.from(
        { length: BREAKERS },
        (_, i) => new CircuitBreaker(`bench-${i}`, FOUR.breaker),
      );
      let next = 0;
      return () => {
        next = next + 1 === BREAKERS ? 0 : next + 1;
        return breakers[next]?.execute(work);
      };
    },
  },
  limiter(KEYS),
];
