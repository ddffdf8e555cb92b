import { expect, test } from 'vitest';
import { Deadline } from '../../src/resilience/deadline.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

test('a deadline that is no time is refused, for it would never pass and hide all others', () => {
  const clock = new ManualClock();
  expect(() => Deadline.after(Number.NaN, clock)).toThrow('Deadline: at must be a number, got NaN');
  expect(Deadline.after(Number.POSITIVE_INFINITY, clock).expired).toBe(false);
});
