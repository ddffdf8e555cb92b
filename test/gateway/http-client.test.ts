import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HttpClient } from '../../src/gateway/http-client.ts';
import type { HttpResponse } from '../../src/gateway/http-response.ts';
import { LinkError } from '../../src/gateway/link-failure.ts';
import { systemClock } from '../../src/resilience/clock.ts';
import { http, rejection } from '../fixtures/loopback.ts';
import { cert, key } from '../fixtures/tls.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';

const client = (url: string, headers: Record<string, string> = {}) => {
  const made = new HttpClient(url, headers, systemClock);
  onTestFinished(() => made.close());
  return made;
};

const textOf = async (response: HttpResponse): Promise<string> => {
  const body = await response.read(1_000_000, Number.POSITIVE_INFINITY, systemClock);
  return body.kind === 'read' ? body.bytes.toString() : body.kind;
};

const get = { method: 'GET', headers: {} } as const;
const post = (body: string) => ({ method: 'POST', headers: {}, body }) as const;

interface Raw {
  readonly port: number;
  readonly url: string;
  readonly sockets: Socket[];
  /** Requests by connection, as they came. */
  readonly seen: string[][];
}

/** A server that answers the n-th request on each connection with what `answer` says, raw. */
const raw = async (
  answer: (socket: Socket, connection: number, request: number) => void,
): Promise<Raw> => {
  const sockets: Socket[] = [];
  const seen: string[][] = [];
  const server = createServer((socket) => {
    const connection = sockets.push(socket) - 1;
    const requests: string[] = [];
    seen.push(requests);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      const text = bytes.toString('latin1');
      // The tests send small requests, each in one piece.
      requests.push(text);
      answer(socket, connection, requests.length - 1);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}/mcp`, sockets, seen };
};

const ok = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  const error = await rejection(() => work);
  expect(error).toBeInstanceOf(LinkError);
  return (error as LinkError).failure.code;
};

describe('HTTP client', () => {
  verifies('link.http.reuse', async () => {
    const bystander = await raw((socket) => socket.write(ok('b')));
    const other = client(bystander.url);
    const roundTrips = async () => {
      for (let turn = 0; turn < 20; turn += 1) await textOf(await other.request(get));
    };
    const answers: Record<string, (socket: Socket) => void> = {
      'whole answers': (socket) => socket.write(ok('a')),
      'an answer to nobody at once': (socket) => socket.write(`${ok('a')}${ok('EVIL')}`),
      'an answer to nobody later': (socket) => {
        socket.write(ok('a'));
        setImmediate(() => setImmediate(() => socket.write(ok('EVIL'))));
      },
      'Connection: close': (socket) => socket.write(ok('a', 'Connection: close\r\n')),
      'a hint that there is no time left': (socket) =>
        socket.write(ok('a', 'Keep-Alive: timeout=1\r\n')),
      'the end of the connection': (socket) => {
        socket.write(ok('a'));
        socket.end();
      },
    };
    for (const [name, answer] of Object.entries(answers)) {
      const server = await raw(answer);
      const made = client(server.url);
      const reused = name === 'whole answers';
      for (let turn = 0; turn < 3; turn += 1) {
        expect(await textOf(await made.request(get)), name).toBe('a');
        // What the server does to a connection that is free is to be seen, long before it gets old.
        if (!reused) await roundTrips();
      }
      expect(
        server.seen.map(({ length }) => length),
        name,
      ).toEqual(reused ? [3] : [1, 1, 1]);
    }
  });

  test('requests at one time have a connection each, and those that are free are used first', async () => {
    const waiting: Socket[] = [];
    const server = await raw((socket) => void waiting.push(socket));
    const made = client(server.url);
    const ask = async (count: number) => {
      const asked = Array.from({ length: count }, () => made.request(get).then(textOf));
      await until(() => waiting.length === count);
      for (const [index, socket] of waiting.splice(0).entries()) socket.write(ok(`${index}`));
      return (await Promise.all(asked)).toSorted();
    };
    expect(await ask(4)).toEqual(['0', '1', '2', '3']);
    expect(await ask(2)).toEqual(['0', '1']);
    expect(await ask(5)).toHaveLength(5);
    expect(server.sockets).toHaveLength(5);
  });

  test('a server that answers before it has read everything: the answer counts, the connection is not used again', async () => {
    const server = await raw((socket) => {
      socket.pause();
      socket.write(ok('enough'));
    });
    const made = client(server.url);
    expect(await textOf(await made.request(post('x'.repeat(20 * 1024 * 1024))))).toBe('enough');
    expect(await textOf(await made.request(get))).toBe('enough');
    expect(server.sockets).toHaveLength(2);
  });

  test('a free connection is given up after 4 s, or a second before the server would', async () => {
    const hinted = await raw((socket) => socket.write(ok('a', 'Keep-Alive: timeout=2, max=9\r\n')));
    const made = client(hinted.url);
    await textOf(await made.request(get));
    expect(hinted.sockets.map(({ destroyed }) => destroyed)).toEqual([false]);
    // A real timer: the socket's own, of one second.
    await until(() => hinted.sockets[0]?.destroyed === true);
  });

  test('an answer that does not end, and one that is none, break the connection and say so', async () => {
    const answers: Record<string, string> = {
      CONNECTION_RESET: 'HTTP/1.1 200 OK\r\nContent-Le',
      UPSTREAM_INVALID_RESPONSE: 'SSH-2.0-OpenSSH_9.6\r\n',
    };
    for (const [code, answer] of Object.entries(answers)) {
      const server = await raw((socket) => socket.end(answer));
      expect(await codeOf(client(server.url).request(get))).toBe(code);
    }
    const cut = await raw((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'),
    );
    expect(await textOf(await client(cut.url).request(get))).toBe('gone');
    const damaged = await raw((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
    );
    expect(await textOf(await client(damaged.url).request(get))).toBe('gone');
  });

  test('abort: before it is sent, before the head, in the body; each breaks its connection alone', async () => {
    const server = await raw((socket, _connection, request) => {
      if (request === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc');
      else if (request === 0) socket.write(ok('first'));
    });
    const made = client(server.url);
    const reason = new Error('enough');
    const aborted = AbortSignal.abort(reason);
    expect(await rejection(() => made.request({ ...get, signal: aborted }))).toBe(reason);
    expect(server.sockets).toHaveLength(0);

    await textOf(await made.request(get));
    const inBody = new AbortController();
    const response = await made.request({ ...get, signal: inBody.signal });
    const ended = textOf(response);
    inBody.abort(reason);
    expect(await ended).toBe('gone');
    await until(() => server.sockets[0]?.destroyed === true);

    const silent = await raw(() => {});
    const other = client(silent.url);
    const beforeHead = new AbortController();
    const kept = rejection(() => other.request(get));
    const asked = rejection(() => other.request({ ...get, signal: beforeHead.signal }));
    await until(() => silent.seen.length === 2);
    beforeHead.abort(reason);
    expect(await asked).toBe(reason);
    await until(() => silent.sockets[1]?.destroyed === true);
    expect(silent.sockets[0]?.destroyed).toBe(false);
    other.close();
    expect(await kept).toBeInstanceOf(LinkError);
    await until(() => silent.sockets[0]?.destroyed === true);
    expect(await codeOf(other.request(get))).toBe('UPSTREAM_UNAVAILABLE');
  });

  test('abort and close at the moment when a connection is handed over: nothing is sent', async () => {
    for (const how of ['abort', 'close'] as const) {
      const server = await raw((socket) => socket.write(ok('a')));
      const controller = new AbortController();
      const reason = new Error('enough');
      const made = new HttpClient(server.url, {}, systemClock, () => (_options, callback) => {
        const socket = connect(server.port, '127.0.0.1', () => {
          callback?.(null, socket);
          if (how === 'abort') controller.abort(reason);
          else made.close();
        });
        return undefined;
      });
      const error = await rejection(() => made.request({ ...get, signal: controller.signal }));
      if (how === 'abort') expect(error).toBe(reason);
      else expect(error).toMatchObject({ failure: { code: 'UPSTREAM_UNAVAILABLE' } });
      await until(() => server.sockets[0]?.destroyed === true);
      expect(server.seen).toEqual([[]]);
      made.close();
    }
  });

  test('an aborted signal holds no listener of a request that is over', async () => {
    const server = await raw((socket) => socket.write(ok('a')));
    const made = client(server.url);
    const controller = new AbortController();
    const { signal } = controller;
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners += 1;
      add(...given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...given);
    };
    for (let turn = 0; turn < 5; turn += 1) await textOf(await made.request({ ...get, signal }));
    expect(listeners).toBe(0);
  });

  test('what is sent: the head as it should be, bytes beyond ASCII as they are, and no header that is ours to set', async () => {
    const server = await raw((socket) => socket.write(ok('a')));
    const made = client(`${server.url}?a=b%20c`, {
      'X-Name': 'caf\xe9',
      'Content-Length': '1',
      'transfer-encoding': 'chunked',
      Connection: 'close',
    });
    await textOf(await made.request({ ...post('{"a":"\u00fc"}'), headers: { 'x-more': 'yes' } }));
    await textOf(await made.request({ ...get, headers: { 'x-name': 'own' } }));
    const [[first = '', second = ''] = []] = server.seen;
    expect(first.split('\r\n')).toEqual([
      'POST /mcp?a=b%20c HTTP/1.1',
      `host: 127.0.0.1:${server.port}`,
      expect.stringMatching(/^user-agent: mcp-resilience\/\d/),
      'x-name: caf\xe9',
      'x-more: yes',
      'content-length: 10',
      '',
      Buffer.from('{"a":"\u00fc"}').toString('latin1'),
    ]);
    expect(second.split('\r\n').filter((line) => /^(x-|content)/.test(line))).toEqual([
      'x-name: own',
    ]);
  });

  test('a value that would begin another header is refused, and nothing is sent', async () => {
    const server = await raw((socket) => socket.write(ok('a')));
    const made = client(server.url);
    for (const value of ['a\r\nx-evil: 1', 'a\nb', 'a\0', 'snow \u2603']) {
      const asked = made.request({ ...get, headers: { 'mcp-protocol-version': value } });
      expect(await rejection(() => asked)).toMatchObject({
        failure: { cause: { code: 'ERR_INVALID_CHAR' } },
      });
    }
    expect(server.sockets).toHaveLength(0);
  });

  test('a body that nobody reads yet makes the server wait, and comes whole when somebody does', async () => {
    const size = 32 * 1024 * 1024;
    let written = 0;
    const port = await http((_request, response) => {
      const piece = Buffer.alloc(256 * 1024, 'x');
      const write = () => {
        while (written < size) {
          written += piece.length;
          if (!response.write(piece)) return void response.once('drain', write);
        }
        response.end();
      };
      write();
    });
    const response = await client(`http://127.0.0.1:${port}/`).request(get);
    let last = -1;
    await until(() => {
      const still = written === last;
      last = written;
      return still;
    });
    expect(written).toBeLessThan(size);
    const body = await response.read(size, Number.POSITIVE_INFINITY, systemClock);
    expect(body.kind === 'read' && body.bytes.length).toBe(size);
  });

  test('what comes is handled in the context of its own request, whoever opened the connection', async () => {
    const server = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n');
      setImmediate(() => socket.write('a'));
      setImmediate(() => setImmediate(() => socket.write('b')));
    });
    const made = client(server.url);
    const storage = new AsyncLocalStorage<string>();
    for (const name of ['one', 'two', 'three']) {
      const seen = await storage.run(name, async () => {
        const response = await made.request(get);
        return new Promise<unknown[]>((resolve) => {
          const contexts: unknown[] = [];
          response.consume({
            onData: () => contexts.push(storage.getStore()),
            onEnd: () => resolve([...contexts, storage.getStore()]),
          });
        });
      });
      expect(new Set(seen)).toEqual(new Set([name]));
    }
    expect(server.sockets).toHaveLength(1);
  });

  test('TLS: the certificate and the name are checked, and sessions are resumed', async () => {
    const server = createHttpsServer({ cert, key }, (_request, response) => {
      response.setHeader('connection', 'close');
      response.end('secret');
    });
    const resumed: boolean[] = [];
    server.on('secureConnection', (socket: TLSSocket) => resumed.push(socket.isSessionReused()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await codeOf(client(`https://localhost:${port}/`).request(get))).toBe('TLS_FAILURE');
    const before = getCACertificates();
    setDefaultCACertificates([...before, cert]);
    onTestFinished(() => setDefaultCACertificates(before));
    expect(await codeOf(client(`https://127.0.0.1:${port}/`).request(get))).toBe('TLS_FAILURE');
    const made = client(`https://localhost:${port}/`);
    resumed.length = 0;
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await textOf(await made.request(get))).toBe('secret');
    }
    expect(resumed).toEqual([false, true]);
  });
});
