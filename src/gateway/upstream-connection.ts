/**
 * @module
 * One connection to an upstream that has been initialised (`upstream-connect.ts`). Used until it
 * ends; `upstream-channel.ts` replaces it.
 */
import type { Clock } from '../resilience/clock.ts';
import type { Peer } from './peer.ts';
import type { Json, Link, LinkEnd } from './types.ts';

/** Milliseconds in which a child that takes no more messages is to end by itself. */
const LONGEST_END = 1_000;

/** What came of `initialize`. */
export interface Made<Origin> {
  readonly peer: Peer<Origin>;
  readonly initializeResult: Json;
  readonly protocolVersion: string;
  readonly since: number;
}

/** One connection that has been initialised. */
export class Connection<Origin> {
  readonly peer: Peer<Origin>;
  readonly initializeResult: Json;
  readonly protocolVersion: string;
  /** When it was initialised, in milliseconds of the clock. */
  readonly since: number;
  /** Resolves when it is of no use any more, with the reason. */
  readonly ended: Promise<LinkEnd>;
  readonly #link: Link;
  readonly #made: Made<Origin>;
  readonly #end: (end: LinkEnd) => void;
  #closing: Promise<void> | undefined;
  #live = true;
  #suspended = false;
  /** It has answered a request that was more than looking around. */
  useful = false;

  constructor(link: Link, made: Made<Origin>) {
    const { peer } = made;
    this.#link = link;
    this.#made = made;
    this.peer = peer;
    this.initializeResult = made.initializeResult;
    this.protocolVersion = made.protocolVersion;
    this.since = made.since;
    const { promise, resolve } = Promise.withResolvers<LinkEnd>();
    this.ended = promise;
    this.#end = (end) => {
      this.#live = false;
      resolve(end);
    };
    peer.onend = this.#end;
    if (peer.end) this.#end(peer.end);
  }

  /** False once it has ended or been given up. */
  get live(): boolean {
    return this.#live;
  }

  get facts(): Link['facts'] {
    return this.#link.facts;
  }

  /** The upstream could not be reached, and may still know the session when it can. */
  get suspended(): boolean {
    return this.#suspended && this.peer.end === undefined;
  }

  /** Gives it up: nobody uses it any more, and another one is made. */
  evict(end: LinkEnd): void {
    this.#end(end);
  }

  /** Nobody uses it until `resume` has found out whether the session lives. */
  suspend(reason: string): void {
    if (!this.#live) return;
    this.#suspended = true;
    this.#end({ kind: 'lost', reason });
  }

  /**
   * Nothing can be sent to it. Its end tells why, and is near; should it not come, it is over
   * all the same.
   */
  doom(clock: Clock): void {
    if (!this.#live) return;
    this.#live = false;
    const end: LinkEnd = { kind: 'lost', reason: 'it does not read any more' };
    const timer = clock.setTimer(LONGEST_END, () => this.#end(end), true);
    void this.ended.then(() => timer.cancel());
  }

  /** The same session on the same link, to be used again. */
  renewed(): Connection<Origin> {
    return new Connection(this.#link, this.#made);
  }

  /** Ends it once everything that was asked has been answered, or is known to be lost. */
  async retire(): Promise<void> {
    await this.peer.idle();
    await this.close();
  }

  /** Ends it in an orderly way; resolves when its child is gone. Idempotent. */
  close(): Promise<void> {
    this.#live = false;
    this.#closing ??= this.#link.close();
    return this.#closing;
  }
}
