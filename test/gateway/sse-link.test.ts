import { describe, expect, onTestFinished, test } from 'vitest';
import { classify } from '../../src/resilience/failure.ts';
import { closedPort, http, rejection } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { openLink, testLink, textOf } from './support/link.ts';
import { type HttpUpstreamSettings, startHttpUpstream } from './support/upstream-http.ts';

const start = async (settings: HttpUpstreamSettings = {}) => {
  const upstream = await startHttpUpstream(settings);
  onTestFinished(() => upstream.close());
  const headers = { Authorization: 'Bearer abc' };
  return { upstream, address: { kind: 'sse', url: upstream.sseUrl, headers } as const };
};

const refusal = async (address: { kind: 'sse'; url: string; headers: Record<string, string> }) =>
  rejection(() => testLink(address).link.open());

describe('SSE link', () => {
  verifies('link.sse.answers', async () => {
    const { upstream, address } = await start();
    const { initialize, call, link, messages, ends } = await openLink(address);
    expect((await initialize()).result).toMatchObject({ serverInfo: { name: 'U' } });
    expect(textOf(await call('ok', { text: 'ü'.repeat(10 * 1024 * 1024) }))).toHaveLength(
      10 * 1024 * 1024,
    );
    await call('log');
    expect(messages.map(({ message }) => message.method)).toContain('notifications/message');
    for (const { headers } of upstream.requests) {
      expect(headers.authorization).toBe('Bearer abc');
    }
    expect(upstream.requests.at(-1)?.headers['mcp-protocol-version']).toBe('2025-11-25');
    expect(link.facts).toEqual({ address: '127.0.0.1', port: upstream.port });
    await link.close();
    await link.close();
    expect(ends).toEqual([{ kind: 'closed', reason: 'closed' }]);
    await until(() => upstream.open === 0 && upstream.sessions.size === 0);
    expect(await rejection(() => link.send({ jsonrpc: '2.0', method: 'x' }))).toMatchObject({
      delivery: 'not-sent',
    });
  });

  verifies('link.sse.origin', async () => {
    const elsewhere: string[] = [];
    const port = await http((req, res) => {
      elsewhere.push(String(req.url));
      res.end();
    });
    for (const endpoint of [
      `http://127.0.0.1:${port}/messages`,
      'http://[',
      'file:///etc/passwd',
    ]) {
      const { upstream, address } = await start({ endpoint });
      const failure = await refusal(address);
      expect(failure).toMatchObject({ delivery: 'not-sent' });
      expect(classify(failure)).toMatchObject({ retryable: false });
      expect(String(failure)).toContain('not of its own origin');
      await until(() => upstream.open === 0);
    }
    expect(elsewhere).toEqual([]);
  });

  verifies('link.sse.lost', async () => {
    const { upstream, address } = await start();
    const { initialize, ask, ends } = await openLink(address);
    await initialize();
    ask('tools/call', { name: 'hang', arguments: {} });
    await until(() =>
      upstream.record.received.some(({ message }) => message.method === 'tools/call'),
    );
    upstream.restart();
    await until(() => ends.length > 0);
    expect(ends).toMatchObject([
      { kind: 'lost', reason: expect.stringMatching(/connection|stream/) },
    ]);

    const again = await openLink(address);
    await again.initialize();
    // It forgets the session, and the stream stays open.
    upstream.forget();
    const failure = await rejection(() => again.call('write'));
    expect(failure).toMatchObject({ delivery: 'not-sent', sessionLost: true, status: 404 });
    expect(upstream.record.writes).toEqual([]);
    await until(() => again.ends.length > 0);
    expect(again.ends).toEqual([{ kind: 'session', reason: 'HTTP 404' }]);
  });

  test('what is no stream of this kind is refused', async () => {
    const { upstream, address } = await start();
    upstream.fail('GET', { kind: 'status', status: 405 });
    expect(await refusal(address)).toMatchObject({ status: 405, delivery: 'not-sent' });
    upstream.fail('GET', { kind: 'status', status: 200, headers: { 'content-type': 'text/html' } });
    expect(String(await refusal(address))).toContain('it is text/html, not an event stream');
    upstream.fail('GET', {
      kind: 'status',
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
    });
    expect(classify(await refusal(address)).code).toBe('CONNECTION_RESET');
    const nobody = { ...address, url: `http://127.0.0.1:${await closedPort()}/sse` };
    expect(classify(await refusal(nobody)).code).toBe('CONNECTION_REFUSED');
    await until(() => upstream.open === 0);
  });

  test('opening ends with its signal, and an open link does not', async () => {
    const { upstream, address } = await start();
    upstream.fail('GET', { kind: 'hang' });
    const controller = new AbortController();
    const { link } = testLink(address);
    const opening = rejection(() => link.open(controller.signal));
    await until(() => upstream.requests.length === 1);
    controller.abort(new Error('too slow'));
    expect(await opening).toBe(controller.signal.reason);
    await until(() => upstream.open === 0);
    expect(await rejection(() => link.open())).toMatchObject({ delivery: 'not-sent' });

    const other = new AbortController();
    const opened = testLink(address);
    await opened.link.open(other.signal);
    other.abort();
    await opened.initialize();
    expect(textOf(await opened.call('ok'))).toBe('ok');
  });

  test('a status that is no success, and a message that is too long', async () => {
    const { upstream, address } = await start();
    const { initialize, call, ends } = await openLink(address, {
      config: { maxMessageBytes: 100_000 },
    });
    await initialize();
    upstream.fail('tools/call', { kind: 'status', status: 503, headers: { 'retry-after': '3' } });
    expect(classify(await rejection(() => call('ok')))).toMatchObject({ retryAfter: 3 });
    await rejection(() => call('big', { n: 100_000 }));
    expect(ends).toMatchObject([
      { kind: 'lost', reason: expect.stringContaining('maxMessageBytes') },
    ]);
  });
});
