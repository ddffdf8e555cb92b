/**
 * @module
 * Runs a drill: a real client against the real server in a process of its own, with an upstream
 * and a collector in this one. Steady state first; where that does not hold, nothing is armed.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectHttp, type HttpClient } from '../mcp/client.ts';
import { sleep } from '../resilience/clock.ts';
import {
  type Cleanup,
  conclude,
  type DrillEnvironment,
  type RunnableDrill,
  serverEnvironment,
} from './drill-environment.ts';
import type { Phase } from './drill-expectation.ts';
import { runFaults } from './drill-faults.ts';
import type { PhaseTime, RunRecord } from './drill-figures.ts';
import { type CallRecord, inputOf, isFailed, type RunningLoad, startLoad } from './drill-load.ts';
import { type ServerProcess, startServer } from './drill-process.ts';
import type { Drill } from './drill-schema.ts';
import { type Sink, startSink } from './drill-sink.ts';
import { type DrillUpstream, startUpstream } from './drill-upstream.ts';
import { type DrillResult, type Judged, judge, unjudged } from './drill-verdict.ts';

const CLIENT = 'mcp-resilience-drill';

/** How often the steady state is tried. */
const STEADY_TRIES = 3;

/** The configuration of the server: that of the drill, and no limit per client, who is us. */
const configOf = ({ server }: Drill): object => ({
  ...server.config,
  http: { rateLimit: false, ...(server.config.http as object | undefined) },
});

/** Everything that a run needs, up and ready. */
interface Stage {
  readonly sink: Sink;
  readonly upstream: DrillUpstream;
  readonly server: ServerProcess;
  /** Arms and clears faults. */
  readonly operator: HttpClient;
  /** One for each load. */
  readonly clients: readonly HttpClient[];
}

const setUp = async (
  drill: Drill,
  environment: DrillEnvironment,
  cleanup: Cleanup,
): Promise<Stage> => {
  const { command, env, clock, signal, say, forwarding } = environment;
  const sink = await startSink(say, forwarding);
  cleanup.add(() => sink.close());
  const upstream = await startUpstream(clock, drill.server.upstreamMs);
  cleanup.add(() => upstream.close());
  const folder = await mkdtemp(join(tmpdir(), 'mcp-resilience-drill-'));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const config = join(folder, 'config.json');
  await writeFile(config, JSON.stringify(configOf(drill)));
  const flags = ['serve', '--http', '--port', '0', '--chaos', '--config', config];
  const server = await startServer({
    command: [...command, ...flags],
    env: serverEnvironment(env, sink.url, upstream.env),
    clock,
    signal,
  });
  cleanup.add(() => server.stop());
  const connect = async (): Promise<HttpClient> => {
    const client = await connectHttp(server.url, CLIENT, { timeout: 10_000 });
    cleanup.add(() => client.close());
    return client;
  };
  const operator = await connect();
  const clients: HttpClient[] = [];
  for (const load of drill.load) {
    const client = await connect();
    clients.push(client);
    // What only a first call costs belongs into no figure.
    await client.call(load.tool, inputOf(load, 0, 0)).catch(() => {});
  }
  return { sink, upstream, server, operator, clients };
};

/** `38 calls: 30 success, 8 CIRCUIT_OPEN` */
const summary = (calls: readonly CallRecord[]): string => {
  const counts = new Map<string, number>();
  for (const { outcome, code } of calls) {
    const key = isFailed(outcome) ? (code ?? outcome) : outcome;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const parts = [...counts].map(([key, count]) => `${count} ${key}`);
  return `${calls.length} calls${parts.length > 0 ? `: ${parts.join(', ')}` : ''}`;
};

/** Says once a second what the agents saw, until the returned function is called. */
const tellProgress = (
  phase: Phase,
  total: number,
  calls: readonly CallRecord[],
  { clock, say }: DrillEnvironment,
): (() => void) => {
  let told = calls.length;
  let second = 0;
  const tick = (): void => {
    second += 1;
    say(`  ${phase} ${second}/${total} s: ${summary(calls.slice(told))}`);
    told = calls.length;
    timer = clock.setTimer(1_000, tick);
  };
  let timer = clock.setTimer(1_000, tick);
  return () => timer.cancel();
};

const measure = async (
  drill: Drill,
  environment: DrillEnvironment,
  cleanup: Cleanup,
): Promise<Pick<DrillResult, 'expectations' | 'notes' | 'problem'>> => {
  const { clock, signal, say } = environment;
  const { sink, upstream, server, operator, clients } = await setUp(drill, environment, cleanup);
  const calls: CallRecord[] = [];
  const phases: Partial<Record<Phase, PhaseTime>> = {};

  const phase = async (
    name: Phase,
    seconds: number,
    run: () => Promise<Partial<PhaseTime>> = async () => {
      await sleep(clock, seconds * 1_000, signal);
      return {};
    },
  ): Promise<void> => {
    const stopTelling = tellProgress(name, seconds, calls, environment);
    const from = clock.wallTime();
    try {
      const times = await run();
      phases[name] = { from, to: clock.wallTime(), ...times };
    } finally {
      stopTelling();
    }
  };

  const loads: readonly RunningLoad[] = drill.load.map((load, index) => {
    const client = clients[index] ?? operator;
    return startLoad(load, { client, clock, onCall: (call) => calls.push(call) });
  });
  const stopLoads = () => Promise.all(loads.map((load) => load.stop()));
  cleanup.add(stopLoads);

  const record = (): RunRecord => ({
    phases,
    calls,
    spans: sink.spans,
    events: sink.events,
    series: sink.series(),
    requests: upstream.requests,
  });

  // Nothing has been broken by then: to wait for a machine that is busy hides nothing.
  let steady: readonly Judged[] = [];
  for (let attempt = 1; attempt <= STEADY_TRIES; attempt += 1) {
    await phase('steady', drill.steady.seconds);
    steady = drill.steady.expect.map((expectation) => judge(record(), expectation));
    if (steady.every(({ pass }) => pass)) break;
    say(`  not steady: try ${attempt} of ${STEADY_TRIES}`);
  }
  if (!steady.every(({ pass }) => pass)) {
    return {
      expectations: [...steady, ...drill.expect.map(unjudged)],
      notes: [],
      problem: 'the steady state did not hold, so no fault was armed',
    };
  }
  await phase('fault', drill.fault.seconds, () =>
    runFaults(drill.faults, { operator, sink, clock, signal, say, seconds: drill.fault.seconds }),
  );
  await phase('recovery', drill.recovery.seconds);
  await stopLoads();
  for (const client of [...clients, operator]) await client.close();
  const exit = await server.stop();
  const run: RunRecord = { ...record(), exit };
  const orderly: Judged = judge(run, {
    that: 'the server ends in order when it is told to',
    measure: 'code',
    of: { source: 'exit' },
    equals: 0,
  });
  const judged = drill.expect.map((expectation) => judge(run, expectation));
  return { expectations: [...steady, ...judged, orderly], notes: [] };
};

/** A drill of data as one that can be run. */
export const createDrill = (drill: Drill): RunnableDrill => ({
  name: drill.name,
  hypothesis: drill.hypothesis,
  run: (environment) =>
    conclude(drill, environment, (cleanup) => measure(drill, environment, cleanup)),
});
