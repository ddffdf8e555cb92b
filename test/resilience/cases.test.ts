import { describe, expect } from 'vitest';
import { CircuitBreaker } from '../../src/resilience/circuit-breaker.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const down = () => Promise.reject(Object.assign(new Error('down'), { code: 'ECONNRESET' }));
const up = () => Promise.resolve('up');

describe('public reports', () => {
  verifies('L31', async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker(
      'flapping',
      {
        threshold: 1,
        successThreshold: 2,
        openDuration: 1_000,
        openBackoff: 2,
        maxOpenDuration: 4_000,
      },
      { clock },
    );
    const waits: (number | undefined)[] = [];
    const fail = async () => {
      await breaker.execute(down).catch(() => {});
      waits.push(breaker.retryAfter);
    };
    await fail();
    for (let flap = 0; flap < 3; flap++) {
      await clock.advance(4_000);
      // It takes one call, as a server does that accepts a stream and closes it at once.
      await breaker.execute(up);
      expect(breaker.state).toBe('half-open');
      await fail();
    }
    expect(waits).toEqual([1, 2, 4, 4]);
    await clock.advance(4_000);
    await breaker.execute(up);
    await breaker.execute(up);
    expect(breaker.state).toBe('closed');
    await fail();
    expect(waits.at(-1)).toBe(1);
  });
});
