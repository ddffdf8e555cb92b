/**
 * @module
 * The store of the drill `slow-shard`: a document store of several shards, each of which answers
 * a query within 20 ms, until one of them stalls as in a long garbage collection.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../resilience/clock.ts';

/** Milliseconds that a query takes. */
export const QUERY_TIME = 20;

/** Milliseconds that a query takes on a shard that stalls. */
const STALLED_TIME = 5_000;

/** A store that runs. */
export interface KnowledgeStore {
  readonly url: string;
  /** Queries of that shard take 5 s from now on; those that are under way are not touched. */
  stall(shard: number): void;
  /** New queries take 20 ms again; those that began in between still take their 5 s. */
  recover(): void;
  close(): Promise<void>;
}

/** Path of a query. */
export const queryPath = (shard: number, query: string): string =>
  `/shards/${shard}?query=${encodeURIComponent(query)}`;

/** Starts a store on a free loopback port. */
export const startStore = async (clock: Clock): Promise<KnowledgeStore> => {
  let stalled: number | undefined;
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const shard = Number(/^\/shards\/(\d+)/.exec(request.url ?? '')?.[1]);
    const time = shard === stalled ? STALLED_TIME : QUERY_TIME;
    const body = JSON.stringify({ shard, passages: ['Refunds are paid within 14 days.'] });
    const timer = clock.setTimer(
      time,
      () => response.setHeader('content-type', 'application/json').end(body),
      true,
    );
    response.once('close', () => timer.cancel());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stall: (shard) => {
      stalled = shard;
    },
    recover: () => {
      stalled = undefined;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
