import { setTimeout } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FaultReport } from '../../src/chaos/active-fault.ts';
import { FAULT_KINDS, HTTP_KINDS } from '../../src/chaos/fault.ts';
import { configFile, type RunningCommand, runCommand, startCommand } from '../fixtures/command.ts';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { runNode } from '../fixtures/run-node.ts';
import { json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { pages, textOf, upstreamForTest } from '../tools/support.ts';

/** The server in a process of its own, against a scripted upstream. */
const open = async (
  env: NodeJS.ProcessEnv = {},
  search: object = {},
  args: readonly string[] = ['--chaos'],
) => {
  const upstream = await upstreamForTest();
  upstream.on('*', json(pages({ title: 'Found' })));
  const policy = { breaker: false, rateLimit: false, cache: false, retry: false, ...search };
  const config = { tools: { search: policy }, http: { rateLimit: false } };
  const command = startCommand(
    ['serve', '--http', '--port', '0', '--config', configFile(config), ...args],
    { SEARCH_API_URL: upstream.url, WEATHER_API_URL: upstream.url, ...env },
  );
  const [, url = ''] = await command.said(/serves MCP at (\S+)/);
  return { upstream, command, url };
};

const connect = async (url: string, client = new Client({ name: 'tester', version: '1' })) => {
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as never);
  onTestFinished(() => client.close());
  const call = async (name: string, args: object = {}) =>
    (await client.callTool({ name, arguments: { ...args } })) as unknown as {
      isError?: boolean;
      content: { type: string; text: string }[];
      structuredContent?: Record<string, unknown>;
      _meta?: Record<string, unknown>;
    };
  return { client, call };
};

const end = async ({ child, ended }: RunningCommand, signal: NodeJS.Signals = 'SIGTERM') => {
  child.kill(signal);
  return ended;
};

/** The faults that the server knows, now and before. */
const faultsOf = async (call: (name: string) => Promise<{ structuredContent?: object }>) => {
  const { structuredContent = {} } = await call('list_faults');
  return structuredContent as { readonly faults: FaultReport[]; readonly recent: FaultReport[] };
};

/** Waits until no fault is active; gives those that were. */
const untilNone = async (call: (name: string) => Promise<{ structuredContent?: object }>) => {
  for (;;) {
    const { faults, recent } = await faultsOf(call);
    if (faults.length === 0) return recent;
    await setTimeout(50);
  }
};

const failureOf = ({ _meta }: { _meta?: Record<string, unknown> }) =>
  (_meta?.['mcp-resilience/failure'] as { code?: string } | undefined)?.code;

const AT_SEARCH = { target: { tool: 'search' }, ttlSeconds: 60 };

describe('serve', () => {
  verifies(
    'X04',
    async () => {
      const off = await open({}, {}, []);
      const plain = await connect(off.url);
      const { tools } = await plain.client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(['get_weather', 'search', 'health_check']);
      expect(plain.client.getServerCapabilities()).toEqual({ tools: {} });
      await expect(plain.call('inject_fault', { kind: 'hang', ...AT_SEARCH })).rejects.toThrow(
        'Unknown tool: inject_fault',
      );

      const receiver = await OtlpReceiver.start();
      onTestFinished(() => receiver.stop());
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, MCP_CHAOS: '1' };
      const { command, upstream, url } = await open(env, { timeout: 1_000 }, []);
      await command.said(/warning: chaos is on/);
      const { call } = await connect(url);
      // 2 s of delay against a time limit of 1 s: the limit wins, and nothing is executed.
      const latency = { delayMs: 2_000 };
      await call('inject_fault', { kind: 'latency', latency, ...AT_SEARCH, ttlSeconds: 1.5 });
      const late = await call('search', { query: 'late' });
      expect([failureOf(late), upstream.count()]).toEqual(['TIMEOUT', 0]);
      // It expires by itself.
      await untilNone(call);
      expect((await call('search', { query: 'now' })).isError).toBeUndefined();
      await end(command);

      const calls = receiver.spans().filter(({ name }) => name === 'tools/call search');
      expect(calls.map(({ attributes }) => attributes['fault.injected'])).toEqual([
        true,
        undefined,
      ]);
      expect(calls[0]?.attributes['fault.id']).toMatch(/^fault-/);
      const points = receiver
        .metrics()
        .filter(({ name }) => name === 'tool.duration')
        .at(-1)
        ?.points.filter(({ attributes }) => attributes['gen_ai.tool.name'] === 'search')
        .map(({ attributes, value }) => [
          attributes['tool.outcome'],
          attributes['fault.injected'],
          value,
        ]);
      expect(points).toEqual([
        ['error', true, 1],
        ['success', undefined, 1],
      ]);
      await end(off.command);
    },
    60_000,
  );

  verifies(
    'chaos.spans',
    async () => {
      const receiver = await OtlpReceiver.start();
      onTestFinished(() => receiver.stop());
      const { command, upstream, url } = await open(
        { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
        { timeout: 500 },
      );
      const { call } = await connect(url);
      const kinds = FAULT_KINDS.filter((kind) => !/^(upstream|session)/.test(kind));
      const ids = new Map<string, string>();
      for (const kind of kinds) {
        const latency = kind === 'latency' ? { latency: { delayMs: 20 } } : {};
        const armed = await call('inject_fault', { kind, ...AT_SEARCH, ...latency });
        const { fault } = armed.structuredContent as { fault: FaultReport };
        const { id } = fault;
        ids.set(kind, id);
        await call('search', { query: kind });
        await call('clear_fault', { id });
      }
      await call('search', { query: 'spared' });
      await end(command);

      const spans = receiver.spans();
      const of = (id: string) => spans.filter(({ attributes }) => attributes['fault.id'] === id);
      const port = Number(new URL(upstream.url).port);
      for (const [kind, id] of ids) {
        const server = of(id).filter(({ kind: spanKind }) => spanKind === 2);
        expect([kind, server.map(({ name }) => name)]).toEqual([kind, ['tools/call search']]);
        const [{ traceId, spanId } = { traceId: '', spanId: '' }] = server;
        const requests = of(id).filter(({ kind: spanKind }) => spanKind === 3);
        const makesOne = kind === 'latency' || HTTP_KINDS.some((http) => http === kind);
        expect([kind, requests.length]).toEqual([kind, makesOne ? 1 : 0]);
        for (const request of requests) {
          expect(request).toMatchObject({ traceId, parentSpanId: spanId, name: 'GET' });
          // The upstream that was asked, not the server that stood in for it.
          expect(request.attributes).toMatchObject({
            'fault.injected': true,
            'server.address': '127.0.0.1',
            'server.port': port,
          });
          expect(String(request.attributes['url.full'])).toContain(upstream.url);
        }
      }
      const marked = spans.filter(({ attributes }) => attributes['fault.injected'] === true);
      expect(new Set(marked.map(({ attributes }) => attributes['fault.id']))).toEqual(
        new Set(ids.values()),
      );
      // The calls that arm, clear and are spared are nobody's fault.
      const spared = spans.filter(
        ({ name, attributes }) => name.startsWith('tools/call') && !attributes['fault.injected'],
      );
      expect(spared).toHaveLength(2 * kinds.length + 1);
      const events = receiver.logs().map(({ eventName }) => eventName);
      const count = (name: string) => events.filter((event) => event === name).length;
      expect(['armed', 'injected', 'cleared'].map((what) => count(`chaos.fault.${what}`))).toEqual([
        kinds.length,
        kinds.length,
        kinds.length,
      ]);
    },
    60_000,
  );

  verifies(
    'chaos.nothing-left',
    async () => {
      const { command, url } = await open({}, { timeout: 30_000 });
      const { call } = await connect(url);
      const arm = (extra: object = {}) =>
        call('inject_fault', { kind: 'hang', ...AT_SEARCH, ...extra });
      const gone = async (reason: string) => {
        const [last] = await untilNone(call);
        expect(last?.endReason).toBe(reason);
      };
      await arm({ ttlSeconds: 0.5 });
      await gone('ttl');
      await arm();
      await call('halt_chaos');
      await gone('halted');
      await call('halt_chaos', { lift: true });

      // A client that says goodbye.
      const polite = new Client({ name: 'polite', version: '1' });
      const other = await connect(url, polite);
      await other.call('inject_fault', { kind: 'hang', ...AT_SEARCH });
      expect((await faultsOf(call)).faults).toMatchObject([{ by: 'polite 1' }]);
      await (polite.transport as unknown as StreamableHTTPClientTransport).terminateSession();
      await gone('session_ended');

      // SIGKILL: nothing is kept, so that nothing comes back.
      await arm();
      await end(command, 'SIGKILL');
      const again = await open();
      const fresh = await connect(again.url);
      const { structuredContent } = await fresh.call('list_faults');
      expect(structuredContent).toEqual({ faults: [], halted: false, recent: [] });
      expect((await fresh.call('search', { query: 'x' })).isError).toBeUndefined();

      // Asked to end, it lets go of whom a fault holds: the call is answered, not cut off.
      await fresh.call('inject_fault', { kind: 'hang', ...AT_SEARCH });
      const held = fresh.call('search', { query: 'y' });
      const watcher = await connect(again.url);
      while ((await faultsOf(watcher.call)).faults[0]?.injected !== 1) await setTimeout(20);
      const ended = end(again.command);
      expect((await held).isError).toBeUndefined();
      expect((await ended).code).toBe(0);
    },
    60_000,
  );

  test('a killed client on stdio takes its faults and the server with it', async () => {
    const command = startCommand(['serve', '--stdio', '--chaos']);
    await command.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    });
    const armed = await command.call('inject_fault', { kind: 'hang', ...AT_SEARCH });
    expect(armed.result?.structuredContent).toMatchObject({ fault: { by: 'raw 1' } });
    command.child.stdin.end();
    expect((await command.ended).code).toBe(0);
  });

  test('a client that was killed over HTTP takes its faults with it', async () => {
    const { url } = await open();
    const { call } = await connect(url);
    const script = `
      import { Client } from '@modelcontextprotocol/sdk/client/index.js';
      import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
      const client = new Client({ name: 'mortal', version: '1' });
      await client.connect(new StreamableHTTPClientTransport(new URL('${url}')));
      await client.callTool({ name: 'inject_fault', arguments: { kind: 'hang', target: { tool: 'search' }, ttlSeconds: 900 } });
      process.kill(process.pid, 'SIGKILL');
    `;
    expect((await runNode(script)).signal).toBe('SIGKILL');
    expect(await untilNone(call)).toMatchObject([{ by: 'mortal 1', endReason: 'session_ended' }]);
  }, 60_000);

  test('a client that can ask a person has it asked', async () => {
    const { url } = await open();
    const person = new Client(
      { name: 'person', version: '1' },
      { capabilities: { elicitation: { form: {} } } },
    );
    const answers = ['decline', 'cancel', 'accept'] as const;
    const asked: string[] = [];
    person.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      const action = answers[asked.length] ?? 'cancel';
      asked.push(params.message);
      return action === 'accept' ? { action, content: { confirm: true } } : { action };
    });
    const { call } = await connect(url, person);
    const armed = [];
    for (const _ of answers) {
      await call('inject_fault', { kind: 'hang', ...AT_SEARCH });
      armed.push((await faultsOf(call)).faults.length);
    }
    expect(armed).toEqual([0, 0, 1]);
    expect(asked[0]).toContain('Arm the fault hang on tool:search for 60 s?');
  });

  test('is refused in production, and says on stderr that it is on', async () => {
    const refused = await runCommand(['serve', '--stdio', '--chaos'], { NODE_ENV: 'production' });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('set MCP_CHAOS_IN_PRODUCTION=1 as well if it is meant');
    const env = { NODE_ENV: 'production', MCP_CHAOS_IN_PRODUCTION: '1', MCP_CHAOS: 'yes' };
    const allowed = await runCommand(['serve', '--stdio'], env);
    expect([allowed.code, allowed.stderr.includes('chaos is on')]).toEqual([0, true]);
  });

  test('offers the playbook and the drill', async () => {
    const { url } = await open();
    const { client, call } = await connect(url);
    const { contents } = await client.readResource({ uri: 'chaos://playbook' });
    expect(contents[0]).toMatchObject({ mimeType: 'text/markdown' });
    const { messages } = await client.getPrompt({
      name: 'run_drill',
      arguments: { drill: 'hang', tool: 'search' },
    });
    expect(JSON.stringify(messages)).toContain('Run the drill');
    expect(client.getInstructions()).toContain('chaos://playbook');
    expect(
      textOf(await call('inject_fault', { kind: 'hang', target: { tool: 'halt_chaos' } })),
    ).toContain('is never a target');
  });
});
