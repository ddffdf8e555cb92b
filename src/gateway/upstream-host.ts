/**
 * @module
 * One configured upstream while the gateway runs: what all sessions with it share (policies,
 * restarts, names, telemetry), and the state that follows from how they are.
 */
import type { Attributes } from '@opentelemetry/api';
import type { PipelineOptions } from '../resilience/call-options.ts';
import type { Clock, Random } from '../resilience/clock.ts';
import type { Failure, ResilienceError } from '../resilience/failure.ts';
import { faultMarks } from '../telemetry/instruments.ts';
import { VERSION } from '../version.ts';
import { identityOf, type UpstreamIdentity } from './client-operation.ts';
import type {
  ClientFacts,
  Json,
  Link,
  LinkEnd,
  UpstreamConfig,
  UpstreamHealth,
  UpstreamState,
} from './types.ts';
import { Channel, type ChannelHandlers, type ChannelHost } from './upstream-channel.ts';
import type { ConnectionSettings } from './upstream-connect.ts';
import type { Connection } from './upstream-connection.ts';
import { RestartGate } from './upstream-gate.ts';
import { judge } from './upstream-judge.ts';
import { boundedLog } from './upstream-log.ts';
import { UpstreamPolicies } from './upstream-policies.ts';
import { UpstreamTelemetry } from './upstream-telemetry.ts';
import { ListedNames, ToolBreakers } from './upstream-tools.ts';

/** What upstreams are made with. */
export interface HostOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Takes lines for people, without a line break. */
  readonly log: (line: string) => void;
  readonly createLink: (config: UpstreamConfig) => Link;
  readonly pipelineOptions?: PipelineOptions | undefined;
  readonly onState: (upstream: string, state: UpstreamState) => void;
  /** What must have ended before it connects: the upstream of that name before an edit. */
  readonly after?: Promise<unknown> | undefined;
}

/** One configured upstream. `Origin` is what requests are told apart by. */
export class UpstreamHost<Origin> implements ChannelHost {
  readonly config: UpstreamConfig;
  readonly clock: Clock;
  readonly identity: UpstreamIdentity;
  readonly policies: UpstreamPolicies;
  readonly toolBreakers: ToolBreakers;
  readonly names = new ListedNames();
  readonly gate: RestartGate;
  readonly connection: ConnectionSettings;
  readonly after: Promise<unknown> | undefined;
  readonly classifyResult: PipelineOptions['classifyResult'];
  readonly #options: HostOptions;
  readonly #log: (line: string) => void;
  readonly #telemetry: UpstreamTelemetry;
  readonly #channels = new Set<Channel<Origin>>();
  /** Ends of channels that nobody uses any more and whose upstream has not ended. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #unlisten: readonly (() => void)[];
  #state: UpstreamState = 'connecting';
  #reason: string | undefined;
  #restarts = 0;
  #discoveryFailed: string | undefined;
  /** Its last connection worked when it ended. */
  #wasWell = false;
  /** Goes on trying when the last client has left an upstream that is down. */
  #watcher: Channel<Origin> | undefined;
  /** Those of an injected fault that ended its connections, until it is ready again. */
  #marks: Attributes | undefined;
  #closed: Promise<void> | undefined;

  /** @throws SettingsError when the policies are wrong */
  constructor(config: UpstreamConfig, options: HostOptions) {
    const { clock, random, createLink, pipelineOptions } = options;
    this.config = config;
    this.clock = clock;
    this.after = options.after;
    this.#options = options;
    this.identity = identityOf(config.name, config.address);
    this.policies = new UpstreamPolicies(config, { ...pipelineOptions, clock, random });
    this.classifyResult = pipelineOptions?.classifyResult;
    this.toolBreakers = new ToolBreakers(config, clock);
    this.gate = new RestartGate(config.restart, { clock, random, onChange: () => this.onChange() });
    const marks = () => this.#marks;
    this.connection = { config, identity: this.identity, clock, createLink, marks };
    this.#log = boundedLog(clock, options.log);
    this.#telemetry = new UpstreamTelemetry(this.identity);
    const { breaker } = this.policies;
    const changed = () => this.onChange();
    this.#unlisten = (['open', 'half-open', 'closed', 'isolated'] as const).map(
      (event) => breaker?.on(event, changed) ?? (() => {}),
    );
  }

  /**
   * That of the latest news: before the first connection is known to work or not it is
   * `connecting`. When the last session was closed it stays `ready`; one that is `down` then is
   * still tried, or nobody would ever learn that it is back.
   */
  get state(): UpstreamState {
    return this.#state;
  }

  /** Begins to connect for a client. */
  open(client: ClientFacts, handlers: ChannelHandlers<Origin>): Channel<Origin> {
    this.gate.hurry();
    const channel = new Channel<Origin>(this, client, handlers);
    this.#channels.add(channel);
    this.onChange();
    return channel;
  }

  /** Ends what `open` began. */
  async leave(channel: Channel<Origin>): Promise<void> {
    this.#wasWell = channel.connection !== undefined || (this.#wasWell && !this.gate.closed);
    this.#channels.delete(channel);
    const closed = channel.close();
    const left: Promise<void> = closed.catch(() => {}).finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
    if (this.gate.closed && this.#channels.size === 0) void this.#watch(channel.client);
    this.onChange();
    await closed;
  }

  /** A list was asked for: whether it came. */
  discovered(problem: string | undefined): void {
    if (problem === this.#discoveryFailed) return;
    this.#discoveryFailed = problem;
    this.onChange();
  }

  /** How it is, without secrets. */
  health(): UpstreamHealth {
    const channels = [...this.#channels];
    const { breaker } = this.policies;
    const pids = channels.map((channel) => channel.connection?.facts.pid);
    const info = channels.map(({ initializeResult }) => initializeResult?.serverInfo);
    const serverInfo = info.find((value) => value !== undefined) as Json | undefined;
    const wait = this.#state === 'down' ? this.gate.wait : 0;
    return {
      name: this.config.name,
      state: this.#state,
      kind: this.config.address.kind,
      ...(this.#reason !== undefined && this.#state !== 'ready' && { reason: this.#reason }),
      ...(breaker && { breaker: breaker.toJSON() as unknown as Json }),
      restarts: this.#restarts,
      sessions: channels.length,
      ...(wait > 0 && { retryAfter: wait / 1_000 }),
      pids: pids.filter((pid) => pid !== undefined),
      ...(serverInfo && { serverInfo }),
    };
  }

  /** Ends all connections as if the upstream had: children die, servers cannot be reached. */
  break(reason: string): void {
    this.#struck();
    for (const channel of this.#channels) channel.break(reason);
  }

  /** Has every session forgotten, as by a server that was started again. */
  forget(reason: string): void {
    this.#struck();
    for (const channel of this.#channels) {
      if (channel.connection) channel.evict(channel.connection, reason);
    }
  }

  /** What follows until it is ready again is the doing of the fault that strikes now. */
  #struck(): void {
    const connected = [...this.#channels].some(({ connection }) => connection !== undefined);
    if (connected) this.#marks = faultMarks();
  }

  /** Ends its sessions, children and timers. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  onRestart(): void {
    this.#restarts += 1;
    this.#telemetry.restarted(this.#marks);
  }

  onFailed(error: ResilienceError): void {
    for (const channel of this.#all) channel.fail(error);
    this.#failed(error.failure);
  }

  onLost(failure: Failure): void {
    this.#failed(failure);
  }

  onConnected(): void {
    this.#log(`upstream "${this.config.name}" is ready`);
    this.onChange();
  }

  onEnded(
    { since, protocolVersion }: Pick<Connection<unknown>, 'since' | 'protocolVersion'>,
    end: LinkEnd,
  ): void {
    const seconds = (this.clock.now() - since) / 1_000;
    this.#telemetry.sessionEnded(seconds, protocolVersion, end);
  }

  onChange(): void {
    if (this.#closed) return;
    const [state, reason] = judge({
      channels: this.#all,
      gate: this.gate,
      breaker: this.policies.breaker?.state,
      discoveryFailed: this.#discoveryFailed,
      unusedAndWell: this.#wasWell && this.#channels.size === 0,
    });
    if (reason !== undefined) this.#reason = reason;
    if (state === this.#state) return;
    const from = this.#state;
    this.#state = state;
    const why = state === 'ready' ? undefined : this.#reason;
    this.#telemetry.changed(from, state, why, this.#marks);
    if (state === 'ready') this.#marks = undefined;
    this.#options.onState(this.config.name, state);
  }

  #failed(failure: Failure): void {
    this.#reason = failure.message;
    const wait = this.gate.wait;
    const next = wait > 0 ? `; next try in ${(wait / 1_000).toFixed(1)} s` : '';
    this.#log(`${failure.message}${next}`);
    this.onChange();
  }

  get #all(): readonly Channel<Origin>[] {
    return this.#watcher ? [...this.#channels, this.#watcher] : [...this.#channels];
  }

  /** Connects once, as ourselves, whenever that is possible again. */
  async #watch({ protocolVersion }: ClientFacts): Promise<void> {
    if (this.#closed || this.#watcher) return;
    const clientInfo = { name: 'mcp-resilience', version: VERSION };
    const facts = { protocolVersion, capabilities: {}, clientInfo };
    const watcher = new Channel<Origin>(this, facts, { onreconnected: () => {} });
    this.#watcher = watcher;
    while (!this.#closed && !this.#wasWell) {
      await watcher.connected(undefined, Number.POSITIVE_INFINITY).then(
        () => {
          this.#wasWell = true;
        },
        () => {},
      );
    }
    await watcher.close();
    this.#watcher = undefined;
    this.onChange();
  }

  async #close(): Promise<void> {
    for (const stop of this.#unlisten) stop();
    const closing = this.#all.map((channel) => channel.close());
    this.#channels.clear();
    // At once: the next of that name may report the same series already.
    this.policies.destroy();
    this.toolBreakers.destroy();
    this.#telemetry.destroy();
    await Promise.all([...closing, ...this.#leaving]);
    this.gate.destroy();
  }
}
