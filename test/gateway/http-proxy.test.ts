import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HttpClient } from '../../src/gateway/http-client.ts';
import { proxyFor, proxyLines } from '../../src/gateway/http-proxy.ts';
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import { systemClock } from '../../src/resilience/clock.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { closedPort, http, rejection, tcp } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';
import { serveCommand, writtenConfig } from './support/command.ts';
import { eventually } from './support/gateway.ts';
import { upstreamConfig } from './support/link-config.ts';
import { cert, startProxy, tlsInFrontOf } from './support/proxy.ts';
import { startHttpUpstream } from './support/upstream-http.ts';

const get = { method: 'GET', headers: {} } as const;
const PASSWORD = 'p:ä ss';
const credentials = `me:${encodeURIComponent(PASSWORD)}`;
const BASIC = `Basic ${Buffer.from(`me:${PASSWORD}`).toString('base64')}`;

/** `none`, the problem, or the proxy as `kind protocol//host:port`. */
const chosen = (url: string, env: Record<string, string>): string => {
  const { proxy, problem } = proxyFor(new URL(url), env);
  if (!proxy) return problem ?? 'none';
  const { tunnel, protocol, hostname, port } = proxy;
  return `${tunnel ? 'tunnel' : 'forward'} ${protocol}//${hostname}:${port}`;
};

describe('which proxy', () => {
  test('HTTPS_PROXY for https, HTTP_PROXY for http, lower case first, the scheme may be absent', () => {
    const env = { HTTP_PROXY: 'http://plain', HTTPS_PROXY: 'https://safe:8443/' };
    expect(chosen('http://a.example/mcp', env)).toBe('forward http://plain:80');
    expect(chosen('https://a.example/mcp', env)).toBe('tunnel https://safe:8443');
    expect(chosen('https://a.example', { ...env, https_proxy: '[::1]:3128' })).toBe(
      'tunnel http://::1:3128',
    );
    expect(chosen('https://a.example', { ...env, https_proxy: ' ' })).toBe(
      'tunnel https://safe:8443',
    );
    expect(chosen('https://a.example', { HTTP_PROXY: 'http://plain' })).toBe('none');
    expect(chosen('https://a.example', {})).toBe('none');
    const { proxy } = proxyFor(new URL('http://a.example'), {
      HTTP_PROXY: `http://${credentials}@plain:1`,
    });
    expect(proxy?.authorization).toBe(BASIC);
  });

  test('this machine is never asked for elsewhere', () => {
    const env = { HTTP_PROXY: 'http://plain', HTTPS_PROXY: 'http://plain' };
    for (const host of ['localhost', 'a.localhost', '127.0.0.1', '127.8.8.8', '[::1]']) {
      expect([host, chosen(`http://${host}:3000/mcp`, env)]).toEqual([host, 'none']);
      expect([host, chosen(`https://${host}/mcp`, env)]).toEqual([host, 'none']);
    }
  });

  test('NO_PROXY names hosts, those below them, ports, addresses and networks', () => {
    const isDirect = (no_proxy: string, url: string): boolean =>
      chosen(url, { HTTP_PROXY: 'p', HTTPS_PROXY: 'p', NO_PROXY: no_proxy }) === 'none';
    const direct: [string, string][] = [
      ['*', 'https://a.example'],
      ['b.example, a.example', 'https://a.example'],
      ['A.Example', 'https://a.EXAMPLE'],
      ['example', 'https://a.example'],
      ['.example', 'https://a.example'],
      ['*.example', 'https://a.b.example'],
      ['a.example:443', 'https://a.example'],
      ['a.example:8443', 'https://a.example:8443'],
      ['10.1.2.3', 'http://10.1.2.3'],
      ['10.0.0.0/8', 'http://10.200.0.1:99'],
      ['10.0.0.1-10.0.0.9', 'http://10.0.0.9'],
      ['fd00::/8', 'http://[fd00::1]'],
      ['fd00::1', 'http://[fd00::1]'],
      ['[fd00::1]:80', 'http://[fd00::1]'],
    ];
    for (const [entry, url] of direct) expect([entry, isDirect(entry, url)]).toEqual([entry, true]);
    const proxied: [string, string][] = [
      ['', 'https://a.example'],
      [',', 'https://a.example'],
      ['.a.example', 'https://a.example'],
      ['a.example', 'https://ba.example'],
      ['a.example:80', 'https://a.example'],
      ['10.0.0.0/8', 'http://11.0.0.1'],
      ['10.0.0.0/99', 'http://10.0.0.1'],
      ['10.0.0.9-10.0.0.1', 'http://10.0.0.5'],
      ['10.0.0.1-b', 'http://10.0.0.1'],
      ['fd00::/8', 'http://10.0.0.1'],
      ['0.0.0', 'http://10.0.0.0'],
    ];
    for (const [entry, url] of proxied)
      expect([entry, isDirect(entry, url)]).toEqual([entry, false]);
  });

  test('one that cannot be used is told, without what may be secret, and left out', () => {
    const address: UpstreamAddress = { kind: 'http', url: 'https://a.example/mcp', headers: {} };
    const configs = [
      upstreamConfig(address, { name: 'far' }),
      upstreamConfig({ ...address, url: 'http://localhost/mcp' }, { name: 'near' }),
      upstreamConfig({ kind: 'stdio', command: 'x', args: [], env: {} }, { name: 'child' }),
    ];
    const wrong = ['socks5://me:secret@proxy', 'http://', 'http://me:%zz@secret'];
    for (const value of wrong) {
      expect(proxyLines(configs, { https_proxy: value })).toEqual([
        'warning: https_proxy is not honoured: it must be an http or https URL; far is called directly',
      ]);
    }
    expect(proxyLines(configs, { HTTPS_PROXY: 'http://me:secret@[::1]' })).toEqual([
      'far is called through the proxy http://[::1]:80',
    ]);
    expect(proxyLines(configs, {})).toEqual([]);
  });
});

describe('an upstream behind a proxy', () => {
  verifies('gateway.proxy', async () => {
    const upstream = await startHttpUpstream();
    onTestFinished(() => upstream.close());
    const near = await startHttpUpstream();
    onTestFinished(() => near.close());
    const proxy = await startProxy({
      'mcp.example:443': await tlsInFrontOf(upstream.port),
      'plain.example:80': upstream.port,
    });
    const ca = join(temporaryFolder(), 'ca.pem');
    writeFileSync(ca, cert);
    const { file } = writtenConfig({
      safe: { url: 'https://mcp.example/mcp' },
      plain: { url: 'http://plain.example/mcp' },
      old: { url: 'http://plain.example/sse' },
      near: { url: near.url },
    });
    const address = `http://${credentials}@127.0.0.1:${proxy.port}`;
    const gateway = await serveCommand(['gateway', '--config', file], {
      HTTPS_PROXY: address,
      http_proxy: address,
      NODE_EXTRA_CA_CERTS: ca,
    });
    const { call } = await gateway.connect();
    for (const name of ['safe', 'plain', 'old', 'near']) {
      const { content } = await call(`${name}__ok`, { text: name });
      expect(content).toEqual([{ type: 'text', text: name }]);
    }
    const lines = new Set(proxy.requests.map(({ line }) => line.replace(/\?.*/, '')));
    // The end of the first look around comes some time.
    lines.delete('DELETE http://plain.example/mcp');
    expect([...lines].sort()).toEqual([
      'CONNECT mcp.example:443',
      'GET http://plain.example/mcp',
      'GET http://plain.example/sse',
      'POST http://plain.example/mcp',
      'POST http://plain.example/messages',
    ]);
    // Who we are is said to the proxy, every time, and to nobody behind it.
    expect(new Set(proxy.requests.map(({ authorization }) => authorization))).toEqual(
      new Set([BASIC]),
    );
    expect(new Set(proxy.requests.map(({ host }) => host))).toEqual(
      new Set(['mcp.example:443', 'plain.example']),
    );
    for (const { headers } of upstream.requests) {
      expect(headers).not.toHaveProperty('proxy-authorization');
    }
    expect(new Set(upstream.requests.map(({ headers }) => headers.host))).toEqual(
      new Set(['mcp.example', 'plain.example']),
    );
    gateway.child.kill('SIGTERM');
    const { stderr } = await gateway.ended;
    const shown = `http://127.0.0.1:${proxy.port}`;
    expect(stderr).toContain(`safe is called through the proxy ${shown}\n`);
    expect(stderr).toContain(`plain is called through the proxy ${shown}\n`);
    expect(stderr).not.toMatch(/near is called through|p%3A|Basic/);
  });

  const through = (env: Record<string, string>, url = 'https://mcp.example/mcp') => {
    const { proxy } = proxyFor(new URL(url), env);
    expect(proxy).toBeDefined();
    const client = new HttpClient(url, {}, systemClock, undefined, proxy);
    onTestFinished(() => client.close());
    return client;
  };

  const trusting = (): void => {
    const before = getCACertificates();
    setDefaultCACertificates([...before, cert]);
    onTestFinished(() => setDefaultCACertificates(before));
  };

  test('is reached through a proxy with TLS, and a tunnel is used again', async () => {
    trusting();
    const origin = await http((_req, res) => res.end('secret'));
    const proxy = await startProxy({ 'mcp.example:443': await tlsInFrontOf(origin) });
    const client = through({ HTTPS_PROXY: `https://127.0.0.1:${await tlsInFrontOf(proxy.port)}` });
    for (let turn = 0; turn < 3; turn += 1) {
      const response = await client.request(get);
      expect([response.status, await client.drain(response)]).toEqual([200, 'secret']);
    }
    expect(proxy.requests).toHaveLength(1);
  });

  test('the certificate that counts is that of the upstream', async () => {
    const origin = await http((_req, res) => res.end('secret'));
    const port = await tlsInFrontOf(origin);
    const proxy = await startProxy({ 'mcp.example:443': port, 'other.example:443': port });
    expect(await rejection(() => through({ HTTPS_PROXY: proxy.url }).request(get))).toMatchObject({
      failure: { code: 'TLS_FAILURE' },
    });
    trusting();
    const other = through({ HTTPS_PROXY: proxy.url }, 'https://other.example');
    expect(await rejection(() => other.request(get))).toMatchObject({
      failure: { code: 'TLS_FAILURE' },
    });
  });

  test('nothing was sent to it when the proxy makes no tunnel', async () => {
    const refusing = await startProxy({}, () => 407);
    const babbling = await tcp((socket) => socket.end('220 smtp ready\r\n\r\n'));
    const endless = await tcp((socket) => void socket.write('HTTP/1.1 200 '.padEnd(17_000, 'x')));
    const silent = await tcp((socket) => socket.end());
    const unreachable = await startProxy({});
    const cases: [string, RegExp][] = [
      [refusing.url, /^The proxy 127\.0\.0\.1:\d+ does not connect .* CONNECT with status 407/],
      [unreachable.url, /CONNECT with status 502/],
      [`127.0.0.1:${babbling}`, /its answer is no HTTP/],
      [`127.0.0.1:${endless}`, /its answer is no HTTP/],
      [`127.0.0.1:${silent}`, /it ended the connection/],
      [`127.0.0.1:${await closedPort()}`, /./],
    ];
    for (const [proxy, message] of cases) {
      const error = await rejection(() => through({ HTTPS_PROXY: proxy }).request(get));
      expect(error).toMatchObject({
        delivery: 'not-sent',
        message: expect.stringMatching(message),
      });
    }
  });

  test('a proxy that never answers is let go with the request, and with the client', async () => {
    const sockets: Socket[] = [];
    const port = await tcp((socket) => void sockets.push(socket));
    const client = through({ HTTPS_PROXY: `127.0.0.1:${port}` });
    const abort = new AbortController();
    const given = rejection(() => client.request({ ...get, signal: abort.signal }));
    await eventually(() => sockets.length === 1);
    abort.abort(new Error('no longer wanted'));
    expect(await given).toMatchObject({ message: 'no longer wanted' });
    const waiting = rejection(() => client.request(get));
    await eventually(() => sockets.length === 2);
    client.close();
    expect(await waiting).toMatchObject({ failure: { code: 'CONNECTION_RESET' } });
    await eventually(() =>
      sockets.every(({ readableEnded, destroyed }) => readableEnded || destroyed),
    );
  });
});
