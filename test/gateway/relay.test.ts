import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/gateway/types.ts';
import { META_FAILURE } from '../../src/mcp/meta.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { connectTo, eventually, openGateway } from './support/gateway.ts';
import { rawClient } from './support/raw-client.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

const httpUpstream = async (settings: Parameters<typeof startHttpUpstream>[0] = {}) => {
  const upstream = await startHttpUpstream(settings);
  onTestFinished(() => upstream.close());
  return upstream;
};
const NOWHERE = { command: join(import.meta.dirname, 'no-such-program') };
const two = () => ({
  alpha: stdioUpstream({ name: 'alpha' }),
  beta: stdioUpstream({ name: 'beta' }),
});

/** Messages that an upstream got, from its journal. */
const journalOf = () => {
  const journal = join(temporaryFolder(), 'journal');
  const messages = (): Json[] => {
    try {
      return readFileSync(journal, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    } catch {
      return [];
    }
  };
  return {
    journal,
    messages,
    of: (method: string) => messages().filter((m) => m.method === method),
  };
};

describe('initialize', () => {
  verifies('relay.transparent', async () => {
    const upstream = await httpUpstream({ instructions: 'Be careful.', name: 'only' });
    const gateway = await openGateway({ only: { url: upstream.url } }, {}, { transparent: true });
    const direct = await rawClient(upstream.url, { capabilities: { roots: {} } });
    const through = await rawClient(gateway.url, { capabilities: { roots: {} } });
    expect(through.initialized).toEqual(direct.initialized);
    const methods = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];
    for (const method of [...methods, 'ping', 'vendor/unknown', 'tasks/list']) {
      const answers = await Promise.all([direct.request(1, method), through.request(1, method)]);
      expect(answers[1], method).toEqual(answers[0]);
    }
    for (const [method, params] of [
      ['tools/call', { name: 'vendor' }],
      ['tools/call', { name: 'no such tool' }],
      ['tools/call', { arguments: {} }],
      ['tools/call', { name: 'rpcerr', arguments: { code: -32099, data: { a: 1 } } }],
      ['tools/call', { name: 'err' }],
      ['resources/read', { uri: 'test://one' }],
      ['resources/read', { uri: 'test://missing' }],
      ['resources/read', {}],
      ['prompts/get', { name: 'greet', arguments: { who: 'you' } }],
      ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: {} }],
      ['tools/list', { cursor: 'theirs' }],
    ] as const) {
      const direct_ = await direct.request(2, method, params);
      const through_ = await through.request(2, method, params);
      // What the upstream tells of the params has our trace context and progress token in it.
      const bare = (answer: Json) =>
        JSON.stringify(answer).replace(/,?\\?"_meta\\?":\{[^}]*\}/g, '');
      expect(bare(through_), `${method} ${JSON.stringify(params)}`).toBe(bare(direct_));
    }
    // The upstream was told what the client declared.
    const told = upstream.record.received.filter(({ message }) => message.method === 'initialize');
    expect(told.at(-1)?.message.params).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: { roots: {} },
      clientInfo: { name: 'raw', version: '1' },
    });
  });

  verifies('A02', async () => {
    const gateway = await openGateway({ only: NOWHERE }, {}, { transparent: true });
    const error = await connectTo(gateway.url).catch((reason) => reason);
    expect(error.message).toMatch(/only.*no-such-program/);
    // Behind a gateway of several, a client gets in, and is told who is not there.
    const several = await openGateway({ one: NOWHERE, other: NOWHERE });
    const { client, call } = await several.connect();
    expect(client.getInstructions()).toMatch(/Not reachable at this moment: one, other/);
    expect((await call('health_check')).structuredContent.status).toBe('down');
  });

  verifies('relay.together', async () => {
    const gateway = await openGateway(
      {
        alpha: stdioUpstream({ instructions: 'Alpha first.' }),
        beta: stdioUpstream({ capabilities: { tools: {}, __proto__: null, tasks: { list: {} } } }),
      },
      { name: 'house' },
    );
    const { client } = await gateway.connect();
    expect(client.getServerVersion()).toMatchObject({ name: 'house' });
    expect(client.getInstructions()).toBe('# alpha\n\nAlpha first.');
    expect(client.getServerCapabilities()).toEqual({
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      prompts: { listChanged: true },
      logging: {},
      completions: {},
      experimental: { 'x-vendor': { a: 1 } },
    });
    // A version that nobody knows is answered with the latest, one of ours with itself.
    for (const [asked, answered] of [
      ['2030-01-01', '2025-11-25'],
      ['2025-03-26', '2025-03-26'],
    ] as const) {
      const { initialized } = await rawClient(gateway.url, { protocolVersion: asked });
      expect(initialized.result).toMatchObject({ protocolVersion: answered });
    }
  });

  test('with strict a client is refused while a server is not there', async () => {
    const upstream = await httpUpstream();
    const gateway = await openGateway(
      {
        alpha: stdioUpstream(),
        http: { url: upstream.url, resilience: { discoveryTimeout: 500 } },
      },
      { strict: true },
    );
    await gateway.connect();
    await upstream.stop();
    const error = await connectTo(gateway.url).catch((reason) => reason);
    expect(error.message).toMatch(/not reachable: http/);
  });
});

describe('calls', () => {
  verifies('relay.no-mix', async () => {
    const http = await httpUpstream({ name: 'http' });
    const gateway = await openGateway({ stdio: stdioUpstream(), http: { url: http.url } });
    const clients = await Promise.all(
      ['one', 'two', 'three'].map((name) => rawClient(gateway.url, { name })),
    );
    // The same ids and tokens at the same time, to the same tools of the same upstreams.
    const seen = await Promise.all(
      clients.map(async (client, index) => {
        const meta = { progressToken: 'token' };
        const [first, second, mine] = await Promise.all([
          client.call(1, 'stdio__progress', { n: 3 + index, ms: 5 }, meta),
          client.call(2, 'http__progress', { n: 13 + index, ms: 5 }, { progressToken: 7 }),
          client.call(3, 'http__ok', { text: `client ${index}` }),
        ]);
        const totals = (token: unknown) =>
          client.received
            .filter(({ method }) => method === 'notifications/progress')
            .map(({ params }) => params as Json)
            .filter(({ progressToken }) => progressToken === token)
            .map(({ progress, total }) => [progress, total]);
        return { first, second, mine, stdio: totals('token'), http: totals(7) };
      }),
    );
    for (const [index, { first, second, mine, stdio, http: overHttp }] of seen.entries()) {
      expect([first.id, second.id, mine.id]).toEqual([1, 2, 3]);
      expect(mine.result).toEqual({ content: [{ type: 'text', text: `client ${index}` }] });
      const steps = (n: number) => Array.from({ length: n }, (_, step) => [step + 1, n]);
      expect(stdio).toEqual(steps(3 + index));
      expect(overHttp).toEqual(steps(13 + index));
    }
    // Each client is a client of its own there, too.
    const whoami = await Promise.all(clients.map((client) => client.call(4, 'http__whoami')));
    const facts = whoami.map(({ result }) => (result as Json).structuredContent as Json);
    expect(new Set(facts.map(({ session }) => session)).size).toBe(3);
    expect(facts.map(({ initialize }) => ((initialize as Json).clientInfo as Json).name)).toEqual([
      'one',
      'two',
      'three',
    ]);
  });

  verifies('relay.progress', async () => {
    const gateway = await openGateway({ only: stdioUpstream() }, {}, { transparent: true });
    const { received, call } = await rawClient(gateway.url);
    const progress = () => received.filter(({ method }) => method === 'notifications/progress');
    await call(1, 'progress', { n: 3 });
    expect(progress()).toEqual([]);
    await call(2, 'progress', { n: 2 }, { progressToken: 0 });
    expect(progress().map(({ params }) => params)).toEqual([
      { progress: 1, total: 2, message: 'step 1', progressToken: 0 },
      { progress: 2, total: 2, message: 'step 2', progressToken: 0 },
    ]);
  });

  verifies('relay.cancel', async () => {
    const { journal, of } = journalOf();
    const gateway = await openGateway(
      { only: stdioUpstream({ journal }) },
      {},
      { transparent: true },
    );
    const { call, client } = await gateway.connect();
    const abort = new AbortController();
    const cancelled = call('hang', {}, { signal: abort.signal }).catch((error) => error);
    await eventually(() => of('tools/call').length === 1);
    abort.abort('enough');
    await cancelled;
    await eventually(() => of('notifications/cancelled').length === 1);
    const [{ id } = {}] = of('tools/call');
    expect(of('notifications/cancelled')[0]?.params).toMatchObject({
      requestId: id,
      reason: expect.stringContaining('enough'),
    });
    // A client that has gone is one that cancels all it asked for.
    void call('hang').catch(() => {});
    await eventually(() => of('tools/call').length === 2);
    await client.close();
    await eventually(() => of('notifications/cancelled').length === 2);
  });

  verifies('relay.failures', async () => {
    const upstream = await httpUpstream();
    const gateway = await openGateway({
      http: { url: upstream.url, resilience: { timeout: 200, deadline: 1_000, retry: false } },
      alpha: stdioUpstream(),
    });
    const { request, call } = await gateway.connect();
    // A tool that failed is a result that a model can read, and a program too.
    const failed = await call('http__hang');
    expect(failed).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: expect.stringMatching(/^\[OUTCOME_UNKNOWN\]|^\[TIMEOUT\]/) }],
      _meta: { [META_FAILURE]: { code: expect.any(String), retryable: expect.any(Boolean) } },
    });
    // Anything else is a JSON-RPC error whose data says the same.
    upstream.fail('resources/read', { kind: 'status', status: 503 });
    const error = await request('resources/read', { uri: 'test://one' }).catch((reason) => reason);
    // Both upstreams list it, and the first one has it.
    expect(error.data).toMatchObject({ [META_FAILURE]: { code: 'UPSTREAM_UNAVAILABLE' } });
    // The upstream's own errors are its own.
    const own = await call('alpha__rpcerr', { code: -32099, message: 'mine', data: [1] }).catch(
      (reason) => reason,
    );
    expect([own.code, own.data]).toEqual([-32099, [1]]);
    expect(own.message).toMatch(/mine$/);
    await expect(call('alpha__throw')).rejects.toThrow(/thrown by the handler/);
    expect(await call('alpha__err')).toMatchObject({ isError: true });
  });

  test('a large answer holds up nobody', async () => {
    const gateway = await openGateway(two());
    const { call } = await gateway.connect();
    const order: string[] = [];
    const n = 20 * 1024 * 1024;
    const big = call('alpha__big', { n }).then((result) => {
      order.push('big');
      return result;
    });
    for (let round = 0; round < 3; round += 1) {
      await call('beta__ok');
      order.push('small');
    }
    expect((await big).content[0].text).toHaveLength(n);
    expect(order).toContain('big');
    expect(order.indexOf('small')).toBe(0);
  });
});

describe('what upstreams ask the client', () => {
  const answering = (client: Client): void => {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
      action: 'accept',
      content: { name: params.message },
    }));
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: 'sampled' },
      'x-vendor': 1,
    }));
  };

  verifies('A09', async () => {
    const http = await httpUpstream();
    const gateway = await openGateway({ stdio: stdioUpstream(), http: { url: http.url } });
    const able = await gateway.connect({
      capabilities: { elicitation: {}, sampling: {} },
      before: answering,
    });
    const unable = await gateway.connect();
    for (const prefix of ['stdio', 'http']) {
      const elicited = await able.call(`${prefix}__elicit`, { message: 'Anna' });
      expect(elicited.structuredContent).toEqual({
        result: { action: 'accept', content: { name: 'Anna' } },
      });
      const sampled = await able.call(`${prefix}__sample`);
      expect(sampled.structuredContent.result).toMatchObject({ model: 'm', 'x-vendor': 1 });
      // Without the capability the upstream is told so, and nobody waits.
      const refused = await unable.call(`${prefix}__elicit`);
      expect(refused.structuredContent.error).toMatchObject({
        code: -32601,
        message: expect.stringContaining('"elicitation"'),
      });
    }
  });

  verifies('relay.asks', async () => {
    const http = await httpUpstream();
    const gateway = await openGateway({ stdio: stdioUpstream(), http: { url: http.url } });
    // Many clients, asked at the same time: each answers for itself.
    const clients = await Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        const client = await rawClient(gateway.url, {
          capabilities: { elicitation: {}, roots: {} },
        });
        client.replies['elicitation/create'] = (params) => ({
          result: { action: 'accept', content: { who: index, asked: params.message } },
        });
        client.replies['roots/list'] = () => ({
          error: { code: -32042, message: 'no', data: index },
        });
        client.replies['vendor/ask'] = (params) => ({ result: { index, params } });
        return client;
      }),
    );
    await Promise.all(
      clients.map(async ({ call }, index) => {
        for (const prefix of ['stdio', 'http']) {
          const answer = async (id: number, tool: string, args: object) =>
            ((await call(id, `${prefix}__${tool}`, args)).result as Json).structuredContent;
          const [elicited, roots, vendor] = await Promise.all([
            answer(1, 'elicit', { message: `${prefix} ${index}` }),
            answer(2, 'roots', {}),
            answer(3, 'ask', { method: 'vendor/ask', params: { a: 1 } }),
          ]);
          expect(elicited).toEqual({
            result: { action: 'accept', content: { who: index, asked: `${prefix} ${index}` } },
          });
          expect(roots).toEqual({ error: { code: -32042, message: 'no', data: index } });
          expect(vendor).toEqual({ result: { index, params: { a: 1 } } });
        }
      }),
    );
  });

  test('a client that cancels its call is no longer asked about it', async () => {
    const gateway = await openGateway({ only: stdioUpstream() }, {}, { transparent: true });
    const client = await rawClient(gateway.url, { capabilities: { elicitation: {} } });
    const asked: unknown[] = [];
    client.replies['elicitation/create'] = (_params, id) => {
      asked.push(id);
      return undefined;
    };
    await client.send({ id: 1, method: 'tools/call', params: { name: 'elicit', arguments: {} } });
    await eventually(() => asked.length === 1);
    await client.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
    await eventually(() =>
      client.received.some(
        ({ method, params }) =>
          method === 'notifications/cancelled' && (params as Json).requestId === asked[0],
      ),
    );
  });

  test('progress of the client goes to whoever asked, under the token that it gave', async () => {
    const { journal, of } = journalOf();
    const gateway = await openGateway(
      { only: stdioUpstream({ journal }) },
      {},
      { transparent: true },
    );
    const client = await rawClient(gateway.url, { capabilities: { sampling: {} } });
    client.replies['sampling/createMessage'] = () => undefined;
    client.replies['vendor/slow'] = (params, id) => {
      const { progressToken } = params._meta as Json;
      void client
        .send({ method: 'notifications/progress', params: { progressToken, progress: 0.5 } })
        .then(() => client.send({ id, result: { done: true } }));
      return undefined;
    };
    const params = { _meta: { progressToken: 'theirs', other: 1 } };
    const { result } = await client.call(1, 'ask', { method: 'vendor/slow', params });
    expect((result as Json).structuredContent).toEqual({ result: { done: true } });
    await eventually(() => of('notifications/progress').length === 1);
    expect(of('notifications/progress')[0]?.params).toMatchObject({
      progressToken: 'theirs',
      progress: 0.5,
    });
    // Tokens that nobody gave are nobody's.
    await client.send({ method: 'notifications/progress', params: { progressToken: 99 } });
  });
});

describe('everything else', () => {
  verifies('relay.resources', async () => {
    const http = await httpUpstream({ name: 'http' });
    const gateway = await openGateway({ ...two(), http: { url: http.url } });
    const client = await rawClient(gateway.url);
    const read = async (id: number, uri: string) => {
      const answer = await client.request(id, 'resources/read', { uri });
      return ((answer.result as Json)?.contents as Json[] | undefined)?.[0]?.text ?? answer.error;
    };
    expect(await read(1, 'test://one')).toBe('alpha: test://one');
    expect(await read(2, 'test://item/7')).toBe('alpha: test://item/7');
    expect(await read(3, 'test://missing')).toMatchObject({ code: -32002, message: 'not found' });
    expect(await read(4, 'other://x')).toBe('alpha: other://x');
    expect(await client.request(5, 'resources/read', { uri: 1 })).toMatchObject({
      error: { code: -32602 },
    });

    await client.request(6, 'resources/subscribe', { uri: 'test://two' });
    await client.call(7, 'alpha__touch', { uri: 'test://two' });
    await eventually(() =>
      client.received.some(({ method }) => method === 'notifications/resources/updated'),
    );
    expect(
      (await client.request(8, 'resources/unsubscribe', { uri: 'test://two' })).result,
    ).toEqual({});
  });

  verifies('relay.prompts', async () => {
    const gateway = await openGateway(two());
    const client = await rawClient(gateway.url);
    const text = ({ result }: Json) =>
      JSON.stringify((result as Json).messages).replaceAll('\\"', '"');
    expect(text(await client.request(1, 'prompts/get', { name: 'beta__greet' }))).toMatch(
      /beta: \{"name":"greet"/,
    );
    expect(await client.request(2, 'prompts/get', { name: 'greet' })).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('alpha__greet or beta__greet') },
    });
    const complete = async (id: number, ref: object) => {
      const argument = { name: 'who', value: 'A' };
      const { result, error } = await client.request(id, 'completion/complete', { ref, argument });
      return String(
        ((result as Json)?.completion as Json | undefined)?.values ?? JSON.stringify(error),
      );
    };
    expect(await complete(3, { type: 'ref/prompt', name: 'beta__greet' })).toMatch(
      /^beta: .*"ref":\{"type":"ref\/prompt","name":"greet"\}/,
    );
    expect(await complete(4, { type: 'ref/resource', uri: 'test://item/{id}' })).toMatch(
      /^alpha: /,
    );
    expect(await complete(5, { type: 'ref/resource', uri: 'nobody://{x}' })).toMatch(/^alpha: /);
    expect(await complete(6, { type: 'ref/other' })).toMatch(/-32602/);
  });

  verifies('relay.notifications', async () => {
    const first = journalOf();
    const second = journalOf();
    const gateway = await openGateway({
      alpha: stdioUpstream({ journal: first.journal }),
      beta: stdioUpstream({ journal: second.journal }),
    });
    const client = await rawClient(gateway.url, { capabilities: { roots: { listChanged: true } } });
    expect(
      (await client.request(1, 'logging/setLevel', { level: 'debug', 'x-vendor': 1 })).result,
    ).toEqual({});
    await client.send({ method: 'notifications/roots/list_changed' });
    await client.send({ method: 'notifications/vendor', params: { a: 1 } });
    for (const { of } of [first, second]) {
      await eventually(() => of('notifications/vendor').length > 0);
      expect(of('logging/setLevel')[0]?.params).toMatchObject({ level: 'debug', 'x-vendor': 1 });
      expect(of('notifications/roots/list_changed')).toHaveLength(1);
      expect(of('notifications/vendor')[0]?.params).toMatchObject({ a: 1 });
      expect(of('notifications/initialized').length).toBeGreaterThan(0);
    }
    await client.call(2, 'alpha__log', { n: 2, level: 'warning' });
    const logs = client.received.filter(({ method }) => method === 'notifications/message');
    expect(logs.map(({ params }) => params)).toEqual([
      { level: 'warning', logger: 'U', data: { n: 0 } },
      { level: 'warning', logger: 'U', data: { n: 1 } },
    ]);
    // Nobody knows for whom an unknown method is.
    expect(await client.request(3, 'vendor/unknown')).toMatchObject({ error: { code: -32601 } });
    // One that answers nobody's question, and a cancellation of nothing, do no harm.
    await client.send({ id: 99, result: {} });
    await client.send({ method: 'notifications/cancelled', params: { requestId: 99 } });
    expect((await client.request(4, 'ping')).result).toEqual({});
  });

  verifies('relay.renewed', async () => {
    const { journal, of } = journalOf();
    const gateway = await openGateway({
      alpha: { ...stdioUpstream({ journal }), resilience: { restart: { initialDelay: 10 } } },
      beta: stdioUpstream(),
    });
    const client = await rawClient(gateway.url);
    await client.request(1, 'logging/setLevel', { level: 'error' });
    await client.request(2, 'resources/subscribe', { uri: 'test://one' });
    const died = await client.call(3, 'alpha__die', { signal: 'SIGKILL' });
    expect(died.result).toMatchObject({ isError: true, _meta: { [META_FAILURE]: {} } });
    // Its successor is told what it knew, and the client that what it offers may have changed.
    await eventually(() => of('resources/subscribe').length === 2);
    await eventually(() => of('logging/setLevel').length === 2);
    for (const kind of ['tools', 'resources', 'prompts']) {
      await eventually(() =>
        client.received.some(({ method }) => method === `notifications/${kind}/list_changed`),
      );
    }
    expect((await client.call(4, 'alpha__ok')).result).toMatchObject({ content: [{ text: 'ok' }] });
  });

  test('health_check can be left out', async () => {
    const without = await openGateway(two(), {}, { healthTool: false });
    const { call } = await without.connect();
    await expect(call('health_check')).rejects.toThrow(/Unknown tool/);
  });
});
