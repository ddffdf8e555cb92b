import { describe, expect, onTestFinished, test } from 'vitest';
import { HTTP_KINDS, type HttpFaultKind } from '../../src/chaos/fault.ts';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { verifies } from '../fixtures/verifies.ts';
import { arm, clearAll, codeOf, faultsOf } from './support/chaos.ts';
import { serveCommand, writtenConfig } from './support/command.ts';
import { eventually } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstream-http.ts';

/** What each kind leads to, for a tool that only reads, and for one that writes. */
const CODES: Readonly<Record<HttpFaultKind, string>> = {
  status: 'UPSTREAM_UNAVAILABLE',
  connection_refused: 'CONNECTION_REFUSED',
  connection_reset: 'CONNECTION_RESET',
  half_closed_body: 'CONNECTION_RESET',
  dns: 'DNS_FAILURE',
  malformed_json: 'UPSTREAM_INVALID_RESPONSE',
  truncated_body: 'UPSTREAM_INVALID_RESPONSE',
  empty_body: 'UPSTREAM_INVALID_RESPONSE',
  oversized_body: 'UPSTREAM_INVALID_RESPONSE',
  dripping_body: 'TIMEOUT',
  wrong_content_type: 'UPSTREAM_INVALID_RESPONSE',
};

const open = async (resilience: object, type: 'http' | 'sse' = 'http', env = {}) => {
  const http = await startHttpUpstream();
  onTestFinished(() => http.close());
  const url = type === 'http' ? http.url : http.sseUrl;
  const restart = { initialDelay: 10, maxDelay: 50 };
  const { file } = writtenConfig({
    web: { type, url, resilience: { retry: false, breaker: false, restart, ...resilience } },
  });
  const command = await serveCommand(['gateway', '--chaos', '--config', file], env);
  const connected = await command.connect();
  await connected.request('tools/list');
  const ready = async () =>
    (await connected.call('health_check')).structuredContent.upstreams[0].state === 'ready';
  return { ...command, ...connected, http, ready };
};

describe('HTTP faults', () => {
  verifies(
    'chaos.gateway-http',
    async () => {
      const receiver = await OtlpReceiver.start();
      onTestFinished(() => receiver.stop());
      const { call, http, ready, child, ended } = await open(
        // A body of 64 MiB may take longer than the timeout on a busy machine.
        { timeout: 1_500, maxMessageBytes: 1024 * 1024 },
        'http',
        {
          OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        },
      );
      const seen = () =>
        http.record.received.filter(({ message }) => message.method === 'tools/call').length;
      const ids: string[] = [];
      for (const kind of HTTP_KINDS) {
        await eventually(ready);
        const before = seen();
        const id = await arm(call, { kind, target: { tool: 'ok' }, maxCount: 1 });
        expect([kind, codeOf(await call('ok'))]).toEqual([kind, CODES[kind]]);
        // The server has not seen it, and the next one reaches it.
        expect([kind, seen() - before]).toEqual([kind, 0]);
        await eventually(ready);
        expect([kind, codeOf(await call('ok'))]).toEqual([kind, undefined]);
        expect((await faultsOf(call)).recent[0]).toMatchObject({ id, injected: 1, missed: 0 });
        ids.push(id);
        // One that is held until its fault ends.
        await clearAll(call);
      }
      child.kill('SIGTERM');
      await ended;
      // Both spans of each call say by which fault it was struck; no other span does.
      const marks = receiver
        .spans()
        .filter(({ kind, name }) => name === 'tools/call ok' && (kind === 2 || kind === 3))
        .map(({ kind, attributes }) => [kind, attributes['fault.id']])
        .filter(([, id]) => id !== undefined);
      for (const kind of [2, 3]) {
        expect(marks.filter(([of]) => of === kind).map(([, id]) => id)).toEqual(ids);
      }
    },
    120_000,
  );

  test('leave a write unexecuted, and say what is known of it', async () => {
    const { call, http, ready } = await open({ timeout: 1_500 });
    const target = { upstream: 'web' };
    const told: Record<string, string | undefined> = {};
    for (const kind of [
      'status',
      'connection_refused',
      'connection_reset',
      'empty_body',
    ] as const) {
      await eventually(ready);
      await arm(call, { kind, target, maxCount: 1 });
      const { _meta, isError } = await call('write', { key: kind });
      expect(isError).toBe(true);
      told[kind] = codeOf({ _meta });
    }
    // Where a server has answered, its answer is told; where the connection broke, nobody can know.
    expect(told).toEqual({
      status: 'UPSTREAM_UNAVAILABLE',
      connection_refused: 'CONNECTION_REFUSED',
      connection_reset: 'OUTCOME_UNKNOWN',
      empty_body: 'UPSTREAM_INVALID_RESPONSE',
    });
    expect(http.record.writes).toEqual([]);
  });

  test('tell how long to wait, and are waited out by a retry', async () => {
    const { call } = await open({ retry: { maxRetries: 2, baseDelay: 1, maxDelay: 5 } });
    const target = { tool: 'ok' };
    await arm(call, { kind: 'status', status: 429, retryAfter: 30, target, firstAttempts: 1 });
    const limited = await call('ok');
    expect(limited._meta['mcp-resilience/failure']).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfter: expect.closeTo(30, 0),
    });
    await clearAll(call);
    await arm(call, { kind: 'status', status: 503, target, firstAttempts: 2 });
    expect(codeOf(await call('ok'))).toBeUndefined();
    expect((await faultsOf(call)).faults[0]?.injected).toBe(2);
  });

  test('strike what is posted to a server of HTTP+SSE', async () => {
    const { call, ready } = await open({}, 'sse');
    for (const kind of ['status', 'connection_reset', 'connection_refused', 'dns'] as const) {
      await eventually(ready);
      await arm(call, { kind, target: { upstream: 'web' }, maxCount: 1 });
      expect([kind, codeOf(await call('ok'))]).toEqual([kind, CODES[kind]]);
    }
    await eventually(ready);
    expect(codeOf(await call('ok'))).toBeUndefined();
  });

  verifies(
    'chaos.gateway-breaker',
    async () => {
      const receiver = await OtlpReceiver.start();
      onTestFinished(() => receiver.stop());
      const { call, http, child, ended } = await open(
        { breaker: { threshold: 3, openDuration: 300, maxOpenDuration: 300 } },
        'http',
        { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
      );
      const breaker = async () =>
        (await call('health_check')).structuredContent.upstreams[0].breaker.state;
      const id = await arm(call, { kind: 'status', status: 503, target: { upstream: 'web' } });
      const codes = [];
      for (let made = 0; made < 4; made += 1) codes.push(codeOf(await call('ok')));
      expect(codes).toEqual([
        'UPSTREAM_UNAVAILABLE',
        'UPSTREAM_UNAVAILABLE',
        'UPSTREAM_UNAVAILABLE',
        'CIRCUIT_OPEN',
      ]);
      expect(await breaker()).not.toBe('closed');
      await clearAll(call);
      await eventually(async () => codeOf(await call('ok')) === undefined);
      expect(await breaker()).toBe('closed');
      expect(http.record.received.map(({ message }) => message.method)).toContain('tools/call');
      child.kill('SIGTERM');
      await ended;
      // The breaker carries the mark of what opened it until it is closed.
      const transitions = receiver
        .metrics()
        .filter(({ name }) => name === 'resilience.circuit_breaker.transitions')
        .at(-1);
      expect(
        transitions?.points.map(({ attributes }) => [attributes.to, attributes['fault.id']]),
      ).toEqual(
        expect.arrayContaining([
          ['open', id],
          ['half-open', id],
          ['closed', id],
        ]),
      );
    },
    60_000,
  );
});
