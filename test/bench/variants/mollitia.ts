/**
 * @module
 * mollitia: a circuit with the modules that are the nearest to ours.
 */
import type * as Mollitia from 'mollitia';
import { failingWork, TIMEOUT, type Variant, work } from '../variant.ts';
import { FOUR } from './ours.ts';

const make =
  (modules: (library: typeof Mollitia) => Mollitia.Module[], func: () => Promise<number> = work) =>
  async () => {
    const library = await import('mollitia');
    const circuit = new library.Circuit({ func, options: { modules: modules(library) } });
    return () => circuit.execute();
  };

const breaker = (library: typeof Mollitia, options: Mollitia.SlidingWindowBreakerOptions = {}) =>
  new library.SlidingCountBreaker({ slidingWindowSize: 100, ...options });
const retry = (library: typeof Mollitia) =>
  new library.Retry({ attempts: FOUR.retry.maxRetries, interval: FOUR.retry.baseDelay });
const timeout = (library: typeof Mollitia) => new library.Timeout({ delay: TIMEOUT });
const bulkhead = (library: typeof Mollitia) =>
  new library.Bulkhead({
    concurrentSize: FOUR.bulkhead.limit,
    queueSize: FOUR.bulkhead.queue,
  });

const failing = (size: number): Variant => ({
  name: `mollitia: failing and succeeding call, window ${size}`,
  about: `\`SlidingCountBreaker\` with a full window of ${size}, above its failure rate never: a call that fails and one that succeeds`,
  make: async () => {
    const library = await import('mollitia');
    let fail = false;
    const circuit = new library.Circuit({
      func: () => {
        fail = !fail;
        return fail ? failingWork() : work();
      },
      options: {
        modules: [breaker(library, { slidingWindowSize: size, failureRateThreshold: 90 })],
      },
    });
    const pair = async () => {
      await circuit.execute().catch(() => {});
      await circuit.execute();
    };
    for (let i = 0; i < size; i++) await pair();
    return pair;
  },
});

export const mollitia: readonly Variant[] = [
  {
    name: 'mollitia: breaker',
    about: '`SlidingCountBreaker`, window of 100; it has no consecutive one',
    make: make((library) => [breaker(library)]),
  },
  { name: 'mollitia: retry', about: '`Retry`', make: make((library) => [retry(library)]) },
  { name: 'mollitia: timeout', about: '`Timeout`', make: make((library) => [timeout(library)]) },
  {
    name: 'mollitia: bulkhead',
    about: '`Bulkhead`, 100 places',
    make: make((library) => [bulkhead(library)]),
  },
  {
    name: 'mollitia: circuit of the same four',
    about: '`Circuit` with `Bulkhead`, `SlidingCountBreaker`, `Retry`, `Timeout`',
    make: make((library) => [
      timeout(library),
      retry(library),
      breaker(library),
      bulkhead(library),
    ]),
  },
  {
    name: 'mollitia: refusal',
    about: '`SlidingCountBreaker` while open',
    fails: true,
    make: make((library) => [
      breaker(library, {
        state: library.BreakerState.OPENED,
        openStateDelay: 86_400_000,
      }),
    ]),
  },
  // A window of 100 000 would take minutes to fill: each call walks through all of it.
  failing(10),
  failing(1_000),
];
