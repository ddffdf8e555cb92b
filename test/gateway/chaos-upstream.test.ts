import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGatewayChaos } from '../../src/commands/chaos-gateway.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { OtlpReceiver, type ReceivedSpan } from '../fixtures/otlp-receiver.ts';
import { verifies } from '../fixtures/verifies.ts';
import { arm, clearAll, codeOf, faultsOf, refusalOf } from './support/chaos.ts';
import { serveCommand, words, writtenConfig } from './support/command.ts';
import { type Anything, eventually, isAlive, openGateway } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

const OK = { content: [{ type: 'text', text: 'ok' }] };
const QUICK = { restart: { initialDelay: 10, maxDelay: 100 } };

/** Lines of a file that the upstream writes. */
const linesOf = (file: string): string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];

const whoami = async (call: (name: string) => Promise<Anything>) =>
  (await call('whoami')).structuredContent;

describe('a fault of an upstream', () => {
  verifies(
    'chaos.upstream-exit',
    async () => {
      const receiver = await OtlpReceiver.start();
      onTestFinished(() => receiver.stop());
      const writes = join(temporaryFolder(), 'writes');
      const { file } = writtenConfig({
        files: { ...stdioUpstream({ writes }), resilience: QUICK },
      });
      const { connect, child, ended } = await serveCommand(
        [
          'wrap',
          '--chaos',
          '--name',
          'files',
          '--config',
          file,
          '--',
          ...words(stdioUpstream({ writes })),
        ],
        { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
      );
      const { call, request } = await connect();
      await request('tools/list');
      const { pid } = await whoami(call);
      const write = call('write', { key: 'first', after: 'hang' });
      await eventually(() => linesOf(writes).length > 0);

      const target = { upstream: 'files' };
      const id = await arm(call, { kind: 'upstream_exit', target, maxCount: 1 });
      // The one that is struck only reads: it is asked again.
      expect(await call('ok')).toEqual(OK);
      const lost = await write;
      expect([lost.isError, codeOf(lost)]).toEqual([true, 'OUTCOME_UNKNOWN']);
      expect(lost.content[0].text).toContain('exited (killed by SIGKILL)');
      await eventually(() => !isAlive(pid));
      // It is another process, and works; nothing was executed twice.
      const after = await whoami(call);
      expect(after.pid).not.toBe(pid);
      expect(await call('write', { key: 'second' })).not.toHaveProperty('isError');
      expect(linesOf(writes)).toEqual(['write first', 'write second']);
      expect((await faultsOf(call)).recent).toMatchObject([
        { id, injected: 1, endReason: 'max_count' },
      ]);
      child.kill('SIGTERM');
      await ended;

      const marked = ({ attributes }: Pick<ReceivedSpan, 'attributes'>) =>
        attributes['fault.injected'] === true && attributes['fault.id'] === id;
      const spans = receiver.spans();
      const of = (name: string, kind: number) =>
        spans.filter((span) => span.name === name && span.kind === kind).map(marked);
      for (const kind of [2, 3]) {
        expect(of('tools/call ok', kind)).toEqual([true]);
        // The first was hurt by it, the second was not.
        expect(of('tools/call write', kind).toSorted()).toEqual([false, true]);
        expect(of('tools/call whoami', kind)).toEqual([false, false]);
      }
      // Connected for the client, and again because of the fault; and once to look around.
      expect(of('initialize', 3).filter(Boolean)).toEqual([true]);
      const changes = receiver.logs().filter(({ eventName }) => /upstream\.state/.test(eventName));
      expect(changes.some(marked)).toBe(true);
      // The first connection is not its doing; that it is ready again is.
      expect([changes.at(0), changes.at(-1)].map((change) => change && marked(change))).toEqual([
        false,
        true,
      ]);
      const restarts = receiver.metrics().filter(({ name }) => name === 'mcp.upstream.restarts');
      expect(restarts.at(-1)?.points.map(({ value, ...point }) => [marked(point), value])).toEqual([
        [true, 1],
      ]);
      const durations = receiver.metrics().filter(({ name }) => name === 'tool.duration');
      const points = durations.at(-1)?.points ?? [];
      expect(
        points
          .filter(({ attributes }) => attributes['gen_ai.tool.name'] === 'write')
          .map((point) => [marked(point), point.attributes['tool.outcome'], point.value])
          .toSorted(),
      ).toEqual([
        [false, 'success', 1],
        [true, 'error', 1],
      ]);
    },
    60_000,
  );

  verifies(
    'chaos.session-loss',
    async () => {
      const http = await startHttpUpstream();
      onTestFinished(() => http.close());
      const { file } = writtenConfig({ web: { url: http.url, resilience: QUICK } });
      const { connect } = await serveCommand(['gateway', '--chaos', '--config', file]);
      const { call, request } = await connect();
      await request('tools/list');
      const before = (await whoami(call)).session;
      const { initializes } = http.record;
      const target = { upstream: 'web' };
      // What runs in the lost session may still be answered.
      const running = call('write', { key: 'running', ms: 500 });
      await eventually(() => http.record.writes.includes('write running'));
      await arm(call, { kind: 'session_loss', target, maxCount: 1 });
      expect(await call('ok')).toEqual(OK);
      expect((await running).content).toEqual([{ type: 'text', text: 'written' }]);
      const between = (await whoami(call)).session;
      expect(between).not.toBe(before);
      await arm(call, { kind: 'session_loss', target, maxCount: 1 });
      const written = await call('write', { key: 'struck' });
      expect(codeOf(written)).toBeUndefined();
      expect((await whoami(call)).session).not.toBe(between);
      expect(http.record.initializes).toBe(initializes + 2);
      expect(http.record.writes).toEqual(['write running', 'write struck']);
      expect((await faultsOf(call)).recent.map(({ injected }) => injected)).toEqual([1, 1]);
    },
    60_000,
  );

  verifies(
    'chaos.gateway-calls',
    async () => {
      const writes = join(temporaryFolder(), 'writes');
      const settings = { ...QUICK, timeout: 400, retry: false, breaker: { threshold: 1 } };
      const { file } = writtenConfig({
        files: { ...stdioUpstream({ writes }), resilience: settings },
      });
      const { connect } = await serveCommand(['gateway', '--chaos', '--config', file]);
      const { call } = await connect();
      const bystander = await connect();
      const target = { tool: 'write' };

      await arm(call, { kind: 'tool_error', target });
      expect(await call('write', { key: '1' })).toEqual({
        isError: true,
        content: [{ type: 'text', text: 'The tool could not do this.' }],
      });
      expect(await call('ok')).toEqual(OK);
      await clearAll(call);
      await arm(call, { kind: 'protocol_error', target });
      await expect(call('write', { key: '2' })).rejects.toMatchObject({ code: -32603 });
      await clearAll(call);
      // Both are the tool speaking: the breaker, which opens at the first failure, is closed.
      const [files] = (await call('health_check')).structuredContent.upstreams;
      expect(files).toMatchObject({ state: 'ready', breaker: { state: 'closed' } });

      // Only in the session of one client.
      const { sessionId } = bystander.transport;
      await arm(call, { kind: 'tool_error', target: { ...target, session: String(sessionId) } });
      expect(await call('write', { key: '3' })).not.toHaveProperty('isError');
      expect(await bystander.call('write', { key: '4' })).toMatchObject({ isError: true });
      await clearAll(call);
      expect(linesOf(writes)).toEqual(['write 3']);

      // Of the whole upstream, whatever is asked of it.
      await arm(call, { kind: 'latency', latency: { delayMs: 50 }, target: { upstream: 'files' } });
      expect(await call('ok')).toEqual(OK);
      await bystander.request('resources/read', { uri: 'test://one' });
      const [latency] = (await faultsOf(call)).faults;
      expect(latency?.injected).toBeGreaterThanOrEqual(2);
      await clearAll(call);

      await arm(call, { kind: 'hang', target: { tool: 'ok' } });
      expect(codeOf(await call('ok'))).toBe('TIMEOUT');
      expect(codeOf(await bystander.call('write', { key: '5' }))).toBe('CIRCUIT_OPEN');
      expect(linesOf(writes)).toEqual(['write 3']);
    },
    60_000,
  );
});

describe('a fault behind a gateway', () => {
  verifies(
    'chaos.gateway-ends',
    async () => {
      const upstream = { ...stdioUpstream(), resilience: { ...QUICK, timeout: 20_000 } };
      const { file } = writtenConfig({ files: upstream });
      const { connect } = await serveCommand(['gateway', '--chaos', '--config', file]);
      const { call } = await connect();
      const other = await connect();
      const target = { tool: 'ok' };
      const lastEnd = async () => (await faultsOf(call)).recent[0]?.endReason;

      // What it holds is let go when it ends.
      await arm(call, { kind: 'hang', target, ttlSeconds: 0.5 });
      expect(await call('ok')).toEqual(OK);
      expect(await lastEnd()).toBe('ttl');

      await arm(call, { kind: 'hang', target });
      const held = call('ok');
      await eventually(async () => (await faultsOf(call)).faults[0]?.injected !== 0);
      expect(
        (await other.call('halt_chaos', { reason: 'enough' })).structuredContent,
      ).toMatchObject({
        halted: true,
        cleared: 1,
      });
      expect(await held).toEqual(OK);
      expect(await refusalOf(call, { kind: 'hang', target })).toMatch(/halted .*enough/);
      await call('halt_chaos', { lift: true });

      // The session that armed it ends.
      const short = await connect();
      await arm(short.call, { kind: 'hang', target });
      await short.transport.terminateSession();
      await eventually(async () => (await faultsOf(call)).faults.length === 0);
      expect(await lastEnd()).toBe('session_ended');

      // A client that goes without a word, as one does that was killed.
      const killed = await connect();
      await arm(killed.call, { kind: 'hang', target });
      await killed.transport.close();
      await eventually(async () => (await faultsOf(call)).faults.length === 0);
      expect(await lastEnd()).toBe('session_ended');

      // And the process itself.
      await arm(call, { kind: 'hang', target });
      const last = call('ok');
      await eventually(async () => (await faultsOf(call)).faults[0]?.injected !== 0);
      expect((await faultsOf(call)).faults[0]?.by).toBe('tester 1');
      await clearAll(call);
      expect(await last).toEqual(OK);
    },
    60_000,
  );

  test('ends with the process, which does not wait for what it holds', async () => {
    const upstream = words(stdioUpstream());
    const command = await serveCommand(['wrap', '--chaos', '--name', 'u', '--', ...upstream]);
    const { call } = await command.connect();
    await arm(call, { kind: 'hang', target: { upstream: 'u' } });
    const held = call('ok');
    await eventually(async () => (await faultsOf(call)).faults[0]?.injected !== 0);
    command.child.kill('SIGTERM');
    expect(await held).toEqual(OK);
    expect((await command.ended).code).toBe(0);
  });

  test('is armed only if the person agrees, where one can be asked', async () => {
    const { connect } = await serveCommand([
      'wrap',
      '--chaos',
      '--name',
      'u',
      '--',
      ...words(stdioUpstream()),
    ]);
    const answers: object[] = [
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'accept', content: { confirm: false } },
      { action: 'nonsense' },
      { action: 'accept', content: { confirm: true } },
    ];
    const questions: string[] = [];
    const { call } = await connect({
      capabilities: { elicitation: {} },
      before: (client) =>
        client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
          questions.push(params.message);
          return answers.shift() as never;
        }),
    });
    const fault = { kind: 'hang', target: { tool: 'ok' }, reason: 'to see' };
    expect(await refusalOf(call, fault)).toContain('the person who was asked declined');
    expect(await refusalOf(call, fault)).toContain('nobody agreed');
    expect(await refusalOf(call, fault)).toContain('the person who was asked declined');
    expect(await refusalOf(call, fault)).toContain('nobody could be asked');
    expect((await faultsOf(call)).faults).toEqual([]);
    await arm(call, fault as never);
    expect(questions).toHaveLength(5);
    expect(questions[0]).toContain('Arm the fault hang on tool:ok for 60 s');
    expect((await faultsOf(call)).faults).toHaveLength(1);
  });

  test('ends when calls fail that it is not aimed at', async () => {
    const chaos = createGatewayChaos();
    const gateway = await openGateway({ one: stdioUpstream() }, {}, { chaos, transparent: true });
    const { call } = await gateway.connect();
    await arm(call, { kind: 'tool_error', target: { tool: 'ok' } });
    for (let made = 0; made < 25; made += 1) await call('ok');
    // Those that it is aimed at do not count.
    expect((await faultsOf(call)).halted).toBe(false);
    for (let made = 0; made < 20; made += 1) await call('err');
    const { halted, haltReason, recent } = await faultsOf(call);
    expect([halted, recent[0]?.endReason]).toEqual([true, 'error_rate']);
    expect(haltReason).toContain('20 of 20 calls that no fault is aimed at failed');
    expect(await call('ok')).toEqual(OK);
  });
});
