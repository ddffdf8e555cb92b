/**
 * @module
 * Time limits, calls at one time, calls in a period, and calls that become one.
 */
import { reset, waitTold } from '../errors.ts';
import { type Case, controlled, finding, tell, times } from '../lab.ts';
import type { Work } from '../spec.ts';

export const limitCases: readonly Case[] = [
  {
    id: 'L11',
    title: 'whoever would wait longer than the limit is refused at once, and told how long',
    async run(lab) {
      const stack = lab.stack({ rateLimit: { limit: 10, interval: 1_000, maxWait: 1_000 } });
      let ran = 0;
      const calls = [];
      for (let i = 0; i < 200; i++) calls.push(await lab.call(stack, async () => void ran++));
      const refused = calls.filter(({ ended }) => ended === 'failed');
      const told = refused.filter(({ error }) => (waitTold(error) ?? 0) > 0).length;
      await lab.advance(1_000);
      return finding(
        ran === 20 && refused.length === 180 && told === 180,
        `of 200 calls ${ran} ran within the wait, ${refused.length} were refused at once, ${told} of them told how long to wait`,
      );
    },
  },
  {
    id: 'L20',
    title: 'an exhausted limit is enforced',
    async run(lab) {
      const stack = lab.stack({ rateLimit: { limit: 2, interval: 60_000 } });
      let ran = 0;
      for (let i = 0; i < 3; i++) await lab.call(stack, async () => void ran++);
      return finding(ran === 2, `${ran} of 3 calls ran, 2 allowed`);
    },
  },
  {
    id: 'L36',
    title: 'an adaptive limit counts calls from their start',
    async run(lab) {
      const stack = lab.stack({ bulkhead: { limit: 10, adaptive: true } });
      const { work, started } = controlled();
      const calls = [];
      for (let i = 0; i < 30; i++) calls.push(await lab.call(stack, work));
      const refused = calls.filter(({ ended }) => ended === 'failed').length;
      return finding(
        started() === 10 && refused === 20,
        `of 30 slow calls ${started()} started, ${refused} were refused before any had ended`,
      );
    },
  },
  {
    id: 'M3',
    title: 'refusals of the own bulkhead neither open the breaker nor hide real failures',
    async run(lab) {
      const bulkhead = { limit: 1 };
      const first = lab.stack({ bulkhead, breaker: { minimumCalls: 2, openFor: 1_000 } });
      const running = controlled();
      await lab.call(first, running.work);
      for (let i = 0; i < 2; i++) await lab.call(first, running.work);
      running.resolve();
      await lab.advance(0);
      const next = await lab.letsThrough(first);

      const second = lab.stack({ bulkhead, breaker: { minimumCalls: 5, openFor: 1_000 } });
      for (let round = 0; round < 5; round++) {
        const real = controlled();
        await lab.call(second, real.work);
        for (let i = 0; i < 9; i++) await lab.call(second, real.work);
        real.reject(reset());
        await lab.advance(0);
      }
      return finding(
        next && second.state() === 'open',
        `after 2 refusals the next call ${next ? 'ran' : 'was refused'}; 5 of 5 real calls failed beside 45 refusals: ${second.state()}`,
      );
    },
  },
  {
    id: 'M5',
    title: 'a plain function that returns undefined succeeds',
    async run(lab) {
      const stack = lab.stack({ syncWork: true, breaker: { minimumCalls: 3, openFor: 1_000 } });
      const call = await lab.call(stack, () => undefined);
      return finding(call.ended === 'answered', tell(call));
    },
  },
  {
    id: 'M6',
    title: 'one timeout aborts neither its siblings nor later calls',
    async run(lab) {
      const breaker = { minimumCalls: 10, openFor: 1_000 };
      const stack = lab.stack({ abortsWork: true, timeout: 100, breaker });
      const hung = controlled();
      const healthy = controlled();
      const later = controlled();
      await lab.call(stack, hung.work);
      await lab.advance(50);
      await lab.call(stack, healthy.work);
      await lab.advance(60);
      await lab.call(stack, later.work);
      const [own, sibling, next] = [hung, healthy, later].map(({ signals: [signal] }) =>
        signal?.aborted ? 'aborted' : 'not aborted',
      );
      return finding(
        own === 'aborted' && sibling === 'not aborted' && next === 'not aborted',
        `timed-out call ${own}, healthy sibling ${sibling}, next call ${next} while ${stack.state()}`,
      );
    },
  },
  {
    id: 'M9',
    title: 'an error is shared by those in flight and reaches nobody who asks later',
    async run(lab) {
      const stack = lab.stack({ coalesce: true });
      const failing = controlled();
      const pair = [
        await lab.call(stack, failing.work, { key: 'x' }),
        await lab.call(stack, failing.work, { key: 'x' }),
      ];
      failing.reject(reset());
      await lab.advance(1);
      const later = await lab.call(stack, async () => 'recovered', { key: 'x' });
      return finding(
        failing.started() === 1 &&
          pair.every((c) => c.ended === 'failed') &&
          later.value === 'recovered',
        `${times(failing.started(), 'call')} for two callers; 1 ms later another one ${tell(later)}`,
      );
    },
  },
  {
    id: 'M11',
    title: "a failing call's cost does not grow with the window",
    realTime: true,
    async run(lab) {
      const sizes = [100, 6_000];
      const stacks = sizes.map((window) =>
        lab.stack({ breaker: { minimumCalls: 100, failureRate: 0.99, openFor: 1_000, window } }),
      );
      for (const [index, stack] of stacks.entries()) {
        for (let i = 0; i < (sizes[index] ?? 0); i++) await stack.run(async () => 'ok', {});
      }
      const error = reset();
      const fail = async () => {
        throw error;
      };
      let ratio = Number.POSITIVE_INFINITY;
      // Noise only adds: the lowest of three is nearest to what the code itself costs.
      for (let batch = 0; batch < 3; batch++) {
        const spent: number[][] = sizes.map(() => []);
        // Alternating, so that whatever else the machine does hits both alike.
        for (let round = 0; round < 21; round++) {
          for (const [index, stack] of stacks.entries()) {
            const began = performance.now();
            await stack.run(fail, {}).catch(() => {});
            spent[index]?.push(performance.now() - began);
          }
        }
        const [small = 1, large = 1] = spent.map((list) => list.sort((a, b) => a - b)[10]);
        ratio = Math.min(ratio, large / small);
      }
      const same = ratio < 3;
      return finding(
        same,
        `with 60 times the samples it costs ${same ? 'about the same' : 'many times as much'}`,
      );
    },
  },
  {
    id: 'M16',
    title: "a caller's abort is not reported as a timeout, whether the work listens or not",
    async run(lab) {
      const stack = lab.stack({ cancel: true, abortsWork: true, timeout: 5_000 });
      const controller = new AbortController();
      const { signal } = controller;
      const deaf = await lab.call(stack, controlled().work, { signal });
      const listening: Work = ({ signal: given }) =>
        new Promise((_, reject) => {
          given?.addEventListener('abort', () => reject(given.reason));
        });
      const polite = await lab.call(stack, listening, { signal });
      await lab.advance(31);
      controller.abort(new Error('the user pressed stop'));
      await lab.advance(10_000);
      return finding(
        [deaf, polite].every((call) => call.error === signal.reason && call.at === 31),
        `aborted at 31 ms; work that listens ${tell(polite)}, work that does not ${tell(deaf)}`,
      );
    },
  },
  {
    id: 'M22',
    title: 'work that rejects gives its place back',
    async run(lab) {
      const stack = lab.stack({ bulkhead: { limit: 1 } });
      await lab.fail(stack, 5);
      const next = await lab.letsThrough(stack);
      return finding(
        next,
        `after 5 rejections with 1 place the next call ${next ? 'ran' : 'was refused'}`,
      );
    },
  },
];
