import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import { createGatewayChaos } from '../../src/commands/chaos-gateway.ts';
import type { Json } from '../../src/gateway/types.ts';
import { runCommand } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { arm, CHAOS_TOOLS, faultsOf, refusalOf } from './support/chaos.ts';
import {
  connectCommand,
  connectProcess,
  serveCommand,
  words,
  writtenConfig,
} from './support/command.ts';
import { openGateway, toolNames } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const ON_STDERR = 'warning: chaos is on: whoever can call tools here can make them fail';

describe('without --chaos', () => {
  verifies(
    'chaos.gateway-off',
    async () => {
      const upstream = words(stdioUpstream());
      const { file } = writtenConfig({ one: stdioUpstream() });
      const direct = await connectProcess(upstream);
      const wrapped = await connectCommand(['wrap', '--', ...upstream]);
      const gateway = await connectCommand(['gateway', '--config', file]);
      const names = await toolNames(direct.request);
      expect(await toolNames(wrapped.request)).toEqual(names);
      expect(await toolNames(gateway.request)).toEqual([...names, 'health_check']);
      for (const { call, request, stderr } of [wrapped, gateway]) {
        for (const tool of CHAOS_TOOLS) await expect(call(tool)).rejects.toThrow(/unknown tool/i);
        const { resources } = await request('resources/list');
        expect(resources.map(({ uri }: Json) => uri)).not.toContain('chaos://playbook');
        expect(stderr()).not.toContain('chaos');
      }

      const production = { NODE_ENV: 'production' };
      for (const command of [
        ['wrap', '--chaos', '--', ...upstream],
        ['gateway', '--chaos', '--config', file],
      ]) {
        const { code, stderr, stdout } = await runCommand(command, production);
        expect([code, stdout]).toEqual([2, '']);
        expect(stderr).toContain('refused where NODE_ENV is production');
        expect(stderr).toContain('MCP_CHAOS_IN_PRODUCTION=1');
      }
      // The second switch says that it is meant; the variable is as good as the flag.
      const meant = await connectCommand(['wrap', '--', ...upstream], {
        env: { ...production, MCP_CHAOS: '1', MCP_CHAOS_IN_PRODUCTION: '1' },
      });
      expect(await toolNames(meant.request)).toEqual([...names, ...CHAOS_TOOLS]);
      expect(meant.stderr()).toContain(ON_STDERR);
    },
    60_000,
  );
});

describe('with --chaos', () => {
  verifies(
    'chaos.gateway-offer',
    async () => {
      const upstream = words(stdioUpstream({ instructions: 'Read first.' }));
      const direct = await connectProcess(upstream);
      const wrapped = await connectCommand(['wrap', '--chaos', '--', ...upstream]);
      const added = async (method: string, key: string) => {
        const here = (await wrapped.request(method))[key];
        const there = (await direct.request(method))[key];
        // What the server has comes first, and untouched.
        expect(here.slice(0, there.length)).toEqual(there);
        return here.slice(there.length).map(({ name, uri }: Json) => uri ?? name);
      };
      expect(await added('tools/list', 'tools')).toEqual(CHAOS_TOOLS);
      expect(await added('resources/list', 'resources')).toEqual(['chaos://playbook']);
      expect(await added('resources/templates/list', 'resourceTemplates')).toEqual([]);
      expect(await added('prompts/list', 'prompts')).toEqual(['run_drill']);
      expect(wrapped.client.getServerVersion()).toEqual(direct.client.getServerVersion());
      expect(wrapped.client.getServerCapabilities()).toEqual(direct.client.getServerCapabilities());
      expect(wrapped.client.getInstructions()).toMatch(/^Read first\.\n\nChaos is on: /);
      expect(await wrapped.call('vendor')).toEqual(await direct.call('vendor'));
      const prompt = await wrapped.request('prompts/get', { name: 'plain' });
      expect(prompt.messages[0].content.text).toMatch(/^U: {"name":"plain"/);

      // A server without resources and prompts has those of chaos, and is not asked for others.
      const bare = await connectCommand([
        'wrap',
        '--chaos',
        '--name',
        'bare',
        '--',
        ...words(stdioUpstream({ capabilities: { tools: {} }, silent: ['resources/list'] })),
      ]);
      expect(bare.client.getServerCapabilities()).toEqual({
        tools: {},
        resources: {},
        prompts: {},
      });
      const { resources } = await bare.request('resources/list');
      expect(resources.map(({ uri }: Json) => uri)).toEqual(['chaos://playbook']);
      expect((await bare.request('resources/templates/list')).resourceTemplates).toEqual([]);
      // Nobody has listed tools here: it looks itself.
      const read = await bare.request('resources/read', { uri: 'chaos://playbook' });
      expect(read.contents[0].text).toMatch(/Tools: `ok`, `slow`[\s\S]*Upstream servers: `bare`/);
      const drill = { name: 'run_drill', arguments: { drill: 'hang', tool: 'slow' } };
      const { messages } = await bare.request('prompts/get', drill);
      expect(messages[0].content.text).toContain('"target":{"tool":"slow"}');
    },
    60_000,
  );

  verifies(
    'chaos.gateway-offer',
    async () => {
      // A server that has chaos tools of its own, and a health_check.
      const { file } = writtenConfig({
        ours: { command: process.execPath, args: [CLI, 'serve', '--chaos'] },
        other: stdioUpstream(),
      });
      const { request, call } = await connectCommand(['gateway', '--chaos', '--config', file]);
      const names = await toolNames(request);
      const theirs = ['health_check', ...CHAOS_TOOLS];
      const own = theirs.map((name) => `gateway_${name}`);
      expect(names.filter((name) => theirs.includes(name))).toEqual(theirs);
      expect(names.slice(-own.length)).toEqual(own);
      const { prompts } = await request('prompts/list');
      expect(prompts.map(({ name }: Json) => name)).toEqual(
        expect.arrayContaining(['run_drill', 'gateway_run_drill']),
      );
      // Theirs knows their tools, ours knows all of them and both servers.
      const fault = { kind: 'hang', target: { upstream: 'other' } };
      expect(await refusalOf(call, fault)).toContain('there are none');
      const armed = await call('gateway_inject_fault', fault);
      expect(armed.structuredContent.fault.target).toEqual({ upstream: 'other' });
      expect((await call('gateway_list_faults')).structuredContent.faults).toHaveLength(1);
      expect((await call('list_faults')).structuredContent.faults).toHaveLength(0);
    },
    60_000,
  );

  verifies(
    'chaos.gateway-targets',
    async () => {
      const http = await startHttpUpstream();
      const { file } = writtenConfig({
        files: stdioUpstream(),
        web: { url: http.url },
        old: { url: http.sseUrl, type: 'sse' },
      });
      const gateway = await serveCommand(['gateway', '--chaos', '--config', file]);
      const { call } = await gateway.connect();
      // Nobody has listed tools yet.
      await arm(call, { kind: 'latency', latency: { delayMs: 1 }, target: { tool: 'web__ok' } });
      const of = (kind: string, target: object) => refusalOf(call, { kind, target });

      expect(await of('hang', { tool: 'nobody' })).toMatch(
        /there is no tool "nobody"; there are files__ok, .* and \d+ more$/,
      );
      expect(await of('hang', { tool: 'ok' })).toContain('there is no tool "ok"');
      expect(await of('hang', { upstream: 'nobody' })).toContain(
        'there is no upstream "nobody"; there are files, web, old',
      );
      for (const tool of ['health_check', ...CHAOS_TOOLS]) {
        expect(await of('hang', { tool })).toContain(`${tool} is never a target`);
      }
      expect(await of('hang', { tool: 'web__ok', upstream: 'files' })).toContain(
        'web__ok is a tool of web, not of files; name one of the two',
      );
      const possible = 'it can have latency, hang, tool_error, protocol_error, upstream_exit';
      for (const target of [{ upstream: 'files' }, { tool: 'files__ok' }]) {
        expect(await of('status', target)).toContain(
          `kind status: the upstream "files" is not asked over HTTP; ${possible}`,
        );
      }
      expect(await of('session_loss', { upstream: 'files' })).toContain('has no session');
      expect(await of('upstream_exit', { upstream: 'web' })).toContain('has no process of ours');
      expect(await of('malformed_json', { upstream: 'old' })).toContain(
        'the upstream "old" does not answer in the body of the response',
      );
      for (const [kind, upstream] of [
        ['malformed_json', 'web'],
        ['status', 'old'],
        ['session_loss', 'old'],
        ['upstream_exit', 'files'],
      ] as const) {
        await arm(call, { kind, target: { upstream } });
      }
      expect((await faultsOf(call)).faults).toHaveLength(5);
      await http.close();
    },
    60_000,
  );

  verifies(
    'chaos.gateway-targets',
    async () => {
      const chaos = createGatewayChaos();
      const http = await startHttpUpstream();
      const gateway = await openGateway({ a: stdioUpstream(), b: stdioUpstream() }, {}, { chaos });
      const { call, request } = await gateway.connect();
      const of = (kind: string, target: object) => refusalOf(call, { kind, target, dryRun: true });
      expect(await of('hang', { tool: 'b__ok' })).toBe('it was armed');
      // One has gone, one is reached in another way, one is new.
      await gateway.apply({ a: { url: http.url }, c: stdioUpstream() });
      expect(await of('hang', { upstream: 'b' })).toContain('there are a, c');
      expect(await of('hang', { tool: 'b__ok' })).toContain('there is no tool "b__ok"');
      expect(await toolNames(request)).toContain('c__ok');
      expect(await of('hang', { tool: 'c__ok' })).toBe('it was armed');
      expect(await of('status', { upstream: 'a' })).toBe('it was armed');
      expect(await of('upstream_exit', { upstream: 'a' })).toContain('has no process of ours');
      await http.close();
    },
    60_000,
  );
});
