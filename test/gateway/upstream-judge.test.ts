import { describe, expect, test } from 'vitest';
import { judge, type Situation } from '../../src/gateway/upstream-judge.ts';

const live = { connection: {}, trying: false };
const trying = { connection: undefined, trying: true };
const waiting = { connection: undefined, trying: false };
const well: Situation = {
  channels: [live],
  gate: { closed: false, failures: 0 },
  breaker: 'closed',
  discoveryFailed: undefined,
  unusedAndWell: false,
};
const closed = { closed: true, failures: 1 };

describe('judge', () => {
  test.for<[string, Partial<Situation>, ReturnType<typeof judge>]>([
    ['connected', {}, ['ready']],
    ['connected, without a breaker', { breaker: undefined }, ['ready']],
    ['the first try runs', { channels: [trying] }, ['connecting']],
    ['a try runs after a failure', { channels: [waiting, trying], gate: closed }, ['connecting']],
    ['the next try waits', { channels: [waiting], gate: closed }, ['down']],
    ['nobody has come yet', { channels: [] }, ['connecting']],
    ['the last client has left', { channels: [], unusedAndWell: true }, ['ready']],
    [
      'that client left one that is down',
      { channels: [], gate: closed, unusedAndWell: true },
      ['down'],
    ],
    ['its breaker has opened', { breaker: 'open' }, ['degraded', 'its circuit breaker is open']],
    [
      'a list did not come',
      { discoveryFailed: 'tools/list failed' },
      ['degraded', 'tools/list failed'],
    ],
    ['back a moment ago', { gate: { closed: false, failures: 2 } }, ['degraded']],
    [
      'one of two is lost',
      { channels: [live, waiting] },
      ['degraded', '1 of 2 sessions have no connection'],
    ],
    ['one of two connects', { channels: [live, trying] }, ['ready']],
  ])('%s', ([, situation, verdict]) => {
    expect(judge({ ...well, ...situation })).toEqual(verdict);
  });
});
