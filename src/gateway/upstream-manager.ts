/**
 * @module
 * All upstreams of a gateway: opens sessions with them, knows how they are, and applies an edited
 * configuration without touching what did not change.
 */
import { isDeepStrictEqual } from 'node:util';
import { diag } from '@opentelemetry/api';
import type { PipelineOptions } from '../resilience/call-options.ts';
import { type Clock, type Random, sleep, systemClock, systemRandom } from '../resilience/clock.ts';
import { createLink } from './create-link.ts';
import type { Divert, UpstreamFaultHooks } from './gateway-chaos.ts';
import type {
  ClientFacts,
  Link,
  UpstreamConfig,
  UpstreamHealth,
  UpstreamManager,
  UpstreamSession,
  UpstreamState,
} from './types.ts';
import { type Origin, SessionGroup } from './upstream.ts';
import { UpstreamHost } from './upstream-host.ts';

/** Settings of `createUpstreamManager`. */
export interface UpstreamManagerOptions {
  readonly clock?: Clock;
  /** Spreads the waits between restarts. */
  readonly random?: Random;
  /** Takes lines for people, without a line break. Default: nobody is told. */
  readonly log?: (line: string) => void;
  /** Given to the pipelines of all upstreams: classifiers, and faults where they are on. */
  readonly pipelineOptions?: PipelineOptions;
  /** Makes the connection of an upstream. Default: a child process or HTTP, as configured. */
  readonly createLink?: (config: UpstreamConfig) => Link;
  /** Has HTTP requests to upstreams go elsewhere. Default: none. */
  readonly divert?: Divert | undefined;
  /** Says through which proxy an upstream is called. Default: none. */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** The manager, with what the gateway itself needs of it. */
export interface GatewayUpstreams extends UpstreamManager {
  /** Undefined for an upstream that is not configured. */
  faultHooks(upstream: string): UpstreamFaultHooks | undefined;
}

/** Milliseconds after which `close()` no longer waits for an upstream that does not end. */
const LONGEST_CLOSE = 10_000;

interface Entry {
  readonly host: UpstreamHost<Origin>;
  /** The connection of all clients, where it is shared. */
  shared: SessionGroup | undefined;
}

class Upstreams implements GatewayUpstreams {
  readonly #options: Required<Omit<UpstreamManagerOptions, 'pipelineOptions' | 'divert' | 'env'>> &
    Pick<UpstreamManagerOptions, 'pipelineOptions'>;
  readonly #entries = new Map<string, Entry>();
  readonly #stateListeners = new Set<(upstream: string, state: UpstreamState) => void>();
  readonly #changeListeners = new Set<(names: readonly string[]) => void>();
  #configs: readonly UpstreamConfig[] = [];
  /** One edit after the other. */
  #applied: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;

  constructor(configs: readonly UpstreamConfig[], options: UpstreamManagerOptions) {
    const { clock = systemClock, divert, env } = options;
    this.#options = {
      clock,
      random: options.random ?? systemRandom,
      log: options.log ?? (() => {}),
      createLink:
        options.createLink ??
        ((config) => createLink(config, { clock, log: this.#options.log, divert, env })),
      ...(options.pipelineOptions && { pipelineOptions: options.pipelineOptions }),
    };
    for (const config of configs) this.#entries.set(config.name, this.#create(config));
    this.#configs = configs;
  }

  get configs(): readonly UpstreamConfig[] {
    return this.#configs;
  }

  open(upstream: string, client: ClientFacts): UpstreamSession {
    if (this.#closed) throw new Error('the gateway is ending: no session is opened any more');
    const entry = this.#entries.get(upstream);
    if (!entry) {
      const known = [...this.#entries.keys()].map((name) => `"${name}"`).join(', ');
      throw new Error(`there is no upstream "${upstream}"; configured are ${known}`);
    }
    if (!entry.host.config.shared) return new SessionGroup(entry.host, client).join();
    entry.shared ??= new SessionGroup(entry.host, client);
    return entry.shared.join();
  }

  health(): readonly UpstreamHealth[] {
    return [...this.#entries.values()].map(({ host }) => host.health());
  }

  getServerState(upstream: string): UpstreamState | undefined {
    return this.#entries.get(upstream)?.host.state;
  }

  onState(listener: (upstream: string, state: UpstreamState) => void): () => void {
    this.#stateListeners.add(listener);
    return () => void this.#stateListeners.delete(listener);
  }

  onChange(listener: (names: readonly string[]) => void): () => void {
    this.#changeListeners.add(listener);
    return () => void this.#changeListeners.delete(listener);
  }

  faultHooks(upstream: string): UpstreamFaultHooks | undefined {
    if (!this.#entries.has(upstream)) return undefined;
    // Looked up anew each time: an edit may have replaced it.
    const host = () => this.#entries.get(upstream)?.host;
    return {
      exit: () => host()?.break('cut off by an injected fault'),
      loseSession: () => host()?.forget('lost by an injected fault'),
    };
  }

  apply(configs: readonly UpstreamConfig[]): Promise<void> {
    const applied = this.#applied.then(() => this.#apply(configs));
    this.#applied = applied.catch(() => {});
    return applied;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** @param after what must have ended before it begins to connect */
  #create(config: UpstreamConfig, after?: Promise<unknown>): Entry {
    const { clock, random, log, createLink: makeLink, pipelineOptions } = this.#options;
    const onState = (upstream: string, state: UpstreamState) =>
      tell(this.#stateListeners, (listener) => listener(upstream, state));
    const env = { clock, random, log, createLink: makeLink, pipelineOptions, onState, after };
    return { host: new UpstreamHost<Origin>(config, env), shared: undefined };
  }

  async #apply(configs: readonly UpstreamConfig[]): Promise<void> {
    if (this.#closed) return;
    const before = new Map(this.#entries);
    const stays = (config: UpstreamConfig | undefined) =>
      config !== undefined && isDeepStrictEqual(config, before.get(config.name)?.host.config);
    const wanted = new Map(configs.map((config) => [config.name, config]));
    const gone = [...before].filter(([name]) => !stays(wanted.get(name)));
    const ended = Promise.withResolvers<void>();
    // All of them are made before the first is closed: settings that are wrong change nothing.
    const next = configs.map((config) => {
      const entry = stays(config) ? before.get(config.name) : undefined;
      return [config.name, entry ?? this.#create(config, ended.promise)] as const;
    });
    const closing = gone.map(([, { host }]) => host.close());
    this.#entries.clear();
    for (const [name, entry] of next) this.#entries.set(name, entry);
    this.#configs = configs;
    await Promise.all(closing).finally(() => ended.resolve());
    if (this.#closed) return;
    const fresh = configs.filter(
      (config) => this.#entries.get(config.name) !== before.get(config.name),
    );
    const names = new Set([...gone.map(([name]) => name), ...fresh.map(({ name }) => name)]);
    if (names.size > 0) tell(this.#changeListeners, (listener) => listener([...names]));
  }

  async #close(): Promise<void> {
    const ended = [...this.#entries.values()].map(({ host }) => host.close());
    const late = new AbortController();
    await Promise.race([
      Promise.all([...ended, this.#applied]),
      sleep(this.#options.clock, LONGEST_CLOSE, late.signal).catch(() => {}),
    ]);
    late.abort();
    this.#entries.clear();
    this.#stateListeners.clear();
    this.#changeListeners.clear();
  }
}

/** What one listener throws must not keep the others from hearing. */
const tell = <T>(listeners: ReadonlySet<T>, call: (listener: T) => void): void => {
  for (const listener of listeners) {
    try {
      call(listener);
    } catch (error) {
      diag.error('a listener of the upstream manager threw', error);
    }
  }
};

/**
 * Makes the upstreams of a gateway. Nothing is connected before somebody opens a session.
 *
 * @throws SettingsError when policies are wrong
 */
export const createUpstreamManager = (
  configs: readonly UpstreamConfig[],
  options: UpstreamManagerOptions = {},
): GatewayUpstreams => new Upstreams(configs, options);
