import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get as httpGet } from 'node:http';
import { expect, test } from 'vitest';
import { classify, type Failure } from '../../src/resilience/failure.ts';
import { closedPort, http, rejection, tcp } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';

const failureOf = async (work: () => unknown): Promise<Failure> => classify(await rejection(work));

const body = (port: number) => async () =>
  (await fetch(`http://127.0.0.1:${port}/?key=hush`)).text();

verifies('failure.network-errors', async () => {
  const closed = await closedPort();
  expect(await failureOf(body(closed))).toMatchObject({
    code: 'CONNECTION_REFUSED',
    message: `The connection to 127.0.0.1:${closed} was refused (ECONNREFUSED).`,
    severity: 'transient',
    source: 'network',
    weight: 'infrastructure',
    delivery: 'not_sent',
    retryable: true,
  });

  // ENOTFOUND, or EAI_AGAIN where there is no resolver.
  expect(await failureOf(() => fetch('http://nonexistent.invalid/'))).toMatchObject({
    code: 'DNS_FAILURE',
    message: expect.stringContaining('nonexistent.invalid'),
    delivery: 'not_sent',
  });

  const lost = { code: 'CONNECTION_RESET', weight: 'infrastructure', delivery: 'lost' };
  expect(await failureOf(body(await tcp((socket) => socket.resetAndDestroy())))).toMatchObject(
    lost,
  );
  expect(await failureOf(body(await tcp((socket) => socket.end())))).toMatchObject(lost);

  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"a":1';
  const half = await tcp((socket) => socket.end(head));
  expect(await failureOf(body(half))).toMatchObject(lost);
  const reset = await tcp((socket) => {
    socket.write(head);
    setTimeout(() => socket.resetAndDestroy(), 20);
  });
  expect(await failureOf(body(reset))).toMatchObject(lost);

  const garbage = await tcp((socket) => socket.end('SSH-2.0-whatever\r\n\r\n'));
  expect(await failureOf(body(garbage))).toMatchObject({
    code: 'UPSTREAM_INVALID_RESPONSE',
    source: 'upstream',
  });

  const notGzip = await http((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip at all');
  });
  expect((await failureOf(body(notGzip))).code).toBe('UPSTREAM_INVALID_RESPONSE');

  const plain = await http((_, response) => response.end());
  expect(await failureOf(() => fetch(`https://127.0.0.1:${plain}/`))).toMatchObject({
    code: 'TLS_FAILURE',
    delivery: 'not_sent',
    retryable: false,
    weight: 'infrastructure',
  });
  const hangsUp = await tcp((socket) => socket.end());
  expect(await failureOf(() => fetch(`https://127.0.0.1:${hangsUp}/`))).toMatchObject({
    code: 'CONNECTION_RESET',
    delivery: 'not_sent',
  });

  const loop = await http((_, response) => response.writeHead(302, { location: '/' }).end());
  expect(await failureOf(body(loop))).toMatchObject({
    code: 'UPSTREAM_INVALID_RESPONSE',
    retryable: false,
  });
});

test('a server that is silent for longer than undici waits has timed out', async () => {
  const silent = await http(() => {});
  await (await fetch(`http://127.0.0.1:${await http((_, r) => r.end())}/`)).text();
  // Node does not export its undici; the class of the global dispatcher is its Agent.
  const dispatcher: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'));
  const Agent = Object(dispatcher).constructor as new (options: object) => object;
  const init: object = { dispatcher: new Agent({ headersTimeout: 50 }) };
  expect(await failureOf(() => fetch(`http://127.0.0.1:${silent}/`, init))).toMatchObject({
    code: 'UPSTREAM_TIMEOUT',
    source: 'timeout',
    delivery: 'lost',
    retryable: true,
  });
});

verifies('failure.cancel-is-not-timeout', async () => {
  const silent = `http://127.0.0.1:${await http(() => {})}/`;
  const timeout = { code: 'TIMEOUT', source: 'timeout', weight: 'infrastructure' };
  const cancelled = { code: 'CANCELLED', source: 'cancelled', weight: 'caller', retryable: false };

  const late = () => fetch(silent, { signal: AbortSignal.timeout(20) });
  expect(await failureOf(late)).toMatchObject(timeout);
  const stop = () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 20);
    return controller.signal;
  };
  expect(await failureOf(() => fetch(silent, { signal: stop() }))).toMatchObject(cancelled);

  // node:http throws an AbortError in both cases, and tells them apart by its cause.
  const get = (signal: AbortSignal) => async () => {
    const [error] = await once(httpGet(silent, { signal }), 'error').catch((error) => [error]);
    throw error;
  };
  expect(await failureOf(get(AbortSignal.timeout(20)))).toMatchObject(timeout);
  expect(await failureOf(get(stop()))).toMatchObject(cancelled);
});

verifies('failure.delivery', () => {
  const errno = (code: string, syscall?: string, message = `${syscall} ${code}`) =>
    classify(Object.assign(new Error(message), { code, syscall })).delivery;
  expect(errno('ETIMEDOUT', 'connect')).toBe('not_sent');
  expect(errno('ETIMEDOUT', 'read')).toBe('lost');
  expect(errno('ECONNRESET', 'connect')).toBe('not_sent');
  expect(errno('ECONNRESET', 'read')).toBe('lost');
  expect(errno('EPIPE', 'write')).toBe('lost');
  expect(errno('EHOSTUNREACH', 'connect')).toBe('not_sent');
  // A router says so in the middle of an answer too.
  expect(errno('EHOSTUNREACH', 'read')).toBe('lost');
  expect(errno('UND_ERR_CONNECT_TIMEOUT')).toBe('not_sent');
  expect(errno('UND_ERR_BODY_TIMEOUT')).toBe('lost');
  const refused = 'Stream closed with error code NGHTTP2_REFUSED_STREAM';
  expect(errno('ERR_HTTP2_STREAM_ERROR', undefined, refused)).toBe('refused');
});

test.each([
  ['ECONNREFUSED', 'CONNECTION_REFUSED'],
  ['ENETUNREACH', 'HOST_UNREACHABLE'],
  ['EADDRNOTAVAIL', 'NETWORK_ERROR'],
  ['EAI_AGAIN', 'DNS_FAILURE'],
  ['EAI_NODATA', 'DNS_FAILURE'],
  ['UND_ERR_ABORTED', 'CANCELLED'],
  ['UND_ERR_SOCKET', 'CONNECTION_RESET'],
  ['UND_ERR_RESPONSE', 'UPSTREAM_ERROR'],
  ['UND_ERR_SOMETHING_NEW', 'NETWORK_ERROR'],
  ['CERT_HAS_EXPIRED', 'TLS_FAILURE'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'TLS_FAILURE'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'TLS_FAILURE'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'TLS_FAILURE'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'TLS_FAILURE'],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'TLS_FAILURE'],
  ['HPE_INVALID_CONSTANT', 'UPSTREAM_INVALID_RESPONSE'],
  ['ECONNABORTED', 'CONNECTION_RESET'],
  ['NOT_CONNECTED', 'UPSTREAM_UNAVAILABLE'],
  ['CONNECTION_CLOSED', 'CONNECTION_RESET'],
  ['REQUEST_TIMEOUT', 'UPSTREAM_TIMEOUT'],
  ['ENOSPC', 'UPSTREAM_ERROR'],
  ['EMFILE', 'UPSTREAM_UNAVAILABLE'],
  ['MY_OWN_CODE', 'UNKNOWN_ERROR'],
  ['constructor', 'UNKNOWN_ERROR'],
  ['__proto__', 'UNKNOWN_ERROR'],
])('an error with code %s is %s', (code, expected) => {
  expect(classify(Object.assign(new Error('x'), { code })).code).toBe(expected);
});

test('a program that is not there is unavailable for good, a file is not found', async () => {
  const program = '/no/such/program';
  const missing = async () => {
    const [error] = await once(spawn(program), 'error');
    throw error;
  };
  expect(await failureOf(missing)).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    delivery: 'not_sent',
    retryable: false,
  });
  expect(await failureOf(() => readFileSync('/no/such/file'))).toMatchObject({
    code: 'NOT_FOUND',
    weight: 'caller',
  });
});
