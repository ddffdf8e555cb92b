/**
 * @module
 * Looks at the upstreams of a configuration for real, as the gateway would: whether they can be
 * reached, what they offer, and under which names clients will see it.
 */
import { type Clock, systemClock } from '../resilience/clock.ts';
import { VERSION } from '../version.ts';
import { createLists, type UpstreamList } from './catalog-list.ts';
import type { GatewayConfig } from './config.ts';
import { masked } from './config-secrets.ts';
import { type NameEntry, nameTable } from './naming.ts';
import { unknownClient } from './relay-initialize.ts';
import type { UpstreamConfig, UpstreamManager } from './types.ts';
import { createUpstreamManager } from './upstream-manager.ts';

/** What one upstream offers, by its own names; or why that cannot be told. */
type Visited = { readonly upstream: string } & (
  | { readonly tools: readonly string[]; readonly prompts: readonly string[] }
  | { readonly reason: string }
);

/** What a visit to all upstreams brought. */
export interface Visit {
  /** Tools as clients will see them, in the order of the configuration. */
  readonly tools: readonly NameEntry[];
  readonly prompts: readonly NameEntry[];
  /** What would break: one sentence each. */
  readonly problems: readonly string[];
}

const namesIn = async (list: UpstreamList): Promise<string[]> => {
  const { items } = await list.get();
  return items.flatMap(({ name }) => (typeof name === 'string' ? [name] : []));
};

const visit = async (
  config: UpstreamConfig,
  gateway: GatewayConfig,
  manager: UpstreamManager,
  clock: Clock,
): Promise<Visited> => {
  const { name: upstream, discoveryTimeout, secrets } = config;
  const session = manager.open(upstream, unknownClient({ name: gateway.name, version: VERSION }));
  try {
    await session.ready();
    const lists = createLists(session, { discoveryTimeout, clock });
    const [tools, prompts] = await Promise.all([namesIn(lists.tools), namesIn(lists.prompts)]);
    return { upstream, tools, prompts };
  } catch (error) {
    const told = error instanceof Error ? error.message : String(error);
    return { upstream, reason: masked(told.replace(`upstream "${upstream}": `, ''), secrets) };
  } finally {
    await session.close();
  }
};

const CHANGES = {
  collision: 'another server has it too',
  length: 'it is longer than 64 characters',
  characters: 'it has characters that clients do not take',
} as const;

/** Why who uses a server without the gateway will not find a name again. */
const brokenBy = (kind: string, entry: NameEntry): string[] => {
  const { reason, upstream, name, shown } = entry;
  if (reason === undefined || reason === 'asked') return [];
  return [
    `${upstream}: the ${kind} ${JSON.stringify(name)} becomes "${shown}": ${CHANGES[reason]}`,
  ];
};

/**
 * Connects to every upstream once, in parallel, each within its own time limits. Children are
 * ended before it resolves. Never rejects for an upstream that cannot be reached.
 *
 * @param log takes lines for people, without a line break
 */
export const visitUpstreams = async (
  config: GatewayConfig,
  options: { readonly clock?: Clock; readonly log?: (line: string) => void } = {},
): Promise<Visit> => {
  const { clock = systemClock, log = () => {} } = options;
  const manager = createUpstreamManager(config.upstreams, { clock, log });
  let visited: Visited[];
  try {
    visited = await Promise.all(
      config.upstreams.map((upstream) => visit(upstream, config, manager, clock)),
    );
  } finally {
    await manager.close();
  }
  const naming = { prefix: config.prefix, separator: config.separator };
  const entriesOf = (kind: 'tools' | 'prompts') =>
    nameTable(
      visited.map((each) => ({
        upstream: each.upstream,
        names: 'reason' in each ? [] : each[kind],
      })),
      naming,
    ).entries;
  const [tools, prompts] = [entriesOf('tools'), entriesOf('prompts')];
  const problems = [
    ...visited.flatMap((each) =>
      'reason' in each ? [`${each.upstream} cannot be used: ${each.reason}`] : [],
    ),
    ...tools.flatMap((entry) => brokenBy('tool', entry)),
    ...prompts.flatMap((entry) => brokenBy('prompt', entry)),
  ];
  return { tools, prompts, problems };
};
