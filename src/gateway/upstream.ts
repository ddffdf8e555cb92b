/**
 * @module
 * Sessions with one upstream, as the relay sees them: one for each client, or one connection for
 * all of them where the upstream is shared.
 */
import { CODE, JsonRpcError } from '../mcp/jsonrpc.ts';
import type { Timer } from '../resilience/clock.ts';
import { TransientSet } from '../resilience/transient.ts';
import { ToolGuard } from './tool-guard.ts';
import type { ClientFacts, Json, UpstreamRequest, UpstreamSession } from './types.ts';
import type { Renewable } from './upstream-call.ts';
import type { Channel } from './upstream-channel.ts';
import { closedError } from './upstream-failure.ts';
import type { UpstreamHost } from './upstream-host.ts';
import { makeRequest } from './upstream-request.ts';
import { answerQuestion, hearNotice } from './upstream-words.ts';

/** On whose behalf a request is made. */
export interface Origin extends Renewable {
  readonly session: Session;
  readonly request: UpstreamRequest;
}

/** What everybody wants to know, whoever's request is running. */
const FOR_ALL = /^notifications\/(?:.*\/list_changed|resources\/updated)$/;

/** The sessions that use one channel, and the way back to each of them. */
export class SessionGroup {
  readonly host: UpstreamHost<Origin>;
  readonly channel: Channel<Origin>;
  readonly #sessions = new Set<Session>();

  /** Begins to connect, as `client`; further sessions of a shared upstream are that client too. */
  constructor(host: UpstreamHost<Origin>, client: ClientFacts) {
    this.host = host;
    this.channel = host.open(client, {
      onrequest: (method, params, { id, signal, origin }) => {
        const { connection } = this.channel;
        const site = {
          identity: host.identity,
          protocolVersion: connection?.protocolVersion,
          sessionId: connection?.facts.sessionId,
        };
        return answerQuestion({ id, method, params, signal }, site, async () => {
          const session = origin?.session ?? this.#only();
          if (!session?.onrequest) {
            throw new JsonRpcError(CODE.methodNotFound, `nobody here takes ${method}`);
          }
          const release = this.#hold(origin ? [origin] : session.running.values());
          const info = { signal, related: origin?.request };
          return session.onrequest(method, params, info).finally(release);
        });
      },
      onnotification: (method, params, origin) => {
        hearNotice({ identity: host.identity, method, params }, () => {
          const forAll = origin === undefined || FOR_ALL.test(method);
          for (const session of forAll ? this.#sessions : [origin.session]) {
            const related = origin?.session === session ? origin.request : undefined;
            session.onnotification?.(method, params, related);
          }
        });
      },
      onreconnected: () => {
        for (const session of this.#sessions) session.onreconnected?.();
      },
    });
  }

  /** A session for one more client. */
  join(): Session {
    const session = new Session(this);
    this.#sessions.add(session);
    return session;
  }

  /** The session is over; the connection ends with the last one, unless it is shared. */
  async leave(session: Session): Promise<void> {
    this.#sessions.delete(session);
    if (!this.host.config.shared) await this.host.leave(this.channel);
  }

  /**
   * An upstream that waits for an answer of the client, perhaps of a person in front of a form, is
   * not silent: the idle timeout of what it works on stands still until it has it.
   */
  #hold(held: readonly Origin[]): () => void {
    const { clock, policies } = this.host;
    const renew = () => {
      for (const origin of held) origin.renew();
    };
    let timer: Timer | undefined;
    const again = () => {
      renew();
      timer = clock.setTimer(policies.shortestTimeout / 2, again);
    };
    again();
    return () => {
      timer?.cancel();
      renew();
    };
  }

  /** Whom the upstream must mean when it does not say. */
  #only(): Session | undefined {
    const sessions = [...this.#sessions];
    if (sessions.length === 1) return sessions[0];
    const waiting = sessions.filter((session) => session.running.size > 0);
    return waiting.length === 1 ? waiting[0] : undefined;
  }
}

/** One session of one client. */
export class Session implements UpstreamSession {
  onrequest: UpstreamSession['onrequest'];
  onnotification: UpstreamSession['onnotification'];
  onreconnected: UpstreamSession['onreconnected'];
  readonly upstream: string;
  readonly #group: SessionGroup;
  readonly #guard: ToolGuard | undefined;
  /** Requests that have no answer yet. */
  readonly running = new TransientSet<Origin>();
  #closed: Promise<void> | undefined;

  constructor(group: SessionGroup) {
    const { config, clock } = group.host;
    this.#group = group;
    this.upstream = config.name;
    this.#guard = config.toolGuard === false ? undefined : new ToolGuard(config.toolGuard, clock);
  }

  get initializeResult(): Json | undefined {
    return this.#group.channel.initializeResult;
  }

  async ready(signal?: AbortSignal): Promise<Json> {
    const { channel, host } = this.#group;
    const connection = await channel.connected(signal, host.config.connectTimeout);
    return connection.initializeResult;
  }

  async request(request: UpstreamRequest): Promise<Json> {
    const { channel, host } = this.#group;
    if (this.#closed) throw closedError(host.config);
    request.signal?.throwIfAborted();
    const origin: Origin = { session: this, request, renew: () => {} };
    const place = this.running.add(origin);
    try {
      return await makeRequest({ host, channel, guard: this.#guard, origin }, request);
    } finally {
      this.running.leave(place);
    }
  }

  notify(method: string, params?: Json): void {
    if (!this.#closed) this.#group.channel.connection?.peer.notify(method, params);
  }

  close(): Promise<void> {
    this.#closed ??= this.#group.leave(this);
    return this.#closed;
  }
}
