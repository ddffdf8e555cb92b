/**
 * @module
 * opossum: one object that is breaker, time limit and limit of concurrent calls.
 */
import type CircuitBreaker from 'opossum';
import { failingWork, TIMEOUT, type Variant, work } from '../variant.ts';
import { FOUR } from './ours.ts';

const QUIET = {
  timeout: false,
  rollingPercentilesEnabled: false,
  enableSnapshots: false,
} satisfies CircuitBreaker.Options;

const breaker = (what: string, about: string, options: CircuitBreaker.Options): Variant => ({
  name: `opossum: ${what}`,
  about,
  make: async () => {
    const { default: Breaker } = await import('opossum');
    const made = new Breaker(work, options);
    return () => made.fire();
  },
});

export const opossum: readonly Variant[] = [
  breaker('breaker', 'no time limit, no percentiles, no snapshots', QUIET),
  breaker('breaker with percentiles', 'no time limit; percentiles are its default', {
    timeout: false,
  }),
  breaker('breaker, timeout and capacity', 'three of the four in one object; it has no retry', {
    ...QUIET,
    timeout: TIMEOUT,
    capacity: FOUR.bulkhead.limit,
  }),
  {
    name: 'opossum: refusal',
    about: 'while open',
    fails: true,
    make: async () => {
      const { default: Breaker } = await import('opossum');
      const made = new Breaker(work, { ...QUIET, resetTimeout: 2 ** 31 - 1 });
      made.open();
      return () => made.fire();
    },
  },
  {
    name: 'opossum: failing call',
    about: 'rolling counts of 10 s in 10 buckets, its default; kept closed by a volume threshold',
    fails: true,
    make: async () => {
      const { default: Breaker } = await import('opossum');
      const made = new Breaker(failingWork, {
        ...QUIET,
        volumeThreshold: Number.MAX_SAFE_INTEGER,
      });
      return () => made.fire();
    },
  },
];
