/**
 * @module
 * The upstream sessions of one client session: opened for it, kept in step with the
 * configuration, closed with it.
 */
import type { Clock } from '../resilience/clock.ts';
import type { Source } from './catalog.ts';
import type { ListKind } from './catalog-kinds.ts';
import { createLists, invalidateAll, type UpstreamLists } from './catalog-list.ts';
import type { Introduction } from './relay-initialize.ts';
import type { ClientFacts, UpstreamConfig, UpstreamManager, UpstreamSession } from './types.ts';

type Onrequest = NonNullable<UpstreamSession['onrequest']>;
type Onnotification = NonNullable<UpstreamSession['onnotification']>;

/** What a client session wants to hear of its upstreams. */
export interface SourceListeners {
  onrequest(source: Source, ...args: Parameters<Onrequest>): ReturnType<Onrequest>;
  onnotification(source: Source, ...args: Parameters<Onnotification>): void;
  /** A list has come late, and those who asked before have gone on without it. */
  onlate(source: Source, kind: ListKind): void;
  /** It is there (again), and may offer something else than before. */
  onreconnected(source: Source): void;
  /** Upstreams were added, replaced or removed; `added` are the new ones. */
  onreplaced(added: readonly Source[]): void;
}

/** Where the sessions come from. */
export interface SourceOptions {
  readonly manager: UpstreamManager;
  readonly transparent: boolean;
  readonly clock: Clock;
  /** Lists that are kept for all clients of a shared upstream. */
  readonly sharedLists: (upstream: string) => UpstreamLists | undefined;
}

/** Milliseconds that a new client waits for an upstream that is known to be down. */
const KNOWN_DOWN_WAIT = 2_000;

/** The upstream sessions of one client. */
export class RelaySources {
  readonly #options: SourceOptions;
  readonly #listeners: SourceListeners;
  readonly #client: ClientFacts;
  readonly #anybody: ClientFacts;
  #sources: readonly Source[] = [];
  readonly #stopListening: () => void;
  #closed = false;

  /**
   * Opens a session with every upstream; none is waited for.
   *
   * @param anybody what a shared upstream is told, since it serves more than this client
   */
  constructor(
    options: SourceOptions,
    listeners: SourceListeners,
    client: ClientFacts,
    anybody: ClientFacts,
  ) {
    this.#options = options;
    this.#listeners = listeners;
    this.#client = client;
    this.#anybody = anybody;
    const { manager } = options;
    this.#sources = manager.configs.map((config) => this.#open(config));
    this.#stopListening = manager.onChange((names) => this.#replace(names));
  }

  /** In the order of the configuration. */
  get all(): readonly Source[] {
    return this.#sources;
  }

  /**
   * What each upstream answers to `initialize`, once all have answered or failed.
   *
   * @throws what the connection failed with, where there is only one that is shown as it is
   */
  introductions(): Promise<Introduction[]> {
    return Promise.all(
      this.#sources.map(async ({ name, session }) => {
        if (this.#options.transparent) return { upstream: name, result: await session.ready() };
        return { upstream: name, result: await this.#ready(name, session) };
      }),
    );
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopListening();
    await Promise.allSettled(this.#sources.map(({ session }) => session.close()));
  }

  /**
   * What it answers, if it does within the time that finding out what there is may take: clients
   * wait for no longer than that. One that is down delays a new client by little. Who comes later
   * joins then.
   */
  #ready(name: string, session: UpstreamSession): Promise<Introduction['result']> {
    const { manager, clock } = this.#options;
    const config = manager.configs.find((candidate) => candidate.name === name);
    const { discoveryTimeout = KNOWN_DOWN_WAIT } = config ?? {};
    const isDown = manager.getServerState(name) === 'down';
    const limit = isDown ? Math.min(KNOWN_DOWN_WAIT, discoveryTimeout) : discoveryTimeout;
    const ready = session.ready().catch(() => undefined);
    return new Promise((resolve) => {
      const timer = clock.setTimer(limit, () => resolve(undefined), true);
      void ready.then((result) => {
        timer.cancel();
        resolve(result);
      });
    });
  }

  #open({ name, discoveryTimeout, shared }: UpstreamConfig): Source {
    const { manager, transparent, clock, sharedLists } = this.#options;
    const session = manager.open(name, shared ? this.#anybody : this.#client);
    const source: Source = {
      name,
      session,
      shared,
      lists:
        sharedLists(name) ??
        createLists(session, {
          // The only one has all the time that its own limits leave it, as without us.
          discoveryTimeout: transparent ? Number.POSITIVE_INFINITY : discoveryTimeout,
          clock,
          verbatim: transparent,
          onLate: (kind) => this.#listeners.onlate(source, kind),
        }),
    };
    session.onrequest = (...args) => this.#listeners.onrequest(source, ...args);
    session.onnotification = (...args) => this.#listeners.onnotification(source, ...args);
    session.onreconnected = () => {
      invalidateAll(source.lists);
      this.#listeners.onreconnected(source);
    };
    return source;
  }

  #replace(names: readonly string[]): void {
    if (this.#closed) return;
    const old = this.#sources;
    this.#sources = this.#options.manager.configs.map((config) => {
      const kept = old.find(({ name }) => name === config.name);
      return kept && !names.includes(config.name) ? kept : this.#open(config);
    });
    // The manager has closed them; what was opened here knows that it is of no use any more.
    for (const source of old) if (!this.#sources.includes(source)) void source.session.close();
    this.#listeners.onreplaced(this.#sources.filter((source) => !old.includes(source)));
  }
}
