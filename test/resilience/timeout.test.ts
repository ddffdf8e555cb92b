import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/resilience/clock.ts';
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

  test('destroy ends the timer as soon as nobody needs it', async () => {
    const clock = new ManualClock();
    const queue = new ExpiryQueue(clock, 50);
    const left = new Member(clock);
    queue.add(left, clock.now());
    queue.remove(left);
    queue.destroy();
    expect(clock.pendingTimers).toBe(0);
    const waiting = new Member(clock);
    queue.add(waiting, clock.now());
    queue.destroy();
    await clock.advance(50);
    expect([waiting.expiredAt, clock.pendingTimers]).toEqual([clock.now(), 0]);
  });

  test('a member that adds another one as it expires leaves one timer, not two', async () => {
    const clock = new ManualClock();
    const queue = new ExpiryQueue(clock, 50);
    const third = new Member(clock);
    const second = new Member(clock);
    class First extends Member {
      override onExpire() {
        queue.add(third, clock.now());
      }
    }
    queue.add(new First(clock), clock.now());
    await clock.advance(20);
    queue.add(second, clock.now());
    await clock.advance(30);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(20);
    expect(second.expiredAt).toBe(clock.now());
    await clock.advance(30);
    expect([third.expiredAt, clock.pendingTimers]).toEqual([clock.now(), 0]);
  });

  test('what expires does not run in the async context of whoever armed the timer', async () => {
    const clock = new ManualClock();
    const request = new AsyncLocalStorage<string>();
    // The real clock keeps the context of `setTimer`; this one is made to.
    const timers: Clock = {
      now: () => clock.now(),
      wallTime: () => clock.wallTime(),
      setTimer: (delay, callback) => clock.setTimer(delay, AsyncResource.bind(callback)),
    };
    const queue = new ExpiryQueue(timers, 50);
    const seen: unknown[] = [];
    class Looking extends Member {
      override onExpire() {
        seen.push(request.getStore());
      }
    }
    request.run('one request', () => {
      const quick = new Member(clock);
      queue.add(quick, clock.now());
      queue.remove(quick);
    });
    request.run('another one', () => queue.add(new Looking(clock), clock.now()));
    await clock.advance(50);
    expect(seen).toEqual([undefined]);
  });
});
