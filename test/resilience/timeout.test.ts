import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Expirable, ExpiryQueue } from '../../src/resilience/timeout.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

class Member implements Expirable {
  expiresAt = 0;
  earlier: Expirable | undefined = undefined;
  later: Expirable | undefined = undefined;
  queued = false;
  expiredAt: number | undefined;
  readonly #clock: ManualClock;
  constructor(clock: ManualClock) {
    this.#clock = clock;
  }
  onExpire() {
    this.expiredAt = this.#clock.now();
  }
}

describe('ExpiryQueue', () => {
  test('each member that is not removed in time expires exactly at its time, with one timer', async () => {
    const script = fc.array(fc.record({ wait: fc.nat(40), remove: fc.option(fc.nat(20)) }), {
      maxLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(script, async (steps) => {
        const clock = new ManualClock();
        const queue = new ExpiryQueue(clock, 50);
        const members: { member: Member; addedAt: number; removedAt?: number }[] = [];
        for (const { wait, remove } of steps) {
          await clock.advance(wait);
          const victim = remove === null ? undefined : members[remove];
          if (victim) {
            queue.remove(victim.member);
            victim.removedAt ??= clock.now();
          }
          const member = new Member(clock);
          queue.add(member, clock.now());
          members.push({ member, addedAt: clock.now() });
          expect(clock.pendingTimers).toBe(1);
        }
        await clock.advance(200);
        for (const { member, addedAt, removedAt } of members) {
          const dueAt = addedAt + 50;
          const stays = removedAt === undefined || removedAt >= dueAt;
          expect(member.expiredAt).toBe(stays ? dueAt : undefined);
          expect([member.queued, member.earlier, member.later]).toEqual([
            false,
            undefined,
            undefined,
          ]);
        }
        expect(clock.pendingTimers).toBe(0);
      }),
    );
  });

  test('destroy ends the timer', () => {
    const clock = new ManualClock();
    const queue = new ExpiryQueue(clock, 50);
    queue.add(new Member(clock), clock.now());
    queue.destroy();
    expect(clock.pendingTimers).toBe(0);
  });
});
