/** Servers that nobody here wrote, behind the gateway as their users would put them. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished } from 'vitest';
import type { Json } from '../../src/gateway/types.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { closedPort } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';
import { connectCommand, connectProcess, writtenConfig } from './support/command.ts';
import { type Anything, connectTo, eventually, openGateway } from './support/gateway.ts';

const require = createRequire(import.meta.url);

/** The file that a server's command runs. */
const entry = (name: string): string => {
  const manifest = require.resolve(`@modelcontextprotocol/${name}/package.json`);
  const [file = ''] = Object.values<string>(require(manifest).bin);
  return join(dirname(manifest), file);
};
const node = (name: string, ...args: string[]): [string, string[]] => [
  process.execPath,
  [entry(name), ...args],
];

const LISTS = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];

type Connected = { request: (method: string, params?: object) => Promise<Anything> };

/** A list as it comes, or how it is refused. */
const answer = ({ request }: Connected, method: string, params?: object): Promise<Anything> =>
  request(method, params).catch(({ code, message }) => ({ code, message }));

/** The same questions to both get the same answers. */
const compare = async (
  direct: Connected,
  through: Connected,
  questions: readonly (readonly [string, object?])[] = [],
): Promise<void> => {
  for (const [method, params] of [...LISTS.map((list) => [list] as const), ...questions]) {
    const expected = await answer(direct, method, params);
    const got = await answer(through, method, params);
    expect(JSON.stringify(got), `${method} ${JSON.stringify(params)}`).toBe(
      JSON.stringify(expected),
    );
  }
};

const call = (name: string, args: object): readonly [string, object] => [
  'tools/call',
  { name, arguments: args },
];

/** A client that can be asked everything. */
const ABLE = {
  capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } },
  before: (client: Parameters<NonNullable<Parameters<typeof connectTo>[1]>['before'] & {}>[0]) => {
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: 'test',
      role: 'assistant',
      content: { type: 'text', text: 'sampled' },
    }));
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' }));
    client.setRequestHandler(ListRootsRequestSchema, () => ({
      roots: [{ uri: 'file:///tmp/root', name: 'root' }],
    }));
  },
};

const wrapped = (command: string, args: readonly string[], options = {}) =>
  connectCommand(['wrap', '--', command, ...args], options);

describe('real servers', () => {
  verifies('real.everything', async () => {
    const [command, args] = node('server-everything', 'stdio');
    const direct = await connectProcess([command, ...args], ABLE);
    const through = await wrapped(command, args, ABLE);
    expect(through.client.getServerCapabilities()).toEqual(direct.client.getServerCapabilities());
    expect(through.client.getServerVersion()).toEqual(direct.client.getServerVersion());
    expect(through.client.getInstructions()).toEqual(direct.client.getInstructions());
    // It adds tools once it knows what the client can do.
    for (const { request } of [direct, through]) {
      await eventually(async () =>
        (await request('tools/list')).tools.some(({ name }: Json) => name === 'get-roots-list'),
      );
    }
    await compare(direct, through, [
      call('echo', { message: 'hello' }),
      call('get-sum', { a: 2, b: 3 }),
      call('get-sum', { a: 'x' }),
      call('get-tiny-image', {}),
      call('get-annotated-message', { messageType: 'error', includeImage: true }),
      call('get-structured-content', { location: 'New York' }),
      call('get-resource-links', { count: 3 }),
      call('no-such-tool', {}),
      ['prompts/get', { name: 'simple-prompt' }],
      ['prompts/get', { name: 'args-prompt', arguments: { city: 'Paris' } }],
      [
        'completion/complete',
        {
          ref: { type: 'ref/prompt', name: 'completable-prompt' },
          argument: { name: 'department', value: 'E' },
        },
      ],
      ['resources/read', { uri: 'demo://resource/static/document/architecture.md' }],
      ['resources/read', { uri: 'demo://no/such/resource' }],
      ['logging/setLevel', { level: 'error' }],
      ['ping'],
    ]);
    // Progress, and both kinds of questions to the client.
    const seen: unknown[] = [];
    // Where it arrives: the SDK drops a progress whose answer comes in the same piece.
    const { transport } = through.client;
    const deliver = transport?.onmessage;
    if (transport && deliver) {
      transport.onmessage = (message, extra) => {
        const { method, params } = message as Anything;
        if (method === 'notifications/progress') seen.push(params.progress);
        deliver(message, extra);
      };
    }
    const long = await through.call(
      'trigger-long-running-operation',
      { duration: 0.3, steps: 3 },
      { onprogress: () => {} },
    );
    expect(long.content[0].text).toMatch(/completed/);
    expect(seen).toEqual([1, 2, 3]);
    const sampled = await through.call('trigger-sampling-request', { prompt: 'x', maxTokens: 5 });
    expect(JSON.stringify(sampled)).toContain('sampled');
    const elicited = await through.call('trigger-elicitation-request');
    expect(JSON.stringify(elicited)).toMatch(/declined/);
    expect(JSON.stringify(await through.call('get-roots-list'))).toContain('file:///tmp/root');
  });

  verifies('real.filesystem', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'one.txt'), 'eins');
    const [command, args] = node('server-filesystem', folder);
    const direct = await connectProcess([command, ...args]);
    const through = await wrapped(command, args);
    await compare(direct, through, [
      call('list_directory', { path: folder }),
      call('read_text_file', { path: join(folder, 'one.txt') }),
      call('read_text_file', { path: '/etc/passwd' }),
      call('list_allowed_directories', {}),
    ]);
    const path = join(folder, 'two.txt');
    await through.call('write_file', { path, content: 'zwei' });
    expect((await direct.call('read_text_file', { path })).content[0].text).toBe('zwei');
  });

  verifies('real.memory', async () => {
    const folder = temporaryFolder();
    const env = (name: string) => ({ env: { MEMORY_FILE_PATH: join(folder, name) } });
    const [command, args] = node('server-memory');
    const direct = await connectProcess([command, ...args], env('direct'));
    const through = await wrapped(command, args, env('through'));
    await compare(direct, through, [
      call('create_entities', {
        entities: [{ name: 'A', entityType: 'letter', observations: ['first'] }],
      }),
      call('read_graph', {}),
      call('search_nodes', { query: 'first' }),
      call('delete_entities', { entityNames: ['A'] }),
      call('read_graph', {}),
    ]);
  });

  verifies('real.sequential-thinking', async () => {
    const [command, args] = node('server-sequential-thinking');
    const direct = await connectProcess([command, ...args]);
    const through = await wrapped(command, args);
    const thought = (thoughtNumber: number) =>
      call('sequentialthinking', {
        thought: 'hm',
        nextThoughtNeeded: true,
        thoughtNumber,
        totalThoughts: 2,
      });
    await compare(direct, through, [thought(1), thought(2)]);
  });

  verifies('real.http', async () => {
    const port = await closedPort();
    const [command, args] = node('server-everything', 'streamableHttp');
    const child = spawn(command, args, {
      env: { PATH: process.env.PATH, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await new Promise<void>((resolve) => {
      child.stderr.on('data', (text) => {
        if (String(text).includes('listening')) resolve();
      });
    });
    const url = `http://127.0.0.1:${port}/mcp`;
    const direct = await connectTo(url, ABLE);
    const gateway = await openGateway({ everything: { url } }, {}, { transparent: true });
    const through = await gateway.connect(ABLE);
    for (const { request } of [direct, through]) {
      await eventually(async () =>
        (await request('tools/list')).tools.some(({ name }: Json) => name === 'get-roots-list'),
      );
    }
    await compare(direct, through, [
      call('echo', { message: 'hello' }),
      call('get-structured-content', { location: 'Chicago' }),
      ['prompts/get', { name: 'simple-prompt' }],
      ['resources/read', { uri: 'demo://resource/static/document/architecture.md' }],
      ['logging/setLevel', { level: 'error' }],
    ]);
    expect(JSON.stringify(await through.call('get-roots-list'))).toContain('file:///tmp/root');
    const sampled = await through.call('trigger-sampling-request', { prompt: 'x', maxTokens: 5 });
    expect(JSON.stringify(sampled)).toContain('sampled');
  });

  verifies('real.together', async () => {
    const folder = temporaryFolder();
    const of = (name: string, ...args: string[]) => ({
      command: process.execPath,
      args: [entry(name), ...args],
    });
    const { file } = writtenConfig({
      everything: of('server-everything', 'stdio'),
      files: of('server-filesystem', folder),
      memory: { ...of('server-memory'), env: { MEMORY_FILE_PATH: join(folder, 'graph') } },
      thinking: of('server-sequential-thinking'),
    });
    const { request, call: callTool } = await connectCommand(['gateway', '--config', file], ABLE);
    const { tools } = await request('tools/list');
    const names = tools.map(({ name }: Json) => name);
    // None of their names collide, so that all keep theirs.
    for (const name of ['echo', 'read_text_file', 'read_graph', 'sequentialthinking']) {
      expect(names).toContain(name);
    }
    const direct = await connectProcess([process.execPath, entry('server-filesystem'), folder]);
    for (const tool of (await direct.request('tools/list')).tools) {
      expect(tools).toContainEqual(tool);
    }
    expect((await callTool('echo', { message: 'both' })).content[0].text).toContain('both');
    await callTool('write_file', { path: join(folder, 'a'), content: 'b' });
    expect((await callTool('read_graph')).structuredContent).toEqual({
      entities: [],
      relations: [],
    });
    expect((await callTool('health_check')).structuredContent.status).toBe('ok');
    expect(
      (await request('resources/read', { uri: 'demo://resource/static/document/architecture.md' }))
        .contents,
    ).toHaveLength(1);
  });
});
