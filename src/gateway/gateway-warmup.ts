/**
 * @module
 * Looks at every upstream once at the start, before any client has come: whether it can be
 * reached, and what it offers. Over stdio the client comes at once, and does that itself.
 */
import { Catalog, type Source } from './catalog.ts';
import { createLists } from './catalog-list.ts';
import type { RelayContext } from './relay-context.ts';
import { unknownClient } from './relay-initialize.ts';
import type { UpstreamConfig } from './types.ts';

/** An upstream that did not come up. */
export interface Unreachable {
  readonly upstream: string;
  readonly reason: string;
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const visit = async (
  { name, discoveryTimeout, shared }: UpstreamConfig,
  { manager, gateway, transparent, clock, sharedLists }: RelayContext,
): Promise<Source | Unreachable> => {
  const session = manager.open(name, unknownClient(gateway));
  const options = { discoveryTimeout, clock, verbatim: transparent };
  const lists = sharedLists(name) ?? createLists(session, options);
  try {
    await session.ready();
    return { name, session, lists, shared };
  } catch (error) {
    // It stays until the upstream is there: nobody else would try, and it would stay "down".
    session.onreconnected = () => void session.close();
    return { upstream: name, reason: textOf(error) };
  }
};

/**
 * Visits all upstreams, in parallel, each within its connect timeout; learns the names of what
 * they offer; and leaves.
 *
 * @returns those that could not be reached. They are tried again in the background.
 */
export const warmUp = async (context: RelayContext): Promise<readonly Unreachable[]> => {
  const { manager, transparent, naming, onNames } = context;
  const visited = await Promise.all(manager.configs.map((config) => visit(config, context)));
  const sources = visited.filter((found): found is Source => 'session' in found);
  const catalog = new Catalog({ sources: () => sources, transparent, naming, onNames });
  // What it fails with, clients will see when they ask themselves.
  await Promise.allSettled([catalog.list('tools'), catalog.list('prompts')]);
  await Promise.allSettled(sources.map(({ session }) => session.close()));
  return visited.filter((found): found is Unreachable => 'upstream' in found);
};
