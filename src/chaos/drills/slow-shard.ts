/**
 * @module
 * The founding incident: a tool over a pool of 50 connections, 20 ms a query, one shard of the
 * store stalls to 5 s, and agents give up and repeat. Run without protection and with it at the
 * same time, and beside both a server to which nothing happens: it shows what the machine itself
 * did meanwhile.
 */
import { sleep } from '../../resilience/clock.ts';
import { ATTR, EVENT } from '../../telemetry/signals.ts';
import {
  type Cleanup,
  conclude,
  type DrillEnvironment,
  type RunnableDrill,
} from '../drill-environment.ts';
import { percentile } from '../drill-figures.ts';
import { type Sink, startSink } from '../drill-sink.ts';
import type { DrillResult } from '../drill-verdict.ts';
import { KNOWLEDGE_POLICY } from './knowledge-policy.ts';
import { RATE, type Side, startSide } from './knowledge-run.ts';
import { type KnowledgeTool, SHARDS } from './knowledge-server.ts';
import { QUERY_TIME } from './knowledge-store.ts';
import { figuresOf, type Times, unsteady } from './slow-shard-figures.ts';
import { expectations, type ServerTimes, table } from './slow-shard-verdict.ts';

const HEALTHY: KnowledgeTool = 'get_document';

/** Seconds of each part. */
const STEADY = 3;
const STALL = 4;
const RECOVERY = 3.5;

/** How often the steady state is tried: a machine that is busy may not be a little later. */
const TRIES = 5;

/** Seconds of quiet after a try that failed: agents that repeat would keep the load up. */
const QUIET = 2;

/** Longest p99 of the steady state, in seconds: ten times a query. */
const STEADY_P99 = (10 * QUERY_TIME) / 1_000;

/** Longest p99 of the undisturbed server: beyond, timeouts would be the machine's doing. */
const UNDISTURBED_P99 = KNOWLEDGE_POLICY.search_knowledge.timeout / 1_000;

const callsSince = (sides: readonly Side[], since: number) =>
  sides.flatMap(({ calls }) => calls.filter(({ at }) => at >= since));

/**
 * Waits for three seconds of steady state, and returns when they began, in milliseconds since the
 * Unix epoch. Nothing has been broken by then, so waiting hides nothing.
 *
 * @throws Error when there are none
 */
const steadyState = async (
  sides: readonly Side[],
  { clock, signal, say }: DrillEnvironment,
): Promise<number> => {
  for (let attempt = 1; ; attempt += 1) {
    const since = clock.wallTime();
    for (const side of sides) side.begin();
    await sleep(clock, STEADY * 1_000, signal);
    const problem = unsteady(callsSince(sides, since), STEADY_P99);
    if (problem === undefined) return since;
    if (attempt === TRIES) {
      throw new Error(
        `the steady state did not hold, so the shard was not stalled: ${problem}; is the machine busy?`,
      );
    }
    say(`  not steady: ${problem}; once more`);
    await Promise.all(sides.map((side) => side.halt()));
    await sleep(clock, QUIET * 1_000, signal);
  }
};

/** What the telemetry of the protected server says. */
const serverTimes = ({ events, spans }: Sink, { stalled, recovered }: Times): ServerTimes => {
  const changes = events.filter(({ name }) => name === EVENT.breakerStateChanged);
  const to = (state: string) => changes.filter(({ attributes }) => attributes[ATTR.to] === state);
  const opened = to('open').find(({ at }) => at >= stalled);
  const closed = to('closed').findLast(({ at }) => at >= recovered);
  const refused = percentile(
    spans
      .filter(
        ({ attributes, start }) => attributes[ATTR.toolOutcome] === 'rejected' && start >= stalled,
      )
      .map(({ start, end }) => (end - start) / 1_000),
    0.95,
  );
  return {
    ...(opened && { opened: (opened.at - stalled) / 1_000 }),
    ...(closed && { closed: (closed.at - recovered) / 1_000 }),
    ...(refused !== undefined && { refused }),
  };
};

/** One measurement. */
interface Measured extends Pick<DrillResult, 'expectations' | 'notes'> {
  /** Why it says nothing: the server to which nothing happens was disturbed as well. */
  readonly disturbance?: string;
}

const measure = async (environment: DrillEnvironment, cleanup: Cleanup): Promise<Measured> => {
  const { clock, signal, say, forwarding } = environment;
  const sink = await startSink(say, forwarding);
  cleanup.add(() => sink.close());
  const both = Object.keys(SHARDS) as KnowledgeTool[];
  const start = (isProtected: boolean, tools: readonly KnowledgeTool[]) =>
    startSide({ isProtected, tools, sinkUrl: sink.url }, environment, cleanup);
  const starting = [start(false, both), start(true, both), start(true, [HEALTHY])] as const;
  // Whatever has been started is known to the cleanup before anything is thrown.
  await Promise.allSettled(starting);
  const all = await Promise.all(starting);
  const [unprotected, guarded, undisturbed] = all;

  say(
    `  steady for ${STEADY} s: ${RATE.search_knowledge} and ${RATE.get_document} calls a second, on each server`,
  );
  const steady = await steadyState(all, environment);

  const disturbed = [unprotected, guarded];
  for (const { store } of disturbed) store.stall(SHARDS.search_knowledge);
  const stalled = clock.wallTime();
  say(`  one shard stalls for ${STALL} s: its queries take 5 s instead of 20 ms`);
  await sleep(clock, STALL * 1_000, signal);

  for (const { store } of disturbed) store.recover();
  const recovered = clock.wallTime();
  say(`  the shard has recovered; ${RECOVERY} s more`);
  await sleep(clock, RECOVERY * 1_000, signal);
  const ended = clock.wallTime();
  await Promise.all(all.map((side) => side.end()));

  const times: Times = { steady, stalled, recovered, ended };
  const figures = {
    unprotected: figuresOf(unprotected.calls, unprotected.report(), times),
    protected: figuresOf(guarded.calls, guarded.report(), times),
    undisturbed: figuresOf(undisturbed.calls, undisturbed.report(), times),
  };
  const disturbance = unsteady(callsSince([undisturbed], stalled), UNDISTURBED_P99);
  return {
    expectations: expectations(figures, serverTimes(sink, times), STALL),
    notes: table(figures),
    ...(disturbance && { disturbance }),
  };
};

/** Measurements at most. */
const ATTEMPTS = 3;

/**
 * Measures until the undisturbed server really was undisturbed. Only that voids a measurement,
 * whatever the other two were like, and the report says how many were.
 */
const measureUndisturbed = async (
  environment: DrillEnvironment,
  cleanup: Cleanup,
): Promise<Pick<DrillResult, 'expectations' | 'notes' | 'problem'>> => {
  for (let attempt = 1; ; attempt += 1) {
    const { expectations, notes, disturbance } = await measure(environment, cleanup);
    if (disturbance === undefined) {
      const voided = attempt === 1 ? [] : [`void measurements before: ${attempt - 1}`];
      return { expectations, notes: [...notes, ...voided] };
    }
    const problem = `the machine was too busy to judge: on the undisturbed server ${disturbance}`;
    if (attempt === ATTEMPTS) return { expectations, notes, problem };
    environment.say(`  void: ${problem}`);
    await cleanup.run();
  }
};

const ABOUT = {
  name: 'slow-shard',
  hypothesis:
    'When one shard behind a tool stalls, the tools beside it do not notice, calls to it fail fast, and service is normal within two open times of its recovery.',
};

/** The drill `slow-shard`. */
export const slowShard: RunnableDrill = {
  ...ABOUT,
  run: (environment) =>
    conclude(ABOUT, environment, (cleanup) => measureUndisturbed(environment, cleanup)),
};
