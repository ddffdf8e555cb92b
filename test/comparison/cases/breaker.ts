/**
 * @module
 * Opening, half-open and recovery.
 */
import { brief, reset, status } from '../errors.ts';
import { type Case, controlled, finding, flaky, tell, times, type Watched } from '../lab.ts';

const OPEN_FOR = 1_000;
/** Three failures open it. */
const breaker = { minimumCalls: 3, openFor: OPEN_FOR } as const;

const notFound = () => status(404);

/** Open, and waited until a probe is due. */
const due = { filter: true, breaker } as const;

export const breakerCases: readonly Case[] = [
  {
    id: 'L1',
    title: 'a probe decides half-open, whatever the volume threshold',
    async run(lab) {
      const stack = lab.stack({ breaker: { minimumCalls: 5, openFor: OPEN_FOR } });
      await lab.fail(stack, 5);
      await lab.advance(OPEN_FOR + 10_000);
      await lab.fail(stack, 1);
      const after = stack.state();
      const early = await lab.letsThrough(stack);
      await lab.advance(OPEN_FOR);
      const probe = await lab.letsThrough(stack);
      return finding(
        after === 'open' && !early && probe && stack.state() === 'closed',
        `failed probe: ${after}; good probe: ${stack.state()}`,
      );
    },
  },
  {
    id: 'L2',
    title: 'after a probe with an ignored error the next call may probe',
    async run(lab) {
      const stack = lab.stack(due);
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      await lab.fail(stack, 1, notFound);
      const next = await lab.letsThrough(stack);
      return finding(next, `probe ended with 404; next call ${next ? 'ran' : 'was refused'}`);
    },
  },
  {
    id: 'L4',
    title: 'failures at the same time open it once, and it recovers',
    async run(lab) {
      const stack = lab.stack({ breaker: { minimumCalls: 5, openFor: OPEN_FOR } });
      const { work, reject } = controlled();
      for (let i = 0; i < 6; i++) await lab.call(stack, work);
      reject(reset());
      await lab.advance(0);
      const openings = stack.openings();
      await lab.advance(OPEN_FOR);
      const probe = await lab.letsThrough(stack);
      return finding(
        openings === 1 && probe && stack.state() === 'closed',
        `${times(openings, 'opening')}; after the open time ${stack.state()}`,
      );
    },
  },
  {
    id: 'L8',
    title: 'a probe that ends in an unhandled error does not block half-open',
    async run(lab) {
      const stack = lab.stack(due);
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      await lab.fail(stack, 1, () => new TypeError('x is not a function'));
      const next = await lab.letsThrough(stack);
      return finding(next, `probe ended with TypeError; next call ${next ? 'ran' : 'was refused'}`);
    },
  },
  {
    id: 'L9',
    title: 'one probe at a time while it hangs, and one transition when it fails',
    async run(lab) {
      const stack = lab.stack({ breaker: { minimumCalls: 3, openFor: 100 } });
      await lab.fail(stack, 3);
      await lab.advance(100);
      const { work, started, reject } = controlled();
      const calls = [];
      for (let i = 0; i < 10; i++) calls.push(await lab.call(stack, work));
      const probes = started();
      const waiting = calls.filter(({ ended }) => ended === 'pending').length - probes;
      await lab.advance(50);
      reject(reset());
      await lab.advance(10);
      return finding(
        probes === 1 && started() === 1 && stack.openings() === 2,
        `of 10 calls ${probes} ran, ${waiting} waited for it, ${10 - probes - waiting} were refused at once; opened ${stack.openings()} times in all`,
      );
    },
  },
  {
    id: 'L10',
    title: 'probes that never report are bounded by what the library has for it',
    async run(lab) {
      const stack = lab.stack({
        breaker: { ...breaker, probes: 2, lease: 1_000 },
        timeout: 1_000,
      });
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      const hung = controlled();
      await lab.call(stack, hung.work);
      await lab.call(stack, hung.work);
      await lab.advance(10_000);
      const next = await lab.letsThrough(stack);
      return finding(
        next,
        `${times(hung.started(), 'probe')} hung; 10 s later a call ${next ? 'ran' : 'was refused'}`,
      );
    },
  },
  {
    id: 'L26',
    title: 'business errors in results do not shut out the other calls',
    async run(lab) {
      const stack = lab.stack({ breaker });
      const result = { isError: true, content: [{ type: 'text', text: 'not found' }] };
      for (let i = 0; i < 3; i++) await lab.call(stack, async () => result);
      const next = await lab.letsThrough(stack);
      return finding(
        next,
        `after 3 such results ${stack.state()}; next call ${next ? 'ran' : 'was refused'}`,
      );
    },
  },
  {
    id: 'L28',
    title: 'it recovers by time alone',
    async run(lab) {
      const stack = lab.stack({ breaker });
      await lab.fail(stack, 3);
      const early = await lab.letsThrough(stack);
      await lab.advance(OPEN_FOR);
      const later = await lab.letsThrough(stack);
      return finding(
        !early && later && stack.state() === 'closed',
        `at once ${early ? 'let through' : 'refused'}; after the open time ${stack.state()}`,
      );
    },
  },
  {
    id: 'L29',
    title: 'a 401 during the probe settles its permit',
    async run(lab) {
      const stack = lab.stack(due);
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      const { work } = flaky(lab, 1, () => status(401));
      await lab.call(stack, work);
      const again = await lab.call(stack, work);
      return finding(
        again.ended === 'answered' && stack.state() === 'closed',
        `after the 401 the next call ${tell(again)}; ${stack.state()}`,
      );
    },
  },
  {
    id: 'L31',
    title: 'the wait before the next try grows until a recovery has proved useful, up to its cap',
    async run(lab) {
      const stack = lab.stack({
        breaker: { ...breaker, successes: 2, openForAtMost: 4_000 },
      });
      await lab.fail(stack, 3);
      const waits: number[] = [];
      for (let round = 0; round < 4; round++) {
        const since = lab.elapsed;
        while (lab.elapsed - since < 60_000 && !(await lab.letsThrough(stack))) {
          await lab.advance(500);
        }
        waits.push(lab.elapsed - since);
        // It took one call, and then broke again.
        await lab.fail(stack, 1);
      }
      return finding(waits.join() === '1000,2000,4000,4000', `waited ${waits.join(', ')} ms`);
    },
  },
  {
    id: 'M1',
    title: 'restored from a snapshot, it stays open for the rest of its open time',
    async run(lab) {
      const settings = { minimumCalls: 3, openFor: 500 };
      const stack = lab.stack({ breaker: settings });
      await lab.advance(706);
      await lab.fail(stack, 3);
      const restore: unknown = JSON.parse(JSON.stringify(await stack.snapshot()));
      const restored = lab.stack({ breaker: { ...settings, restore } });
      const early = await lab.letsThrough(restored);
      await lab.advance(600);
      const later = await lab.letsThrough(restored);
      return finding(
        !early && later,
        `opened 0 ms ago: a call ${early ? 'ran' : 'was refused'}; after the open time it ${later ? 'ran' : 'was refused'}`,
      );
    },
  },
  {
    id: 'M2',
    title: 'a late success of the closed era decides nothing in half-open',
    async run(lab) {
      const stack = lab.stack({ breaker });
      const slow = controlled();
      await lab.call(stack, slow.work);
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      const probe = controlled();
      await lab.call(stack, probe.work);
      slow.resolve();
      await lab.advance(1);
      const late = stack.state();
      probe.resolve();
      await lab.advance(1);
      return finding(
        late === 'half-open' && stack.state() === 'closed',
        `after the late success ${late}; after the probe's success ${stack.state()}`,
      );
    },
  },
  {
    id: 'M4',
    title: 'a hung probe without a time limit does not keep it shut for ever',
    async run(lab) {
      const stack = lab.stack({ breaker: { ...breaker, lease: 60_000 } });
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      await lab.call(stack, controlled().work);
      await lab.advance(600_000);
      let ran = 0;
      let last: Watched | undefined;
      for (let i = 0; i < 10; i++) {
        last = await lab.call(stack, async () => void ran++);
        await lab.advance(500);
      }
      const others = last?.ended === 'pending' ? 'wait for it' : `fail with ${brief(last?.error)}`;
      return finding(
        ran >= 5 && stack.state() === 'closed',
        `ten minutes later ${ran} of 10 calls run${ran === 10 ? '' : `, the others ${others}`}; ${stack.state()}`,
      );
    },
  },
  {
    id: 'M8',
    title: 'an ignored error in half-open decides nothing',
    async run(lab) {
      const stack = lab.stack(due);
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      await lab.fail(stack, 1, () => status(400));
      const after = stack.state();
      await lab.letsThrough(stack);
      return finding(
        after === 'half-open' && stack.state() === 'closed',
        `after a 400 ${after}; after a success ${stack.state()}`,
      );
    },
  },
  {
    id: 'M14',
    title: 'a late failure of the closed era does not re-open half-open',
    async run(lab) {
      const stack = lab.stack({ breaker });
      const slow = controlled();
      await lab.call(stack, slow.work);
      await lab.fail(stack, 3);
      await lab.advance(OPEN_FOR);
      const probe = controlled();
      await lab.call(stack, probe.work);
      slow.reject(reset());
      await lab.advance(1);
      const late = stack.state();
      probe.resolve();
      await lab.advance(1);
      return finding(
        late === 'half-open' && stack.state() === 'closed',
        `after the late failure ${late}; after the probe's success ${stack.state()}`,
      );
    },
  },
];
