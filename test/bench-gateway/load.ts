/**
 * @module
 * The client that makes the load: JSON-RPC over the links of the gateway, the same for every
 * subject, and cheaper than an SDK client, so that what stands in the middle is what is seen.
 */
import { readFileSync } from 'node:fs';
import { createLink } from '../../src/gateway/create-link.ts';
import type { Json, Link, UpstreamAddress } from '../../src/gateway/types.ts';
import type { JSONRPCMessage } from '../../src/mcp/jsonrpc.ts';

/** What is asked for, by how many at a time. */
export interface Load {
  readonly name: string;
  readonly tool: 'echo' | 'work';
  /** Characters of the text that goes there and comes back. */
  readonly length: number;
  readonly concurrency: number;
}

export const LOADS: readonly Load[] = [
  { name: 'one at a time', tool: 'echo', length: 100, concurrency: 1 },
  { name: '16 at a time', tool: 'echo', length: 100, concurrency: 16 },
  { name: '16 at a time, 64 KiB each way', tool: 'echo', length: 65_536, concurrency: 16 },
  { name: '16 at a time, tool of 10 ms', tool: 'work', length: 100, concurrency: 16 },
];

/** What one run of a load brought. */
export interface Sample {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds of processor time per call that the subject's own process took, or the server. */
  readonly cpu?: number | undefined;
}

type Caller = (tool: string, text: string) => Promise<void>;

/** Opens a session. */
export const connect = async (
  address: UpstreamAddress,
): Promise<{ call: Caller; pid: number | undefined; close(): Promise<void> }> => {
  const link: Link = createLink(
    {
      name: 'subject',
      address,
      policy: {},
      tools: {},
      toolBreaker: false,
      toolGuard: false,
      connectTimeout: 30_000,
      discoveryTimeout: 30_000,
      shared: false,
      restart: { initialDelay: 100, maxDelay: 1_000 },
      maxMessageBytes: 64 * 1024 * 1024,
      secrets: [],
    },
    { log: () => {} },
  );
  const pending = new Map<number, { resolve(answer: Json): void; reject(error: unknown): void }>();
  link.onmessage = (message) => {
    const answer = message as unknown as Json;
    if (!('method' in answer)) pending.get(answer.id as number)?.resolve(answer);
  };
  link.onlost = (id, failure) => pending.get(id as number)?.reject(failure);
  link.onend = (end) => {
    for (const { reject } of pending.values())
      reject(new Error(`ended: ${end.reason} ${end.lastWords ?? ''}`));
  };
  let lastId = 0;
  const request = async (method: string, params: Json): Promise<Json> => {
    lastId += 1;
    const id = lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    pending.set(id, { resolve, reject });
    link.send({ jsonrpc: '2.0', id, method, params } as JSONRPCMessage).catch(reject);
    try {
      const answer = await promise;
      if ('error' in answer) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
      return answer.result as Json;
    } finally {
      pending.delete(id);
    }
  };
  await link.open();
  const result = await request('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  });
  link.initialized(String(result.protocolVersion));
  await link.send({ jsonrpc: '2.0', method: 'notifications/initialized' } as JSONRPCMessage);
  await request('tools/list', {});
  const call: Caller = async (name, text) => {
    const answer = await request('tools/call', { name, arguments: { text } });
    const [content] = answer.content as { text: string }[];
    if (content?.text.length !== text.length)
      throw new Error(`wrong answer: ${JSON.stringify(answer)}`);
  };
  return { call, pid: link.facts.pid, close: () => link.close() };
};

/** Seconds of processor time that a process has taken, where the system tells (Linux). */
const cpuOf = (pid: number | undefined): number | undefined => {
  if (pid === undefined) return undefined;
  try {
    const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const fields = rest.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return undefined;
  }
};

/** Makes the load for `ms`; the latencies are sorted. */
const run = async (call: Caller, { tool, length, concurrency }: Load, ms: number) => {
  const text = 'x'.repeat(length);
  const begun = performance.now();
  const latencies: number[] = [];
  const loop = async (): Promise<void> => {
    for (let start = performance.now(); start < begun + ms; start = performance.now()) {
      await call(tool, text);
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
  return { latencies: latencies.sort((a, b) => a - b), took: performance.now() - begun };
};

/**
 * Has a subject compile what it needs all the time: a proxy runs for days, and of one that was
 * started a moment ago mostly its interpreter would be measured.
 */
export const warmUp = async (call: Caller, ms: number): Promise<void> => {
  for (const load of LOADS.filter(({ tool, concurrency }) => tool === 'echo' && concurrency > 1)) {
    await run(call, load, load.length > 1_000 ? ms / 6 : ms);
  }
};

/** Makes the load for `ms`, after a quarter of that to settle. */
export const measure = async (
  call: Caller,
  load: Load,
  ms: number,
  pid: number | undefined,
): Promise<Sample> => {
  await run(call, load, ms / 4);
  const before = cpuOf(pid);
  const { latencies, took } = await run(call, load, ms);
  const after = cpuOf(pid);
  const at = (share: number): number =>
    latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  const cpu =
    before === undefined || after === undefined
      ? undefined
      : ((after - before) * 1_000_000) / latencies.length;
  return { perSecond: (latencies.length * 1_000) / took, p50: at(0.5), p99: at(0.99), cpu };
};
