/**
 * @module
 * Trying again: when, how often, and when not.
 */
import { invalidParams, reset, status } from '../errors.ts';
import { type Case, controlled, finding, flaky, tell, times } from '../lab.ts';

const THIRTY_DAYS = 30 * 86_400;

export const retryCases: readonly Case[] = [
  {
    id: 'L7',
    title: 'no wait is longer than the cap, however many attempts',
    async run(lab) {
      const maxDelay = 5_000;
      const waits = await lab.backoff({ delay: 1_000, factor: 2, maxDelay, attempts: 1_100 });
      const within = waits.filter((wait) => wait >= 0 && wait <= maxDelay).length;
      return finding(within === 1_100, `${within} of ${waits.length} waits within the cap`);
    },
  },
  {
    id: 'L13',
    title: 'abort while the work runs ends the call at once, without another wait',
    async run(lab) {
      const stack = lab.stack({ cancel: true, retry: { retries: 3, delay: 10_000 } });
      const controller = new AbortController();
      const { work, started, reject } = controlled();
      const call = await lab.call(stack, work, { signal: controller.signal });
      await lab.advance(1_000);
      controller.abort('stop');
      reject(reset());
      await lab.advance(60_000);
      return finding(
        call.ended === 'failed' && call.at === 1_000 && started() === 1,
        `aborted at 1000 ms; ${tell(call)} at ${call.at} ms, ${times(started(), 'call')}`,
      );
    },
  },
  {
    id: 'L15',
    title: "the caller's abort is final, even if its reason looks like a timeout",
    async run(lab) {
      const stack = lab.stack({ cancel: true, retry: { retries: 3, delay: 0 } });
      const controller = new AbortController();
      const { signal } = controller;
      let calls = 0;
      const call = await lab.call(
        stack,
        () => {
          calls++;
          return new Promise((_, reject) => {
            if (signal.aborted) reject(signal.reason);
            signal.addEventListener('abort', () => reject(signal.reason));
          });
        },
        { signal },
      );
      await lab.advance(1);
      controller.abort(new DOMException('The operation timed out', 'TimeoutError'));
      await lab.advance(60_000);
      return finding(
        calls === 1 && call.error === signal.reason && call.at === 1,
        `${times(calls, 'call')}; ${tell(call)} at ${call.at} ms`,
      );
    },
  },
  {
    id: 'L16',
    title: 'the total limit counts all attempts, and none starts after it',
    async run(lab) {
      const stack = lab.stack({ deadline: 100, retry: { retries: 3, delay: 1 } });
      const startedAt: number[] = [];
      const call = await lab.call(stack, () => {
        startedAt.push(lab.elapsed);
        return new Promise((_, reject) => setTimeout(() => reject(reset()), 95));
      });
      await lab.advance(60_000);
      const late = startedAt.filter((at) => at > 100).length;
      return finding(
        call.ended === 'failed' && call.at <= 100 && late === 0,
        `settled at ${call.at} ms; ${times(late, 'attempt')} after that`,
      );
    },
  },
  {
    id: 'L17',
    title: 'Retry-After can be ignored',
    async run(lab) {
      const stack = lab.stack({ retry: { retries: 1, delay: 100, retryAfter: false } });
      const { work, gaps } = flaky(lab, 1, () => status(429, 60));
      await lab.call(stack, work);
      await lab.advance(120_000);
      return finding(gaps().join() === '100', `waited ${gaps().join()} ms`);
    },
  },
  {
    id: 'L18',
    title: 'an upstream that never answers is bounded by attempts and deadline',
    async run(lab) {
      const stack = lab.stack({ deadline: 1_000, timeout: 100, retry: { retries: 3, delay: 1 } });
      const { work, started } = controlled();
      const call = await lab.call(stack, work);
      await lab.advance(3_600_000);
      return finding(
        call.ended === 'failed' && call.at <= 1_000 && started() <= 4,
        `${tell(call)} at ${call.at} ms after ${times(started(), 'attempt')}`,
      );
    },
  },
  {
    id: 'L32',
    title: 'the exponent is the number of backoffs taken',
    async run(lab) {
      const stack = lab.stack({ retry: { retries: 3, delay: 100 } });
      const { work, gaps } = flaky(lab, 3);
      await lab.call(stack, work);
      await lab.advance(60_000);
      return finding(gaps().join() === '100,200,400', `waited ${gaps().join(', ')} ms`);
    },
  },
  {
    id: 'L33',
    title: 'a 429 told inside a result is retried',
    async run(lab) {
      const failed = {
        isError: true,
        content: [{ type: 'text', text: '429: rate limit reached' }],
      };
      const failedResult = (result: unknown) => result === failed;
      const stack = lab.stack({ failedResult, retry: { retries: 2, delay: 100 } });
      let calls = 0;
      const call = await lab.call(stack, async () => (++calls === 1 ? failed : 'done'));
      await lab.advance(60_000);
      return finding(
        calls === 2 && call.value === 'done',
        `${times(calls, 'call')}; ${tell(call)}`,
      );
    },
  },
  {
    id: 'L34',
    title: 'Retry-After is waited for, or the call ends if that is too long',
    async run(lab) {
      const retry = { retries: 2, delay: 100, retryAfter: true };
      const { work, gaps } = flaky(lab, 1, () => status(429, 20));
      await lab.call(lab.stack({ retry }), work);
      await lab.advance(60_000);
      const long = flaky(lab, 1, () => status(429, 600));
      const call = await lab.call(lab.stack({ retry }), long.work);
      await lab.advance(3_600_000);
      const gap = gaps()[0] ?? 0;
      const waited = long.gaps()[0] ?? Number.POSITIVE_INFINITY;
      return finding(
        gap >= 20_000 && waited >= 600_000,
        `20 s: waited ${Math.floor(gap / 1_000)} s; 600 s: ${waited < Number.POSITIVE_INFINITY ? `waited ${Math.floor(waited / 1_000)} s` : `${tell(call)} at once`}`,
      );
    },
  },
  {
    id: 'L35',
    title: 'a write whose answer got lost is not repeated; a read is',
    async run(lab) {
      const stack = lab.stack({ idempotency: true, retry: { retries: 2, delay: 100 } });
      const read = flaky(lab, 1);
      await lab.call(stack, read.work);
      const write = flaky(lab, 1);
      const call = await lab.call(stack, write.work, { idempotent: false });
      await lab.advance(60_000);
      return finding(
        read.calledAt.length === 2 && write.calledAt.length === 1,
        `read: ${times(read.calledAt.length, 'call')}; write: ${times(write.calledAt.length, 'call')}, ${tell(call)}`,
      );
    },
  },
  {
    id: 'L38',
    title: 'an exhausted budget does not fail the call that runs',
    async run(lab) {
      const stack = lab.stack({
        hedge: { delay: 100 },
        retry: { retries: 1, delay: 1, budget: 0 },
      });
      const { work, started, resolve } = controlled();
      const call = await lab.call(stack, work);
      await lab.advance(500);
      resolve('slow');
      await lab.advance(1);
      return finding(
        call.value === 'slow' && started() === 1,
        `${tell(call)}; ${times(started(), 'call')}, no hedge`,
      );
    },
  },
  {
    id: 'M12',
    title: 'abort ends the wait before a retry, and no attempt follows',
    async run(lab) {
      const stack = lab.stack({ cancel: true, retry: { retries: 3, delay: 1_500 } });
      const controller = new AbortController();
      const { work, calledAt } = flaky(lab, 9);
      const call = await lab.call(stack, work, { signal: controller.signal });
      await lab.advance(30);
      controller.abort('stop');
      await lab.advance(60_000);
      return finding(
        call.at === 30 && calledAt.length === 1,
        `aborted at 30 ms; settled at ${call.at} ms, ${times(calledAt.length, 'call')}`,
      );
    },
  },
  {
    id: 'M17',
    title: 'the exponent of the backoff is honoured, without jitter too',
    async run(lab) {
      const stack = lab.stack({ retry: { retries: 3, delay: 100, factor: 3 } });
      const { work, gaps } = flaky(lab, 3);
      await lab.call(stack, work);
      await lab.advance(60_000);
      return finding(gaps().join() === '100,300,900', `exponent 3: waited ${gaps().join(', ')} ms`);
    },
  },
  {
    id: 'M19',
    title: 'a Retry-After of 30 days neither overflows nor is shortened',
    async run(lab) {
      const stack = lab.stack({ retry: { retries: 3, delay: 100, retryAfter: true } });
      const { work, calledAt } = flaky(lab, 9, () => status(429, THIRTY_DAYS));
      const call = await lab.call(stack, work);
      await lab.advance(60_000);
      return finding(
        calledAt.length === 1,
        `${times(calledAt.length, 'call')} in a minute; ${call.ended === 'pending' ? 'waits' : tell(call)}`,
      );
    },
  },
  {
    id: 'M23',
    title: "the caller's faults are not retried, and waits are spread",
    async run(lab) {
      const settings = { retry: { retries: 3, delay: 100, jitter: 'own' } } as const;
      const fault = flaky(lab, 9, invalidParams);
      await lab.call(lab.stack(settings), fault.work);
      await lab.advance(60_000);
      const runs = [flaky(lab, 3), flaky(lab, 3), flaky(lab, 3)];
      for (const { work } of runs) {
        await lab.call(lab.stack(settings), work);
        await lab.advance(60_000);
      }
      const differ = new Set(runs.map(({ gaps }) => gaps().join())).size > 1;
      return finding(
        fault.calledAt.length === 1 && differ,
        `-32602: ${times(fault.calledAt.length, 'call')}; waits ${differ ? 'differ' : 'are the same'} from call to call`,
      );
    },
  },
];
