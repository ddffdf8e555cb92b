/**
 * @module
 * Keeps one initialised connection to an upstream: replaces it when it ends, with backoff and never
 * for good, and tells those who need it where it stands. Each client has a channel of its own,
 * unless the upstream is shared.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, diag, ROOT_CONTEXT } from '@opentelemetry/api';
import type { Failure, ResilienceError } from '../resilience/failure.ts';
import { orAborted } from '../resilience/or-aborted.ts';
import { faultHook } from '../telemetry/instruments.ts';
import type { PeerHandlers } from './peer.ts';
import type { ClientFacts, Json, LinkEnd, UpstreamConfig } from './types.ts';
import { type ConnectionSettings, connect, type FailedTry, resume } from './upstream-connect.ts';
import { Connection } from './upstream-connection.ts';
import { closedError, endedError, unavailableError } from './upstream-failure.ts';
import type { RestartGate } from './upstream-gate.ts';
import { Leftovers } from './upstream-leftovers.ts';

/** What a channel has from, and tells, the upstream that it belongs to. */
export interface ChannelHost {
  readonly config: UpstreamConfig;
  readonly gate: RestartGate;
  readonly connection: ConnectionSettings;
  /** What must have ended before the first try. */
  readonly after: Promise<unknown> | undefined;
  /** A child is started again, or a server connected to again. */
  onRestart(): void;
  /** A try to connect has failed. */
  onFailed(error: ResilienceError): void;
  /** A connection was lost. */
  onLost(failure: Failure): void;
  onConnected(): void;
  /** A connection has ended for good. */
  onEnded(connection: Pick<Connection<unknown>, 'since' | 'protocolVersion'>, end: LinkEnd): void;
  /** Whether it is connected or trying has changed. */
  onChange(): void;
}

/** What a channel hands on to the sessions that use it. */
export interface ChannelHandlers<Origin>
  extends Pick<PeerHandlers<Origin>, 'onrequest' | 'onnotification'> {
  /** Initialised anew, or for the first time after a failure. */
  onreconnected(): void;
}

// It outlives the request in whose course it was opened.
const detached = AsyncLocalStorage.snapshot();

/** Milliseconds that a request waits for the next try to connect to begin. */
const WORTH_WAITING = 2_000;

/** Ends when the last of its sessions is closed. */
export class Channel<Origin> {
  readonly client: ClientFacts;
  readonly #host: ChannelHost;
  readonly #handlers: ChannelHandlers<Origin>;
  readonly #closing = new AbortController();
  #connection: Connection<Origin> | undefined;
  /** One whose upstream could not be reached, and may still know the session. */
  #suspended: Connection<Origin> | undefined;
  readonly #leftovers: Leftovers;
  #trying = false;
  #initializeResult: Json | undefined;
  #lastFailure: Failure | undefined;
  /** Settles with the outcome of the next try. */
  #next: PromiseWithResolvers<Connection<Origin>> | undefined;
  readonly #running: Promise<void>;

  /** Begins to connect. */
  constructor(host: ChannelHost, client: ClientFacts, handlers: ChannelHandlers<Origin>) {
    this.#host = host;
    this.client = client;
    this.#handlers = handlers;
    this.#leftovers = new Leftovers(host.config.address.kind, host.after);
    const parent = context.active();
    this.#running = detached(() => this.#run(parent));
  }

  /** The connection that is in use. */
  get connection(): Connection<Origin> | undefined {
    return this.#connection?.live ? this.#connection : undefined;
  }

  /** A try to connect is under way. */
  get trying(): boolean {
    return this.#trying;
  }

  /** Of the last connection. */
  get initializeResult(): Json | undefined {
    return this.#initializeResult;
  }

  /**
   * The connection; waits for a try that is under way or begins within `patience`.
   *
   * @throws ResilienceError when the try fails, or none begins soon; the signal's reason
   */
  async connected(
    signal: AbortSignal | undefined,
    patience: number = WORTH_WAITING,
  ): Promise<Connection<Origin>> {
    if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
    if (this.connection) return this.connection;
    const { gate, config } = this.#host;
    const wait = this.#trying ? 0 : gate.wait;
    if (wait > patience) throw unavailableError(config, this.#lastFailure, wait / 1_000);
    this.#next ??= Promise.withResolvers();
    const { promise } = this.#next;
    return signal ? orAborted(promise, signal) : promise;
  }

  /** The upstream has forgotten the session: the connection is replaced at once. */
  evict(connection: Connection<Origin>, reason: string): void {
    if (connection === this.#connection) connection.evict({ kind: 'session', reason });
  }

  /** Ends the connection as if the upstream had: a child dies, a server cannot be reached. */
  break(reason: string): void {
    const connection = this.connection;
    const pid = connection?.facts.pid;
    // Whoever waits for an answer on it is struck, too.
    if (connection) faultHook()?.carry(connection);
    if (pid !== undefined) kill(pid);
    else connection?.evict({ kind: 'lost', reason });
  }

  /** A try has failed, ours or that of another session: ours would too. */
  fail(error: ResilienceError): void {
    if (this.#trying || this.connection) return;
    this.#lastFailure = error.failure;
    this.#settle((next) => next.reject(error));
  }

  /** Ends it; resolves when its child is gone and its session deleted. Idempotent. */
  async close(): Promise<void> {
    const error = closedError(this.#host.config);
    this.#closing.abort(error);
    this.#settle((next) => next.reject(error));
    this.#connection?.evict({ kind: 'closed', reason: 'by us' });
    await this.#running;
    if (this.#suspended) this.#leftovers.leave(this.#suspended, false);
    await this.#leftovers.close();
  }

  async #run(first: Context): Promise<void> {
    const { gate } = this.#host;
    const { signal } = this.#closing;
    for (let tries = 0; !signal.aborted; tries += 1) {
      // The old child has ended before the new one begins.
      await this.#leftovers.reaped;
      const turn = await gate.enter(signal).catch(() => undefined);
      if (!turn) return;
      if (signal.aborted) {
        turn.abandoned();
        return;
      }
      this.#trying = true;
      this.#host.onChange();
      const tried = await this.#try(tries === 0 ? first : ROOT_CONTEXT, tries);
      this.#trying = false;
      if (tried instanceof Connection) {
        const era = turn.succeeded();
        if (signal.aborted) {
          await tried.close();
          return;
        }
        await this.#use(tried, era, tries);
      } else {
        this.#leftovers.add(tried.reaped);
        if (signal.aborted) turn.abandoned();
        else {
          turn.failed(tried.error.failure.retryAfter);
          this.fail(tried.error);
          this.#host.onFailed(tried.error);
        }
      }
      this.#host.onChange();
    }
  }

  /** Takes the suspended connection up again, or makes a new one. */
  async #try(parent: Context, tries: number): Promise<Connection<Origin> | FailedTry> {
    const { connection: settings } = this.#host;
    const { signal } = this.#closing;
    const suspended = this.#suspended;
    if (suspended) {
      const resumed = await resume(settings, suspended, signal);
      if (resumed instanceof Connection) this.#suspended = undefined;
      if (resumed) return resumed;
      this.#suspended = undefined;
      this.#ended(suspended, { kind: 'session', reason: 'it has forgotten it' });
    }
    if (tries > 0) this.#host.onRestart();
    return connect(settings, this.client, this.#handlers, signal, parent);
  }

  /** Hands the connection out until it ends. */
  async #use(connection: Connection<Origin>, era: number, tries: number): Promise<void> {
    const { config, gate } = this.#host;
    this.#connection = connection;
    this.#initializeResult = connection.initializeResult;
    this.#lastFailure = undefined;
    this.#settle((next) => next.resolve(connection));
    this.#host.onConnected();
    if (tries > 0) this.#tellReconnected();
    const end = await connection.ended;
    this.#connection = undefined;
    const closing = this.#closing.signal.aborted;
    if (connection.suspended && !closing) this.#suspended = connection;
    else this.#ended(connection, end);
    if (closing) return;
    const { failure } = endedError(config, end);
    this.#lastFailure = failure;
    // A session that was good for something and is forgotten says nothing against the server.
    if (end.kind !== 'session' || gate.failures > 0 || !connection.useful) gate.lost(era);
    this.#host.onLost(failure);
  }

  /** What a listener throws must not end the connection. */
  #tellReconnected(): void {
    try {
      this.#handlers.onreconnected();
    } catch (error) {
      diag.error(`a listener to "${this.#host.config.name}" threw`, error);
    }
  }

  #ended(connection: Connection<Origin>, end: LinkEnd): void {
    this.#host.onEnded(connection, end);
    this.#leftovers.leave(connection, end.kind === 'session');
  }

  #settle(how: (next: PromiseWithResolvers<Connection<Origin>>) => void): void {
    const next = this.#next;
    this.#next = undefined;
    if (!next) return;
    // It may be that nobody waits any more.
    next.promise.catch(() => {});
    how(next);
  }
}

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
};
