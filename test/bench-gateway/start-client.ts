/**
 * @module
 * Starts the process of a client and tells it what to do.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import type { Order, Said } from './client.ts';
import type { Load, Processes, Sample, WarmUp } from './load.ts';
import type { World } from './worlds.ts';

/** Milliseconds until something hangs: no order takes a tenth of that. */
const PATIENCE = 120_000;

/** A client that is connected. */
export interface Client {
  /** Of the process that it started itself, where it speaks on stdio. */
  readonly pid: number | undefined;
  warmUp(loads: readonly Load[], warmUp: WarmUp): Promise<void>;
  measure(load: Load, ms: number, processes: Processes): Promise<Sample>;
  close(): Promise<void>;
}

/** Resolves once there is a session. Rejects when there is none, as all of its methods do. */
export const startClient = async (world: World, address: UpstreamAddress): Promise<Client> => {
  const child = fork(join(import.meta.dirname, 'client.ts'), [world.name, JSON.stringify(address)]);
  const ended = once(child, 'exit').then(([code]): never => {
    throw new Error(`the client ended with ${code}`);
  });
  ended.catch(() => {});
  const heard = async (): Promise<Said> => {
    const signal = AbortSignal.timeout(PATIENCE);
    const [said] = (await Promise.race([once(child, 'message', { signal }), ended])) as [Said];
    if (said.error !== undefined) throw new Error(said.error);
    return said;
  };
  const order = (what: Order): Promise<Said> => {
    const answer = heard();
    child.send(what);
    return answer;
  };
  const { pid } = await heard().catch((error: unknown) => {
    child.kill();
    throw error;
  });
  return {
    pid,
    warmUp: async (loads, warmUp) => {
      await order({ do: 'warm up', loads, warmUp });
    },
    measure: async (load, ms, processes) => {
      const { sample } = await order({ do: 'measure', load, ms, processes });
      if (sample === undefined) throw new Error('the client measured nothing');
      return sample;
    },
    close: async () => {
      if (!child.connected) return;
      await order({ do: 'close' }).finally(() => child.kill());
    },
  };
};
