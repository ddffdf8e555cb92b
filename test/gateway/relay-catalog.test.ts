import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/gateway/types.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { eventually, openGateway, toolNames } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';
import { PROMPTS, RESOURCES, TEMPLATES, toolsOf, VENDOR_RESULT } from './support/upstream-tools.ts';

const httpUpstream = async (settings: Parameters<typeof startHttpUpstream>[0] = {}) => {
  const upstream = await startHttpUpstream(settings);
  onTestFinished(() => upstream.close());
  return upstream;
};
const NOWHERE = { command: join(import.meta.dirname, 'no-such-program') };

describe('lists of several upstreams', () => {
  verifies('A01', async () => {
    const gateway = await openGateway({
      alpha: stdioUpstream({ name: 'alpha' }),
      dead: NOWHERE,
      beta: { url: (await httpUpstream({ name: 'beta' })).url },
    });
    const { client, request, call } = await gateway.connect();
    const names = await toolNames(request);
    expect(names).toContain('alpha__ok');
    expect(names).toContain('beta__ok');
    expect(client.getInstructions()).toContain('dead');
    // health_check tells of the third one.
    const { structuredContent } = await call('health_check');
    expect(structuredContent.status).toBe('degraded');
    expect(structuredContent.upstreams).toMatchObject([
      { name: 'alpha', state: 'ready' },
      { name: 'dead', state: 'down', reason: expect.stringContaining('no-such-program') },
      { name: 'beta', state: 'ready' },
    ]);
    expect(await call('alpha__ok', { text: 'still there' })).toEqual({
      content: [{ type: 'text', text: 'still there' }],
    });
  });

  verifies('A03', async () => {
    const gateway = await openGateway({
      paged: stdioUpstream({ pages: 3 }),
      circle: stdioUpstream({ pages: 3, repeatCursor: true }),
    });
    const { request } = await gateway.connect();
    const expected = toolsOf({}).length;
    const names = await toolNames(request);
    for (const name of ['paged', 'circle']) {
      expect(names.filter((tool) => tool.startsWith(`${name}__`))).toHaveLength(expected);
    }
    expect((await request('resources/list')).resources).toEqual(RESOURCES);
    expect((await request('resources/templates/list')).resourceTemplates).toEqual(TEMPLATES);
    expect((await request('prompts/list')).prompts).toHaveLength(2 * PROMPTS.length);
    expect(await request('tools/list')).not.toHaveProperty('nextCursor');
  });

  verifies(['A05', 'A06'], async (id) => {
    const journal = join(temporaryFolder(), 'journal');
    const gateway = await openGateway({
      alpha: stdioUpstream({ journal }),
      beta: stdioUpstream({ odd: true }),
    });
    const { request, call } = await gateway.connect();
    if (id === 'A05') {
      expect(await call('alpha__vendor')).toEqual(VENDOR_RESULT);
      // And on the way there: everything but the name, and what belongs to a hop of the way.
      const params = {
        name: 'alpha__vendor',
        arguments: { __proto__: 1, nested: [{ a: null }] },
        'x-params': { kept: true },
        _meta: { 'vendor.example/in': [1], progressToken: 'mine' },
      };
      await request('tools/call', params);
      const calls = readFileSync(journal, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .filter(({ method }) => method === 'tools/call');
      expect(calls.at(-1).params).toMatchObject({
        name: 'vendor',
        arguments: { nested: [{ a: null }] },
        'x-params': { kept: true },
        _meta: { 'vendor.example/in': [1] },
      });
      return;
    }
    const listed: Json[] = (await request('tools/list')).tools;
    const [, ...rest] = Object.entries(toolsOf({}).at(-1) ?? {});
    const vendor = listed.find(({ name }) => name === 'alpha__vendor');
    expect(vendor).toEqual({ name: 'alpha__vendor', ...Object.fromEntries(rest) });
    // In the order in which they were written, name first.
    expect(Object.keys(vendor ?? {})).toEqual(Object.keys(toolsOf({}).at(-1) ?? {}));
    expect((await request('resources/list')).resources).toEqual(RESOURCES);
  });

  verifies('A10', async () => {
    const gateway = await openGateway({
      alpha: stdioUpstream({ name: 'alpha' }),
      beta: stdioUpstream({ name: 'beta', odd: true }),
    });
    const { request, call } = await gateway.connect();
    const names = await toolNames(request);
    expect(names).not.toContain('whoami');
    expect(new Set(names).size).toBe(names.length);
    const pidOf = async (tool: string) => (await call(tool)).structuredContent.pid;
    expect(await pidOf('alpha__whoami')).not.toBe(await pidOf('beta__whoami'));
    expect(
      gateway.said.filter((line) => /"whoami" of (?:alpha|beta) is shown as/.test(line)),
    ).toHaveLength(2);
    // The name that both had leads to neither, and says so.
    await expect(call('whoami')).rejects.toThrow(/alpha__whoami or beta__whoami/);
    await expect(call('nobody_has_it')).rejects.toThrow(/Unknown tool: "nobody_has_it"/);
  });

  verifies('catalog.odd-names', async () => {
    const gateway = await openGateway({
      odd: stdioUpstream({ odd: true, tools: 5_000 }),
      other: stdioUpstream({ odd: true }),
    });
    const { request, call } = await gateway.connect();
    const listed: Json[] = (await request('tools/list')).tools;
    const names = listed.map(({ name }) => String(name));
    expect(names.length).toBeGreaterThan(5_000 + 2 * toolsOf({ odd: true }).length - 1);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_.-]{1,64}$/);
    expect(new Set(names).size).toBe(names.length);
    expect((await call('tool-04711')).content[0].text).toBe('tool-04711');
    // Each of the odd ones answers with the name that it has at home.
    const said = new Set<string>();
    const odd = listed.filter(({ description }) => description === 'answers with its name');
    for (const { name } of odd.filter((tool) => !/tool-\d/.test(String(tool.name)))) {
      said.add((await call(String(name))).content[0].text);
    }
    for (const name of ['with space', 'ünïcödé-工具-🔧', '__proto__', `long-${'x'.repeat(120)}`]) {
      expect(said).toContain(name);
    }
  });

  verifies('T07', async () => {
    const journal = join(temporaryFolder(), 'journal');
    const gateway = await openGateway({
      quick: stdioUpstream(),
      silent: {
        ...stdioUpstream({ silent: ['tools/list', 'prompts/list'], journal }),
        resilience: { discoveryTimeout: 300 },
      },
    });
    const { request, call } = await gateway.connect();
    expect(await toolNames(request)).toEqual([
      ...toolsOf({}).map(({ name }) => name),
      'health_check',
    ]);
    expect((await request('prompts/list')).prompts).toEqual(PROMPTS);
    expect(gateway.said).toContainEqual(
      expect.stringMatching(/tools of silent are not listed: tools\/list took longer than 300 ms/),
    );
    expect(await call('ok')).toEqual({ content: [{ type: 'text', text: 'ok' }] });
  });

  test('names may be asked for with a prefix, or never', async () => {
    const servers = { alpha: stdioUpstream(), beta: stdioUpstream() };
    const always = await openGateway(
      { alpha: servers.alpha },
      { prefix: 'always', separator: '.' },
    );
    expect((await toolNames((await always.connect()).request))[0]).toBe('alpha.ok');
    const never = await openGateway(servers, { prefix: 'never' });
    const { request, call } = await never.connect();
    const names = await toolNames(request);
    expect(names.filter((name) => name.includes('__'))).toEqual([]);
    const twins = names.filter((name) => name.startsWith('whoami'));
    expect(twins).toHaveLength(2);
    const pids = await Promise.all(
      twins.map(async (name) => (await call(name)).structuredContent.pid),
    );
    expect(new Set(pids).size).toBe(2);
  });

  test('a cursor is none of ours, and refused as such', async () => {
    const gateway = await openGateway({ alpha: stdioUpstream(), beta: stdioUpstream() });
    const { request } = await gateway.connect();
    await expect(request('tools/list', { cursor: 'x' })).rejects.toThrow(/Invalid cursor/);
  });
});

describe('changes of lists', () => {
  verifies('A08', async () => {
    const silent = { tools: {}, resources: {}, prompts: {} };
    const one = await openGateway(
      { only: stdioUpstream({ capabilities: silent }) },
      {},
      { transparent: true },
    );
    const heard: string[] = [];
    const listen = {
      before: (client: { fallbackNotificationHandler?: unknown }) => {
        client.fallbackNotificationHandler = async ({ method }: { method: string }) =>
          void heard.push(method);
      },
    };
    const { call } = await one.connect(listen as never);
    await call('changed');
    await call('notify', { method: 'notifications/vendor' });
    await eventually(() => heard.length > 0);
    expect(heard).toEqual(['notifications/vendor']);

    // Several: the gateway declares it itself, since who comes back changes what there is.
    const two = await openGateway({
      a: stdioUpstream({ capabilities: silent }),
      b: stdioUpstream(),
    });
    const { client } = await two.connect();
    expect(client.getServerCapabilities()).toMatchObject({
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      prompts: { listChanged: true },
    });
  });

  verifies('relay.changes', async () => {
    const upstream = await httpUpstream();
    const gateway = await openGateway({ alpha: stdioUpstream(), http: { url: upstream.url } });
    const heard: string[] = [];
    const { request, call } = await gateway.connect({
      before: (client) => {
        client.fallbackNotificationHandler = async ({ method }) => void heard.push(method);
      },
    });
    // Of this client alone: the gateway has had a look for itself, at the start.
    const { session } = JSON.parse((await call('http__whoami')).content[0].text);
    const listings = () =>
      upstream.record.received.filter(
        (received) => received.session === session && received.message.method === 'tools/list',
      ).length;
    await toolNames(request);
    await toolNames(request);
    const before = listings();
    for (let n = 0; n < 5; n += 1) await call('http__changed');
    await eventually(() => heard.includes('notifications/tools/list_changed'));
    await toolNames(request);
    expect(listings()).toBe(before + 1);
    await call('alpha__changed', { what: 'prompts' });
    await eventually(() => heard.includes('notifications/prompts/list_changed'));
    await call('http__notify', { method: 'notifications/vendor', params: { a: 1 } });
    await eventually(() => heard.includes('notifications/vendor'));
  });
});
