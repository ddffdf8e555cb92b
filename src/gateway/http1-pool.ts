/**
 * @module
 * The connections to one origin: as many as there are requests at a time, kept for a while when
 * they are free.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Divert } from './gateway-chaos.ts';
import type { HttpProxy } from './http-proxy.ts';
import { connectProxy, KEPT, openTunnel } from './http-tunnel.ts';
import { Http1Connection, reset } from './http1-connection.ts';
import { hostOf, portOf } from './origin.ts';

/** A connection outlives the call that it was made for, and must not carry its context on. */
const detached = AsyncLocalStorage.snapshot();

/** Connections to one origin. */
export class Http1Pool {
  readonly #url: URL;
  /** The one used last is taken first, so that those which are not needed grow old. */
  readonly #free: Http1Connection[] = [];
  readonly #all = new Set<Http1Connection>();
  /** Ends the waits for connections that others make. */
  readonly #waiting = new Set<() => void>();
  readonly #proxy: HttpProxy | undefined;
  #session: Buffer | undefined;

  /** @param proxy through which it is called. Default: none */
  constructor(url: URL, proxy?: HttpProxy) {
    this.#url = url;
    this.#proxy = proxy;
  }

  /**
   * A connection on which a request can be sent at once, whether it is made already or not.
   *
   * @param divert makes the connection in our place; it is used once
   * @param signal ends the wait for that one
   */
  take(
    divert: ReturnType<Divert>,
    signal: AbortSignal | undefined,
  ): Promise<Http1Connection> | Http1Connection {
    if (divert !== undefined) return this.#diverted(divert, signal);
    const kept = this.#free.pop();
    if (kept !== undefined) return kept;
    if (this.#proxy?.tunnel) return this.#tunnelled(this.#proxy, signal);
    return detached(() => this.#adopt(this.#connect(), true));
  }

  /** Breaks every connection. */
  close(): void {
    for (const giveUp of [...this.#waiting]) giveUp();
    for (const connection of [...this.#all]) connection.destroy();
  }

  #connect(): Socket {
    if (this.#proxy) return connectProxy(this.#proxy);
    const to = { host: hostOf(this.#url), port: portOf(this.#url), ...KEPT };
    return this.#url.protocol === 'https:' ? this.#secure(to) : connectTcp(to);
  }

  /** TLS with the origin: on a new connection, or on one that is there. */
  #secure(to: ConnectionOptions): Socket {
    const host = hostOf(this.#url);
    const socket = connectTls({
      ...to,
      ALPNProtocols: ['http/1.1'],
      // No name, no SNI (RFC 6066 3).
      ...(isIP(host) === 0 && { servername: host }),
      ...(this.#session && { session: this.#session }),
    });
    return socket.on('session', (session) => {
      this.#session = session;
    });
  }

  async #tunnelled(proxy: HttpProxy, signal: AbortSignal | undefined): Promise<Http1Connection> {
    const wait = new AbortController();
    const giveUp = (): void => wait.abort(signal?.reason ?? reset('socket hang up'));
    this.#waiting.add(giveUp);
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      const socket = await detached(() => openTunnel(proxy, this.#url, wait.signal));
      return detached(() => {
        const secure = this.#secure({ socket, host: this.#url.hostname });
        secure.once('close', () => socket.destroy());
        return this.#adopt(secure, true);
      });
    } finally {
      this.#waiting.delete(giveUp);
      signal?.removeEventListener('abort', giveUp);
    }
  }

  #diverted(
    divert: NonNullable<ReturnType<Divert>>,
    signal: AbortSignal | undefined,
  ): Promise<Http1Connection> {
    const { hostname, port, protocol } = this.#url;
    return new Promise((resolve, reject) => {
      let waits = true;
      const settle = (act: () => void): void => {
        if (!waits) return;
        waits = false;
        this.#waiting.delete(giveUp);
        signal?.removeEventListener('abort', giveUp);
        act();
      };
      const giveUp = (): void => settle(() => reject(signal?.reason ?? reset('socket hang up')));
      const take = (socket: Socket): void => {
        if (!waits) socket.destroy();
        settle(() => resolve(detached(() => this.#adopt(socket, false))));
      };
      this.#waiting.add(giveUp);
      signal?.addEventListener('abort', giveUp, { once: true });
      const made = divert({ hostname, port, protocol }, (error, socket) => {
        if (error) settle(() => reject(error));
        else take(socket as Socket);
      });
      if (made) take(made as Socket);
    });
  }

  #adopt(socket: Socket, keep: boolean): Http1Connection {
    const connection = new Http1Connection(socket, {
      onFree: (free) => {
        if (keep) this.#free.push(free);
        else free.destroy();
      },
      onGone: (gone) => {
        this.#all.delete(gone);
        const index = this.#free.indexOf(gone);
        if (index >= 0) this.#free.splice(index, 1);
      },
    });
    this.#all.add(connection);
    return connection;
  }
}
