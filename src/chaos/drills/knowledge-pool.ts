/**
 * @module
 * The connection pool of the drill `slow-shard`, as any client of a database has one: so many
 * connections, and a queue without a bound for whoever finds none free.
 */
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { queryPath } from './knowledge-store.ts';

/** Connections of the pool, as in the founding incident. */
const POOL_SIZE = 50;

/** A pool of connections to one store. */
export interface KnowledgePool {
  /**
   * Asks one shard over the next connection that is free.
   *
   * @param signal ends the query, or the wait for a connection; without one both take as long as
   * they take
   */
  query(shard: number, query: string, signal?: AbortSignal): Promise<string>;
  close(): void;
}

/** Opens a pool to the store at `url`; connections are made when they are first needed. */
export const openPool = (url: string): KnowledgePool => {
  // The agent is the pool: what finds no free socket waits in its queue, first in first out.
  const agent = new Agent({ keepAlive: true, maxSockets: POOL_SIZE, scheduling: 'fifo' });
  return {
    query: (shard, query, signal) =>
      new Promise((resolve, reject) => {
        const target = new URL(queryPath(shard, query), url);
        const sent = request(target, { agent, ...(signal && { signal }) });
        sent.once('response', (response) => void text(response).then(resolve, reject));
        sent.once('error', reject).end();
      }),
    close: () => agent.destroy(),
  };
};
