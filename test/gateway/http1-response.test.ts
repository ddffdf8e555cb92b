import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HeadReader, HttpParseError, type ResponseHeaders } from '../../src/gateway/http1-head.ts';
import { ResponseParser } from '../../src/gateway/http1-response.ts';
import { verifies } from '../fixtures/verifies.ts';

interface Read {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
  /** Undefined while it is not complete. */
  readonly reusable: boolean | undefined;
}

/** What the parser makes of the bytes, given in these pieces. @throws HttpParseError */
const parse = (pieces: readonly Buffer[], closes = false, heads = new HeadReader()): Read => {
  let status = 0;
  let headers: ResponseHeaders = {};
  const body: Buffer[] = [];
  let reusable: boolean | undefined;
  let ends = 0;
  const parser = new ResponseParser(
    {
      onHead: (...head) => {
        expect(status).toBe(0);
        [status, headers] = head;
      },
      onBody: (bytes) => {
        expect(bytes.length).toBeGreaterThan(0);
        body.push(bytes);
      },
      onEnd: (free) => {
        ends += 1;
        reusable = free;
      },
    },
    heads,
  );
  for (const piece of pieces) if (!parser.done) parser.execute(piece);
  if (closes) parser.finish();
  expect(ends).toBe(parser.done ? 1 : 0);
  return { status, headers, body: Buffer.concat(body).toString('latin1'), reusable };
};

const whole = (text: string, closes = false): Read => parse([Buffer.from(text, 'latin1')], closes);

const codeOf = (text: string): string => {
  try {
    whole(text);
  } catch (error) {
    expect(error).toBeInstanceOf(HttpParseError);
    return (error as HttpParseError).code;
  }
  return 'accepted';
};

/** Where the response ends that the bytes begin with. */
const ends = (bytes: Buffer): number => {
  const parser = new ResponseParser({ onHead() {}, onBody() {}, onEnd() {} }, new HeadReader());
  let at = 0;
  while (at < bytes.length && !parser.done) {
    parser.execute(bytes.subarray(at, at + 1));
    at += 1;
  }
  return at;
};

/** Cuts bytes at the given places. */
const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
};

const OK = 'HTTP/1.1 200 OK\r\n';

const tokens = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,8}$/);
const values = fc.stringMatching(/^[!-~\x80-\xff]([ \t!-~\x80-\xff]{0,12}[!-~\x80-\xff])?$/);
const FRAMING =
  /^(?:content-length|transfer-encoding|connection|trailer|upgrade|proxy-connection)$/i;
const moreHeaders = fc.array(
  fc.tuple(
    tokens.filter((name) => !FRAMING.test(name)),
    values,
  ),
  { maxLength: 4 },
);
const bodies = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes));

/** A response as servers send them, and what is in it. */
const responses = fc
  .record({
    status: fc.constantFrom(200, 201, 202, 204, 304, 400, 404, 429, 500, 503),
    reason: fc.constantFrom('', ' ', ' OK', ' Some Reason'),
    headers: moreHeaders,
    framing: fc.constantFrom('length', 'chunks'),
    body: bodies,
    sizes: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 }),
    extension: fc.constantFrom('', ';x', ';a=b', ';a="b c"'),
    trailer: fc.constantFrom('', 'X-Trailer: yes\r\n', 'A: 1\r\nB: 2\r\n'),
    interim: fc.constantFrom(
      '',
      'HTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n',
    ),
    close: fc.boolean(),
  })
  .map(({ status, reason, headers, framing, body, sizes, extension, trailer, interim, close }) => {
    const empty = status === 204 || status === 304;
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    let rest = Buffer.alloc(0);
    let said = '';
    if (!empty && framing === 'length') {
      said = `Content-Length: ${body.length}\r\n`;
      rest = body;
    } else if (!empty) {
      said = 'Transfer-Encoding: chunked\r\n';
      const parts: Buffer[] = [];
      for (let at = 0, turn = 0; at < body.length; turn += 1) {
        const part = body.subarray(at, at + (sizes[turn % sizes.length] ?? 1));
        const size =
          turn % 2 === 0 ? part.length.toString(16) : part.length.toString(16).toUpperCase();
        parts.push(Buffer.from(`${size}${extension}\r\n`), part, Buffer.from('\r\n'));
        at += part.length;
      }
      rest = Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
    }
    const head = `${interim}HTTP/1.1 ${status}${reason}\r\n${lines}${said}${close ? 'Connection: close\r\n' : ''}\r\n`;
    return {
      bytes: Buffer.concat([Buffer.from(head, 'latin1'), rest]),
      status,
      body: empty ? '' : body.toString('latin1'),
      close,
    };
  });

/** What `node:http`, with llhttp, makes of the same bytes from a server that then hangs up. */
const served = new Map<string, Buffer>();
const agentless = { agent: false } as const;
let port = 0;
const server = createServer((socket: Socket) => {
  socket.on('error', () => {});
  socket.once('data', (asked) => {
    const [, path = ''] = /^GET \/(\S+)/.exec(asked.toString('latin1')) ?? [];
    socket.end(served.get(path) ?? Buffer.alloc(0));
  });
});
let asked = 0;
const byNode = (bytes: Buffer): Promise<Omit<Read, 'reusable' | 'headers'> | 'refused'> => {
  asked += 1;
  const path = String(asked);
  served.set(path, bytes);
  return new Promise((resolve) => {
    request({ host: '127.0.0.1', port, path: `/${path}`, ...agentless }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', () => resolve('refused'));
      response.on('end', () => {
        const body = Buffer.concat(parts).toString('latin1');
        resolve({ status: response.statusCode ?? 0, body });
      });
    })
      .on('upgrade', (_response, socket) => {
        socket.destroy();
        resolve('refused');
      })
      .on('error', () => resolve('refused'))
      .end();
  });
};

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => void server.close());

describe('responses of HTTP/1.1', () => {
  verifies('link.http.parse', () => {
    fc.assert(
      fc.property(responses, fc.array(fc.nat(), { maxLength: 12 }), (response, places) => {
        const { bytes, status, body, close } = response;
        const expected = { status, body, reusable: !close };
        expect(parse([bytes])).toMatchObject(expected);
        expect(parse(cut(bytes, places))).toMatchObject(expected);
        expect(parse([...bytes].map((byte) => Buffer.from([byte])))).toMatchObject(expected);
      }),
      { numRuns: 500 },
    );
  });

  test('on one connection, what was read before changes nothing', () => {
    fc.assert(
      fc.property(fc.array(responses, { maxLength: 6 }), fc.array(fc.nat()), (list, order) => {
        const heads = new HeadReader();
        // Twice each, so that the same head comes again, and others in between.
        const all = [...list, ...list, ...order.map((at) => list[at % list.length])];
        for (const response of all) {
          if (response === undefined) continue;
          const alone = parse([response.bytes]);
          expect(parse([response.bytes], false, heads)).toEqual(alone);
          expect(parse([response.bytes], false, heads)).toEqual(alone);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('what comes after a response makes its connection useless, and is no part of it', () => {
    fc.assert(
      fc.property(responses, fc.uint8Array({ minLength: 1, maxLength: 8 }), (response, more) => {
        const read = parse([Buffer.concat([response.bytes, more])]);
        expect(read).toMatchObject({ body: response.body, reusable: false });
      }),
    );
  });

  test('a response that is cut anywhere is not complete', () => {
    fc.assert(
      fc.property(responses, fc.nat(), ({ bytes }, place) => {
        const read = parse([bytes.subarray(0, place % bytes.length)], true);
        expect(read.reusable).toBeUndefined();
      }),
    );
  });

  verifies('link.http.strict', async () => {
    const mutations = fc.array(
      fc.record({
        at: fc.nat(),
        kind: fc.constantFrom('replace', 'insert', 'remove', 'double'),
        byte: fc.constantFrom(...Buffer.from('\r\n\t :;,0123456789aAfFgx\0\x7f\x80HTP/-')),
      }),
      { minLength: 1, maxLength: 3 },
    );
    const mutate = (
      bytes: Buffer,
      changes: readonly { at: number; kind: string; byte: number }[],
    ) => {
      const list = [...bytes];
      for (const { at, kind, byte } of changes) {
        const place = at % list.length;
        if (kind === 'replace') list[place] = byte;
        else if (kind === 'insert') list.splice(place, 0, byte);
        else if (kind === 'remove') list.splice(place, 1);
        else list.splice(place, 0, ...list.slice(place, place + 12));
      }
      return Buffer.from(list);
    };
    let accepted = 0;
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(responses, mutations, async ({ bytes }, changes) => {
        const mutated = mutate(bytes, changes);
        let ours: Read;
        try {
          ours = parse([mutated], true);
        } catch (error) {
          expect(error).toBeInstanceOf(HttpParseError);
          refused += 1;
          return;
        }
        if (ours.reusable === undefined) return;
        accepted += 1;
        // What comes after it has made its connection useless already.
        const end = ends(mutated);
        // Whatever we take, llhttp takes too, and as the same: nothing is read in two ways.
        expect(await byNode(mutated.subarray(0, end))).toEqual({
          status: ours.status,
          body: ours.body,
        });
      }),
      { numRuns: 1_500 },
    );
    expect(accepted).toBeGreaterThan(200);
    expect(refused).toBeGreaterThan(200);
  });

  test('what could be read in two ways is refused', () => {
    const length = 'HPE_UNEXPECTED_CONTENT_LENGTH';
    const coding = 'HPE_INVALID_TRANSFER_ENCODING';
    const token = 'HPE_INVALID_HEADER_TOKEN';
    const size = 'HPE_INVALID_CHUNK_SIZE';
    const chunked = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
    const cases: Record<string, string> = {
      [`${OK}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`]: length,
      [`${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`]: length,
      [`${OK}Content-Length: 1, 1\r\n\r\na`]: 'HPE_INVALID_CONTENT_LENGTH',
      [`${OK}Content-Length: +1\r\n\r\na`]: 'HPE_INVALID_CONTENT_LENGTH',
      [`${OK}Content-Length: 0x1\r\n\r\na`]: 'HPE_INVALID_CONTENT_LENGTH',
      [`${OK}Content-Length: 9999999999999999\r\n\r\n`]: 'HPE_INVALID_CONTENT_LENGTH',
      [`${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`]: coding,
      [`${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`]: coding,
      [`${OK}Transfer-Encoding: identity\r\n\r\n`]: coding,
      'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n': coding,
      [`${OK}Transfer-Encoding: chunked\t\r\n\r\n`]: token,
      [`${OK}Content-Length:\t1\r\n\r\na`]: token,
      [`${OK}A : b\r\n\r\n`]: token,
      [`${OK}A\r\n\r\n`]: token,
      [`${OK}: b\r\n\r\n`]: token,
      [`${OK} A: b\r\n\r\n`]: token,
      [`${OK}A: b\r\n c\r\n\r\n`]: token,
      [`${OK}A: b\nB: c\r\n\r\n`]: token,
      [`${OK}A: b\rc\r\n\r\n`]: token,
      [`${OK}A: b\0\r\n\r\n`]: token,
      'HTTP/2 200\r\n\r\n': 'HPE_INVALID_CONSTANT',
      'HTTP/1.1 20 OK\r\n\r\n': 'HPE_INVALID_CONSTANT',
      'HTTP/1.1 200\nA: b\r\n\r\n': 'HPE_INVALID_CONSTANT',
      'SSH-2.0-OpenSSH_9.6\r\n': 'HPE_INVALID_CONSTANT',
      '{"jsonrpc":"2.0"': 'HPE_INVALID_CONSTANT',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n': 'HPE_INVALID_STATUS',
      'HTTP/1.0 100 Continue\r\n\r\n': 'HPE_INVALID_STATUS',
      'HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n': 'HPE_INVALID_STATUS',
      'HTTP/1.1 099 Odd\r\n\r\n': 'HPE_INVALID_STATUS',
      [`${chunked}\r\n`]: size,
      [`${chunked}g\r\n`]: size,
      [`${chunked}1 \r\na\r\n`]: size,
      [`${chunked}-1\r\n`]: size,
      [`${chunked}1\na\r\n`]: size,
      [`${chunked}${'f'.repeat(14)}\r\n`]: size,
      [`${chunked}1\r\nab\r\n`]: 'HPE_STRICT',
      [`${chunked}1\r\na\n`]: 'HPE_STRICT',
      [`${chunked}1;a\nb\r\n`]: 'HPE_STRICT',
      [`${chunked}1;=b\r\n`]: 'HPE_STRICT',
      [`${chunked}0\r\nA: b\n\r\n`]: token,
      [`${chunked}0\r\nA b\r\n`]: token,
    };
    for (const [text, code] of Object.entries(cases)) {
      expect(`${JSON.stringify(text)}: ${codeOf(text)}`).toBe(`${JSON.stringify(text)}: ${code}`);
    }
  });

  test('a head, or what stands around chunks, that goes on for ever is given up', () => {
    const parser = () =>
      new ResponseParser({ onHead() {}, onBody() {}, onEnd() {} }, new HeadReader());
    const flood = (given: ResponseParser, text: string): number => {
      const piece = Buffer.from(text);
      for (let sent = 0; ; sent += piece.length) {
        try {
          given.execute(piece);
        } catch (error) {
          expect((error as HttpParseError).code).toMatch(/OVERFLOW/);
          return sent;
        }
        if (sent > 1_000_000) throw new Error('taken');
      }
    };
    const header = parser();
    header.execute(Buffer.from(OK));
    expect(flood(header, 'A: bbbbbbbbbbbbbbbb\r\n')).toBeLessThan(20_000);
    expect(flood(parser(), 'HTTP/1.1 103 Hints\r\nLink: bbbbb\r\n\r\n')).toBeLessThan(20_000);
    for (const end of ['1;', '0\r\n']) {
      const body = parser();
      body.execute(Buffer.from(`${OK}Transfer-Encoding: chunked\r\n\r\n${end}`));
      expect(flood(body, 'a: bbbbbbbbb')).toBeLessThan(20_000);
    }
  });

  test('how a response says whether its connection stays', () => {
    const reusable = (text: string) => whole(text).reusable;
    const empty = 'Content-Length: 0\r\n';
    expect(reusable(`${OK}${empty}\r\n`)).toBe(true);
    expect(reusable(`${OK}${empty}Connection: Keep-Alive\r\n\r\n`)).toBe(true);
    expect(reusable(`${OK}${empty}Connection: close\r\n\r\n`)).toBe(false);
    expect(reusable(`${OK}${empty}Connection: x , Close\r\n\r\n`)).toBe(false);
    expect(reusable(`HTTP/1.0 200 OK\r\n${empty}\r\n`)).toBe(false);
    expect(reusable(`HTTP/1.0 200 OK\r\n${empty}Connection: keep-alive\r\n\r\n`)).toBe(true);
    // Without a length the body ends with the connection, and only an orderly end is one.
    expect(whole(`${OK}\r\nabc`)).toMatchObject({ body: 'abc', reusable: undefined });
    expect(whole(`${OK}\r\nabc`, true)).toMatchObject({ body: 'abc', reusable: false });
  });

  test('headers: any case, several of a name, blanks around values, bytes beyond ASCII', () => {
    const { headers } = whole(
      `${OK}content-LENGTH: 0\r\nX-A: 1\r\nx-a:\t2 \r\nRetry-After: 1\r\nretry-after: 9\r\nX-Empty:\r\nX-Latin: \xe9\r\n__proto__: x\r\n\r\n`,
    );
    expect({ ...headers }).toEqual({
      'content-length': '0',
      'x-a': '1, 2',
      'retry-after': '1',
      'x-empty': '',
      'x-latin': 'é',
      ['__proto__']: 'x',
    });
    expect(Object.getPrototypeOf(headers)).toBeNull();
  });
});
