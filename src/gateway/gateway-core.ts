/**
 * @module
 * Everything of a gateway but its door: the upstreams, what all client sessions share, and how
 * both follow an edited configuration.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ServerFactory } from '../mcp/server.ts';
import type { Clock } from '../resilience/clock.ts';
import { VERSION } from '../version.ts';
import type { GatewayConfig } from './config.ts';
import type { GatewayChaos } from './gateway-chaos.ts';
import { createNameRegister } from './gateway-known.ts';
import { createSharedLists } from './gateway-shared.ts';
import { createHealthTool } from './health-tool.ts';
import { createOwnOffer, type OwnOffer } from './own-offer.ts';
import { RelaySession } from './relay.ts';
import type { RelayContext } from './relay-context.ts';
import { unknownClient } from './relay-initialize.ts';
import type { UpstreamConfig } from './types.ts';
import { createUpstreamManager, type GatewayUpstreams } from './upstream-manager.ts';

/** What a gateway is made of. */
export interface GatewayCoreOptions {
  readonly config: GatewayConfig;
  /** The one upstream is shown as it is. */
  readonly transparent: boolean;
  readonly healthTool: boolean;
  /** The door has no sessions. */
  readonly stateless: boolean;
  /** Fault injection, where it is on. */
  readonly chaos?: GatewayChaos | undefined;
  readonly say: (line: string) => void;
  readonly clock: Clock;
  /** Says through which proxies upstreams are called. */
  readonly env: NodeJS.ProcessEnv;
}

/** A gateway without a door. */
export interface GatewayCore {
  readonly manager: GatewayUpstreams;
  readonly context: RelayContext;
  /** Makes a session for each client of a door. */
  readonly createServer: ServerFactory;
  apply(config: GatewayConfig): Promise<void>;
  /** Ends all upstreams, after those of sessions that are ending. */
  close(): Promise<void>;
}

/** Milliseconds between two lines about the same list of the same upstream. */
const MISSING_INTERVAL = 60_000;

/** Without sessions a POST cannot have an upstream session of its own: it would be started for it. */
const upstreamsOf = (config: GatewayConfig, stateless: boolean): readonly UpstreamConfig[] =>
  stateless
    ? config.upstreams.map((upstream) => ({ ...upstream, shared: true }))
    : config.upstreams;

/** What cannot change while it runs. */
const fixedOf = ({ name, strict, healthTool, http, auth }: GatewayConfig) => ({
  name,
  strict,
  healthTool,
  http,
  auth,
});

/** What is offered beside the upstreams; undefined for nothing. */
const ownOffer = (
  { transparent, healthTool, chaos }: GatewayCoreOptions,
  manager: GatewayUpstreams,
): OwnOffer | undefined => {
  const health = !transparent && healthTool ? [createHealthTool(manager, VERSION)] : [];
  if (health.length === 0 && !chaos) return undefined;
  return createOwnOffer({ ...chaos, tools: [...health, ...(chaos?.tools ?? [])] });
};

/** Has faults aimed at the upstreams that there are. */
const follow = (chaos: GatewayChaos, manager: GatewayUpstreams): void => {
  const now = () =>
    chaos.follow(
      manager.configs.flatMap(({ name, address: { kind } }) => {
        const hooks = manager.faultHooks(name);
        return hooks ? [{ name, kind, hooks }] : [];
      }),
    );
  now();
  manager.onChange((names) => {
    chaos.forget(names);
    now();
  });
};

/**
 * Makes a gateway; nothing is connected yet.
 *
 * @throws SettingsError when policies are wrong
 */
export const createGateway = (options: GatewayCoreOptions): GatewayCore => {
  const { transparent, stateless, chaos, say, clock, env } = options;
  let { config } = options;
  const gateway = { name: config.name, version: VERSION };
  const manager = createUpstreamManager(upstreamsOf(config, stateless), {
    clock,
    log: say,
    env,
    ...(chaos && { pipelineOptions: { inject: chaos.inject }, divert: chaos.divert }),
  });
  // First of those that are told of changes: what clients list then is learnt by it.
  if (chaos) follow(chaos, manager);
  const register = createNameRegister(say);
  const renamed = new Set<() => void>();
  /** Sessions that have ended and whose servers have not. */
  const closing = new Set<Promise<void>>();
  const saidMissing = new Map<string, number>();

  const context: RelayContext = {
    manager,
    transparent,
    strict: config.strict,
    clock,
    gateway,
    sharedLists: createSharedLists(manager, unknownClient(gateway), clock, transparent).of,
    naming: () => ({ prefix: config.prefix, separator: config.separator }),
    onRenamed: (listener) => {
      renamed.add(listener);
      return () => renamed.delete(listener);
    },
    own: ownOffer(options, manager),
    chaos,
    onClosing: (closed) => {
      const settled = closed.catch(() => {}).then(() => void closing.delete(settled));
      closing.add(settled);
    },
    onNames: (kind, table) => {
      register.note(kind, table);
      if (kind === 'tools') chaos?.learn(table.entries);
    },
    onOwnName: register.add,
    onMissing: (upstream, kind, error) => {
      const key = `${upstream} ${kind}`;
      const last = saidMissing.get(key) ?? Number.NEGATIVE_INFINITY;
      if (clock.now() - last < MISSING_INTERVAL) return;
      saidMissing.set(key, clock.now());
      const why = error instanceof Error ? error.message : String(error);
      say(`warning: ${kind} of ${upstream} are not listed: ${why}`);
    },
  };

  return {
    manager,
    context,
    createServer: Object.assign(() => new RelaySession(context), { known: register.known }),
    apply: async (edited) => {
      const { prefix, separator } = config;
      if (!isDeepStrictEqual(fixedOf(config), fixedOf(edited))) {
        say(
          'note: name, strict, healthTool, http and auth of the gateway hold from its next start',
        );
      }
      config = edited;
      await manager.apply(upstreamsOf(edited, stateless));
      if (prefix !== edited.prefix || separator !== edited.separator) {
        for (const listener of renamed) listener();
      }
    },
    close: async () => {
      await Promise.all(closing);
      await manager.close();
    },
  };
};
