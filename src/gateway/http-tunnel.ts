/**
 * @module
 * Connections to a proxy, and through it to an upstream (RFC 9110, section 9.3.6: CONNECT).
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createFailure } from '../resilience/failure.ts';
import type { HttpProxy } from './http-proxy.ts';
import { LinkError } from './link-failure.ts';
import { portOf } from './origin.ts';

/** Of every connection: after 30 s of silence it is asked whether the peer still exists. */
export const KEPT = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 } as const;

/** Longest head of an answer to CONNECT. */
const MAX_HEAD = 16 * 1024;

/** What is said of a tunnel that could not be made: the upstream has seen nothing. */
const noTunnel = ({ hostname, port }: HttpProxy, target: string, why: string): LinkError =>
  new LinkError(
    createFailure('UPSTREAM_UNAVAILABLE', {
      message: `The proxy ${hostname}:${port} does not connect us with ${target}: ${why}.`,
      delivery: 'not_sent',
    }),
  );

/** Begins to connect with a proxy. */
export const connectProxy = ({ protocol, hostname: host, port }: HttpProxy): Socket => {
  const to = { host, port, ...KEPT };
  if (protocol === 'http:') return connectTcp(to);
  const servername = isIP(host) === 0 ? { servername: host } : {};
  return connectTls({ ...to, ...servername, ALPNProtocols: ['http/1.1'] });
};

/**
 * A connection to the origin of a URL, through a proxy. What is written to it reaches the origin.
 *
 * @param signal ends the wait for it
 * @throws LinkError when the proxy refuses; what the connection to it failed with; the signal's
 * reason
 */
export const openTunnel = (proxy: HttpProxy, url: URL, signal: AbortSignal): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const target = `${url.hostname}:${portOf(url)}`;
    const socket = connectProxy(proxy);
    let head = Buffer.alloc(0);
    const settle = (act: () => void): void => {
      signal.removeEventListener('abort', onAbort);
      socket.removeListener('data', onData);
      socket.removeListener('error', onError);
      socket.removeListener('close', onClose);
      act();
    };
    const fail = (error: unknown): void =>
      settle(() => {
        // What a broken connection says later is of no interest.
        socket.on('error', () => {}).destroy();
        reject(error);
      });
    const onAbort = (): void => fail(signal.reason);
    const onError = (error: Error): void => fail(error);
    const onClose = (): void => fail(noTunnel(proxy, target, 'it ended the connection'));
    const onData = (bytes: Buffer): void => {
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0 && head.length <= MAX_HEAD) return;
      const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1', 0, 16)) ?? [];
      if (end < 0 || status === undefined) {
        fail(noTunnel(proxy, target, 'its answer is no HTTP'));
      } else if (!status.startsWith('2')) {
        fail(noTunnel(proxy, target, `it answers CONNECT with status ${status}`));
      } else {
        settle(() => {
          socket.pause();
          if (head.length > end + 4) socket.unshift(head.subarray(end + 4));
          resolve(socket);
        });
      }
    };
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('data', onData).on('error', onError).on('close', onClose);
    const credentials =
      proxy.authorization === undefined ? '' : `\r\nproxy-authorization: ${proxy.authorization}`;
    socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}${credentials}\r\n\r\n`);
    if (signal.aborted) onAbort();
  });
