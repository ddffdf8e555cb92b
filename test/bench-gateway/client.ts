/**
 * @module
 * The process of a client, which makes the load: `node client.ts WORLD ADDRESS`, the address as
 * JSON, started by `start-client.ts`. A new one for each subject: none finds a client that another
 * has warmed up, and its processor time is its own.
 */
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import { type Load, measure, type Processes, type Sample, type WarmUp, warmUp } from './load.ts';

/** What a client is told to do. */
export type Order =
  | { readonly do: 'warm up'; readonly loads: readonly Load[]; readonly warmUp: WarmUp }
  | {
      readonly do: 'measure';
      readonly load: Load;
      readonly ms: number;
      readonly processes: Processes;
    }
  | { readonly do: 'close' };

/** What a client says: that it is connected, then an answer to each order. */
export interface Said {
  /** Of the process that it started itself. */
  readonly pid?: number | undefined;
  readonly sample?: Sample | undefined;
  readonly error?: string;
}

const [, , world, address = ''] = process.argv;
// A process loads no client but its own.
const { connect } =
  world === 'lean' ? await import('./client-lean.ts') : await import('./client-ordinary.ts');
const { call, pid, close } = await connect(JSON.parse(address) as UpstreamAddress);
const say = (said: Said): void => void process.send?.(said);

const follow = async (order: Order): Promise<Sample | undefined> => {
  if (order.do === 'measure') return measure(call, order.load, order.ms, order.processes);
  if (order.do === 'warm up') await warmUp(call, order.loads, order.warmUp);
  else await close();
  return undefined;
};

process.on('message', (order: Order) => {
  follow(order).then(
    (sample) => say({ sample }),
    (error: unknown) => say({ error: error instanceof Error ? error.message : String(error) }),
  );
});
say({ pid });
