import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nameOf } from '../../src/commands/wrap.ts';
import type { Json } from '../../src/gateway/types.ts';
import { META_FAILURE } from '../../src/mcp/meta.ts';
import { configFile, runCommand, startCommand } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { connectCommand, connectProcess, serveCommand, words } from './support/command.ts';
import { eventually, isAlive } from './support/gateway.ts';
import { startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

// biome-ignore lint/suspicious/noTemplateCurlyInString: as it stands in a file
const NOT_EXPANDED = '${NOT_SET}';

const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1' },
};

describe('wrap', () => {
  verifies('wrap.stdio', async () => {
    const upstream = words(stdioUpstream({ name: 'files', instructions: 'Read first.' }));
    const direct = await connectProcess(upstream);
    const wrapped = await connectCommand(['wrap', '--', ...upstream]);
    expect(wrapped.client.getServerVersion()).toEqual(direct.client.getServerVersion());
    expect(wrapped.client.getServerCapabilities()).toEqual(direct.client.getServerCapabilities());
    expect(wrapped.client.getInstructions()).toEqual('Read first.');
    expect(await wrapped.request('tools/list')).toEqual(await direct.request('tools/list'));
    expect(await wrapped.call('vendor')).toEqual(await direct.call('vendor'));
    // The child is reaped with the client.
    const { pid } = (await wrapped.call('whoami')).structuredContent;
    expect(isAlive(pid)).toBe(true);
    await wrapped.client.close();
    await eventually(() => !isAlive(pid));
    expect(isAlive(wrapped.pid ?? 0)).toBe(false);
  });

  verifies('P11', async () => {
    const upstream = words(stdioUpstream({ banner: 3 }));
    const command = startCommand(['wrap', '--name', 'noisy', '--', ...upstream], {
      OTEL_LOG_LEVEL: 'all',
      OTEL_TRACES_EXPORTER: 'console',
      OTEL_METRICS_EXPORTER: 'console',
    });
    expect((await command.request('initialize', initialize)).result?.serverInfo).toMatchObject({
      name: 'U',
    });
    expect((await command.call('banner', { text: 'Server running on stdio' })).result).toEqual({
      content: [{ type: 'text', text: 'ok' }],
    });
    await command.call('flood', { lines: 50 });
    // A client that introduces itself twice is told so, and served on.
    const again = await command.request('initialize', initialize);
    expect(again).toMatchObject({ error: { code: -32600 } });
    command.child.stdin.end();
    const { code, stdout, stderr } = await command.ended;
    expect(code).toBe(0);
    for (const line of stdout.trim().split('\n')) {
      expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
    }
    // Told once, not once a line, and under the name of the server.
    expect(stderr.match(/Banner line/g)?.length).toBe(1);
    expect(stderr).toMatch(/noisy/);
  });

  verifies('gateway.limits', async () => {
    const upstream = words(stdioUpstream());
    const { call, stderr } = await connectCommand([
      'wrap',
      '--name',
      'u',
      '--timeout',
      '100',
      '--',
      ...upstream,
    ]);
    const { isError, _meta } = await call('slow', { ms: 60_000 });
    expect([isError, _meta[META_FAILURE].message]).toEqual([
      true,
      expect.stringContaining('did not answer within 100 ms'),
    ]);
    expect(stderr()).toMatch(/^u \(stdio\): idle timeout 100 ms .*deadline 300 s/m);

    // The same out of a file, as clients have it.
    const file = configFile({
      mcpServers: {
        u: { command: 'ignored', timeout: 150, resilience: { tools: { ok: { timeout: 90 } } } },
      },
    });
    const filed = await connectCommand([
      'wrap',
      '--name',
      'u',
      '--config',
      file,
      '--',
      ...upstream,
    ]);
    await filed.call('ok');
    expect(filed.stderr()).toMatch(/^u \(stdio\): idle timeout 150 ms/m);
    expect(filed.stderr()).toMatch(/^u, tool ok: idle timeout 90 ms/m);
  });

  verifies('wrap.environment', async () => {
    const { call } = await connectCommand(
      // Variables that a shell or client has left alone are none of ours.
      ['wrap', '--env', 'GIVEN=a=b', '--', ...words(stdioUpstream({ instructions: NOT_EXPANDED }))],
      { env: { MY_TOKEN: 'from the client', HOME: '/nowhere' } },
    );
    const { structuredContent } = await call('env');
    expect(structuredContent).toMatchObject({
      MY_TOKEN: 'from the client',
      GIVEN: 'a=b',
      HOME: '/nowhere',
    });
  });

  verifies('wrap.url', async () => {
    const upstream = await startHttpUpstream({ name: 'far' });
    onTestFinished(() => upstream.close());
    const secret = 'sk-very-secret-value';
    const { client, call, stderr } = await connectCommand([
      'wrap',
      '--url',
      upstream.url,
      '--header',
      `Authorization: Bearer ${secret}`,
    ]);
    expect(client.getServerVersion()).toMatchObject({ name: 'far' });
    await call('ok');
    expect(upstream.requests.at(-1)?.headers.authorization).toBe(`Bearer ${secret}`);
    expect(stderr()).toMatch(/^127\.0\.0\.1 \(http\)/m);
    expect(stderr()).not.toContain(secret);
  });

  verifies('wrap.http', async () => {
    const served = await serveCommand([
      'wrap',
      '--name',
      'u',
      '--shared',
      '--',
      ...words(stdioUpstream()),
    ]);
    const clients = await Promise.all([served.connect(), served.connect()]);
    const pids = await Promise.all(
      clients.map(async ({ call }) => (await call('whoami')).structuredContent.pid),
    );
    expect(pids[0]).toBe(pids[1]);
    expect((await fetch(`${served.origin}/readyz`)).status).toBe(200);
    served.child.kill('SIGTERM');
    expect((await served.ended).code).toBe(0);
    expect(isAlive(pids[0])).toBe(false);
  });

  verifies('wrap.usage', async () => {
    const refused = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(['wrap', ...args]);
      expect([code, stdout]).toEqual([2, '']);
      return stderr;
    };
    expect(await refused()).toMatch(/what is to be wrapped/);
    expect(await refused('npx', '-y', 'some-server')).toMatch(/stands behind --/);
    expect(await refused('--url', 'http://x', '--', 'node')).toMatch(/exclude each other/);
    expect(await refused('--port', '1', '--', 'node')).toMatch(/give --http too/);
    expect(await refused('--http', '--stdio', '--', 'node')).toMatch(/exclude each other/);
    expect(await refused('--timeout', '1.5', '--', 'node')).toMatch(/whole number of milliseconds/);
    expect(await refused('--timeout', '900', '--deadline', '5', '--', 'node')).toMatch(/deadline/);
    expect(await refused('--preset', 'odd', '--', 'node')).toMatch(/public-api/);
    expect(await refused('--header', 'A: b', '--', 'node')).toMatch(/--header has no meaning/);
    expect(await refused('--env', 'A=b', '--url', 'http://x')).toMatch(/--env has no meaning/);
    expect(await refused('--env', 'secret', '--', 'node')).toMatch(/NAME=VALUE/);
    expect(await refused('--url', 'ftp://x')).toMatch(/http: or https:/);
    expect(await refused('--name', 'two words', '--', 'node')).toMatch(/1 to 64 characters/);
    expect(await refused('--config', join('no', 'such', 'file'), '--', 'node')).toMatch(
      /there is no such file/,
    );
  });

  test('every flag stands in docs/gateway.md', async () => {
    const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');
    for (const command of ['wrap', 'gateway']) {
      const { code, stdout } = await runCommand([command, '--help']);
      expect(code).toBe(0);
      const flags = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(
        ([, flag]) => flag ?? '',
      );
      expect(flags.length).toBeGreaterThan(5);
      for (const flag of flags.filter((name) => name !== '--help')) {
        expect(page, `${command} ${flag}`).toContain(flag);
      }
    }
  });

  test('a server that cannot be started fails initialize, and nothing else', async () => {
    const command = startCommand(['wrap', '--', 'no-such-program-anywhere']);
    const { error } = (await command.request('initialize', initialize)) as { error?: Json };
    expect(error).toMatchObject({
      code: -32603,
      message: expect.stringContaining('no-such-program-anywhere'),
      data: { [META_FAILURE]: { code: expect.any(String) } },
    });
    // It may be tried again.
    expect(await command.request('initialize', initialize)).toMatchObject({
      error: { message: expect.stringContaining('no-such-program-anywhere') },
    });
    command.child.stdin.end();
    expect((await command.ended).code).toBe(0);
  });

  test.each([
    ['server-filesystem', ['npx', '-y', '@modelcontextprotocol/server-filesystem', '/data']],
    ['some-server', ['npx', '-y', 'some-server@1.2.3']],
    ['mcp-server-git', ['uvx', 'mcp-server-git']],
    ['server', ['node', 'dist/server.js']],
    ['my-server', ['/usr/local/bin/my-server', '--x']],
    ['my-server', ['C:\\bin\\my-server.exe']],
    ['mcp-fetch', ['docker', 'run', '-i', '--rm', 'mcp/mcp-fetch:latest']],
    ['main', ['python', '-m', 'main']],
    ['npx', ['npx']],
    ['server', []],
  ])('calls itself %s for %j', (name, command) => {
    expect(nameOf(command, undefined)).toBe(name);
  });

  test('calls itself after the host of a URL', () => {
    expect(nameOf([], 'https://mcp.example:8443/mcp')).toBe('mcp.example');
    expect(nameOf([], 'http://[::1]/mcp')).toBe('-1-');
  });
});
