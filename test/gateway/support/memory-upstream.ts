import { forgotten, LinkError, notOpen, unanswered } from '../../../src/gateway/link-failure.ts';
import type { Json, Link, LinkEnd } from '../../../src/gateway/types.ts';
import type { JSONRPCMessage, RequestId } from '../../../src/mcp/jsonrpc.ts';
import { createFailure } from '../../../src/resilience/failure.ts';
import { newRecord, ScriptedSession, type UpstreamSettings } from './upstream-session.ts';

/**
 * What befalls one message on its way. Before the upstream has looked at it:
 * - `end`: the connection ends before it was sent; `refused`: it cannot be sent now
 * - `forgotten`, `terminated`: the upstream does not know the session any more, and says so by a
 *   status or by a JSON-RPC error
 *
 * And after:
 * - `executed`: the connection ends right then
 * - `lost`: its answer is lost, and the link says so; `silent`: nobody says anything
 */
export type Fate =
  | 'arrives'
  | 'end'
  | 'refused'
  | 'forgotten'
  | 'terminated'
  | 'executed'
  | 'lost'
  | 'silent';

/** Why a connection to it cannot be made. */
const refusedError = (): LinkError =>
  new LinkError(createFailure('CONNECTION_REFUSED', { delivery: 'not_sent' }));

/** The upstream U without anything between it and us: for what would need thousands of processes. */
export class MemoryUpstream {
  readonly record = newRecord();
  readonly links: MemoryLink[] = [];
  readonly settings: UpstreamSettings;
  /** Whether the next connection can be made; asked at each. Default: always. */
  accepts: () => boolean | Promise<boolean> = () => true;
  /** Whether it gives sessions ids, as servers over HTTP do. Default false. */
  sessionful = false;
  /** Whether it says to which request a message belongs. Default true; a child cannot. */
  tellsRelated = true;
  /** Asked for each message. Default: all of them arrive. */
  fate: (message: Json) => Fate = () => 'arrives';

  constructor(settings: UpstreamSettings = {}) {
    this.settings = settings;
  }

  /** Makes a link to it, for the manager. */
  readonly createLink = (): MemoryLink => {
    const link = new MemoryLink(this);
    this.links.push(link);
    return link;
  };

  /** The links that are open. */
  get open(): readonly MemoryLink[] {
    return this.links.filter((link) => link.state === 'open');
  }
}

/** A link to the scripted upstream in this very process. */
export class MemoryLink implements Link {
  onmessage: Link['onmessage'];
  onlost: Link['onlost'];
  onend: Link['onend'];
  state: 'new' | 'open' | 'ended' = 'new';
  /** Everything that was sent over it. */
  readonly sent: Json[] = [];
  /** Requests whose answers are lost. */
  readonly #muted = new Set<unknown>();
  readonly #upstream: MemoryUpstream;
  readonly #scripted: ScriptedSession;

  constructor(upstream: MemoryUpstream) {
    this.#upstream = upstream;
    this.#scripted = new ScriptedSession(upstream.settings, upstream.record, {
      session: String(upstream.links.length),
      send: (message, related) =>
        queueMicrotask(() => this.deliver(message, upstream.tellsRelated ? related : undefined)),
      print: () => {},
      die: (code) => this.end({ kind: 'exited', reason: `exited with code ${code}` }),
    });
  }

  get facts(): Link['facts'] {
    return this.#upstream.sessionful ? { sessionId: 'a session' } : {};
  }

  async open(signal?: AbortSignal): Promise<void> {
    const accepted = await this.#upstream.accepts();
    signal?.throwIfAborted();
    if (!accepted) throw refusedError();
    if (this.state === 'new') this.state = 'open';
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.state !== 'open') throw notOpen();
    const sent = structuredClone(message) as unknown as Json;
    const fate = this.#upstream.fate(sent);
    if (fate === 'forgotten') throw forgotten();
    if (fate === 'refused') throw refusedError();
    if (fate === 'terminated') {
      const error = { code: -32600, message: 'Session terminated' };
      if (sent.id !== undefined)
        queueMicrotask(() => this.deliver({ jsonrpc: '2.0', id: sent.id, error }));
      return;
    }
    if (fate === 'end') {
      this.end({ kind: 'lost', reason: 'reset' });
      throw notOpen();
    }
    const id = sent.id as RequestId;
    if (fate === 'lost' || fate === 'silent') this.#muted.add(id);
    this.sent.push(sent);
    this.#scripted.receive(sent);
    if (fate === 'executed') this.end({ kind: 'exited', reason: 'killed by SIGKILL' });
    if (fate === 'lost') this.onlost?.(id, unanswered());
  }

  initialized(): void {}

  async close(): Promise<void> {
    this.end({ kind: 'closed', reason: 'closed' });
  }

  /** What the upstream says after all, to a request whose answer was lost. */
  answer(message: Json): void {
    this.#muted.delete(message.id);
    this.deliver(message);
  }

  /** What the upstream says. */
  deliver(message: Json, related?: RequestId): void {
    if (this.#muted.has(message.id)) return;
    if (this.state === 'open') this.onmessage?.(message as unknown as JSONRPCMessage, related);
  }

  /** The upstream ends it. */
  end(end: LinkEnd): void {
    if (this.state === 'ended') return;
    const opened = this.state === 'open';
    this.state = 'ended';
    this.#scripted.close();
    if (opened) this.onend?.(end);
  }
}
