/**
 * @module
 * Upstreams that all clients share: the session that stays when every client has gone, and what
 * it lists, which is asked for once for all of them.
 */
import type { Clock } from '../resilience/clock.ts';
import { changedLists } from './catalog-kinds.ts';
import { createLists, invalidateAll, type UpstreamLists } from './catalog-list.ts';
import type { ClientFacts, UpstreamManager } from './types.ts';

/** The lists of shared upstreams. */
export interface SharedLists {
  /** Those of an upstream; undefined for one that is not shared. */
  of(upstream: string): UpstreamLists | undefined;
}

/** @param client what a shared upstream is told of whom it serves */
export const createSharedLists = (
  manager: UpstreamManager,
  client: ClientFacts,
  clock: Clock,
  transparent: boolean,
): SharedLists => {
  const kept = new Map<string, UpstreamLists>();
  manager.onChange((names) => {
    // Their sessions have been closed with them.
    for (const name of names) kept.delete(name);
  });
  return {
    of: (upstream) => {
      const config = manager.configs.find(({ name }) => name === upstream);
      if (!config?.shared) return undefined;
      const present = kept.get(upstream);
      if (present) return present;
      const session = manager.open(upstream, client);
      const lists = createLists(session, {
        discoveryTimeout: transparent ? Number.POSITIVE_INFINITY : config.discoveryTimeout,
        clock,
        verbatim: transparent,
      });
      session.onnotification = (method) => {
        for (const kind of changedLists(method)) lists[kind].invalidate();
      };
      session.onreconnected = () => invalidateAll(lists);
      kept.set(upstream, lists);
      return lists;
    },
  };
};
