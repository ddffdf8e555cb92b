/**
 * @module
 * What is asked for, and how it is measured. Runs in the process of the client.
 */
import { readFileSync } from 'node:fs';

/** What is asked for, by how many at a time. */
export interface Load {
  readonly name: string;
  readonly tool: 'echo' | 'work';
  /** Characters of the text that goes there and comes back. */
  readonly length: number;
  readonly concurrency: number;
}

/** Microseconds of processor time per call, by process; undefined where there is none. */
export interface Cost {
  readonly client: number;
  readonly proxy?: number | undefined;
  readonly server?: number | undefined;
}

/** What one run of a load brought. */
export interface Sample {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly cpu: Cost;
}

/** Ids of the processes beside that of the client. */
export interface Processes {
  readonly proxy?: number | undefined;
  /** A proxy may start its server more than once. */
  readonly servers: readonly number[];
}

/** Calls a tool, and rejects unless the text comes back. */
export type Caller = (tool: string, text: string) => Promise<void>;

/** A session of a client. */
export interface Connection {
  readonly call: Caller;
  /** Of the process that the client started, where it speaks on stdio. */
  readonly pid?: number | undefined;
  close(): Promise<void>;
}

/** Seconds of processor time that a process has taken, where the system tells (Linux). */
const timeOf = (pid: number): number | undefined => {
  try {
    const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const fields = rest.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return undefined;
  }
};

/** That of all that still live: a proxy may have started its server once to look at it. */
const cpuOf = (pids: readonly number[]): number | undefined => {
  const times = pids.map(timeOf).filter((time) => time !== undefined);
  return times.length === 0 ? undefined : times.reduce((sum, time) => sum + time);
};

const costs = ({ proxy, servers }: Processes): Partial<Cost> & { readonly client: number } => {
  const { user, system } = process.cpuUsage();
  return {
    client: (user + system) / 1_000_000,
    proxy: cpuOf(proxy === undefined ? [] : [proxy]),
    server: cpuOf(servers),
  };
};

/** Makes the load for `ms`, or until so many calls are made; the latencies are sorted. */
const run = async (
  call: Caller,
  { tool, length, concurrency }: Load,
  ms: number,
  calls = Number.POSITIVE_INFINITY,
) => {
  const text = 'x'.repeat(length);
  const begun = performance.now();
  const latencies: number[] = [];
  const loop = async (): Promise<void> => {
    for (
      let start = performance.now();
      start < begun + ms && latencies.length < calls;
      start = performance.now()
    ) {
      await call(tool, text);
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
  return { latencies: latencies.sort((a, b) => a - b), took: performance.now() - begun };
};

/** How long something runs before it is measured: so many calls, and no longer than that. */
export interface WarmUp {
  readonly calls: number;
  /** Milliseconds. */
  readonly ms: number;
}

/**
 * Has client, subject and server compile what they need all the time: a proxy runs for days, and
 * of one that was started a moment ago mostly its interpreter and its compiler would be measured.
 * By calls and not by time: V8 counts how often a function was called.
 */
export const warmUp = async (
  call: Caller,
  loads: readonly Load[],
  { calls, ms }: WarmUp,
): Promise<void> => {
  for (const load of loads.filter(({ tool, concurrency }) => tool === 'echo' && concurrency > 1)) {
    const share = load.length > 1_000 ? 1 / 8 : 1;
    await run(call, load, ms * share, calls * share);
  }
};

/** Makes the load for `ms`, after a quarter of that to settle. */
export const measure = async (
  call: Caller,
  load: Load,
  ms: number,
  processes: Processes,
): Promise<Sample> => {
  await run(call, load, ms / 4);
  const before = costs(processes);
  const { latencies, took } = await run(call, load, ms);
  const after = costs(processes);
  const at = (share: number): number =>
    latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  const each = (from = Number.NaN, to = Number.NaN): number =>
    ((to - from) * 1_000_000) / latencies.length;
  const known = (from: number | undefined, to: number | undefined): number | undefined =>
    from === undefined || to === undefined ? undefined : each(from, to);
  return {
    perSecond: (latencies.length * 1_000) / took,
    p50: at(0.5),
    p99: at(0.99),
    cpu: {
      client: each(before.client, after.client),
      proxy: known(before.proxy, after.proxy),
      server: known(before.server, after.server),
    },
  };
};
