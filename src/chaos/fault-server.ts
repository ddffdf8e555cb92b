/**
 * @module
 * A server on loopback that misbehaves as it is told: requests that a fault strikes are connected
 * here instead of to their upstream, so that what their client meets are real sockets, real bytes
 * and real errors.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What happens to one connection once its request is there. */
export type Play = (socket: Socket) => void;

/** Bytes of a request that are waited for; of one that is longer the rest is not read. */
const MAX_REQUEST = 1024 * 1024;

// The server outlives the call that first needs it, and must not run in its async context.
const detached = AsyncLocalStorage.snapshot();

/** True once a whole HTTP/1.1 request has come. */
const isWhole = (request: string): boolean => {
  const end = request.indexOf('\r\n\r\n');
  if (end < 0) return request.length > MAX_REQUEST;
  const head = request.slice(0, end);
  const body = request.slice(end + 4);
  if (/^transfer-encoding:.*chunked/im.test(head)) return body.endsWith('0\r\n\r\n');
  const [, length = '0'] = /^content-length:\s*(\d+)/im.exec(head) ?? [];
  return body.length >= Math.min(Number(length), MAX_REQUEST);
};

const receive = (socket: Socket, plays: Map<number, Play>): void => {
  const { remotePort = 0 } = socket;
  let request = '';
  // Whoever leaves early has what it wanted.
  socket.on('error', () => {});
  socket.on('close', () => void plays.delete(remotePort));
  socket.setEncoding('latin1').on('data', (text) => {
    request += text;
    if (!isWhole(request)) return;
    socket.removeAllListeners('data').resume();
    const play = plays.get(remotePort);
    if (play) play(socket);
    else socket.destroy();
  });
};

export class FaultServer {
  /** By the port of the client's end. */
  readonly #plays = new Map<number, Play>();
  readonly #sockets = new Set<Socket>();
  #server: Promise<Server> | undefined;

  /** Connections that are open. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Connects a client to it; `play` is what it does with the request of that connection. */
  async connect(play: Play): Promise<Socket> {
    this.#server ??= detached(() => this.#listen());
    const { port } = (await this.#server).address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1' });
    await once(socket, 'connect');
    this.#plays.set(socket.localPort ?? 0, play);
    return socket;
  }

  /** Closes every connection and stops listening. */
  async close(): Promise<void> {
    const server = await this.#server?.catch(() => undefined);
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    server?.close();
  }

  async #listen(): Promise<Server> {
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      receive(socket, this.#plays);
    });
    server.unref();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }
}
