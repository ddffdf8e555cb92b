import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { VERSION } from '../src/version.ts';
import { runCommand, startCommand } from './fixtures/command.ts';
import { verifies } from './fixtures/verifies.ts';

describe('what a person asks for first', () => {
  test('--help names every flag with its default and its variable', async () => {
    for (const args of [['--help'], ['serve', '--help'], ['-h']]) {
      const { code, stdout, stderr } = await runCommand(args);
      expect([code, stderr]).toEqual([0, '']);
      for (const word of ['--stdio', '--http', '--host', '127.0.0.1', '--port', '3000']) {
        expect(stdout).toContain(word);
      }
      for (const name of ['HTTP', 'HOST', 'PORT', 'CONFIG', 'LANG']) {
        expect(stdout).toContain(`MCP_RESILIENCE_${name}`);
      }
      for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'WEATHER_API_URL', 'SEARCH_API_URL']) {
        expect(stdout).toContain(name);
      }
    }
  });

  test('--version is that of the package', async () => {
    for (const flag of ['--version', '-V']) {
      expect(await runCommand([flag])).toMatchObject({ code: 0, stdout: `${VERSION}\n` });
    }
  });
});

/** An address in use, until the test ends. */
const takenPort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
};

describe('exit codes', () => {
  verifies('cli.usage-errors', async () => {
    const wrong: [args: string[], env: NodeJS.ProcessEnv, named: RegExp][] = [
      [['--bogus'], {}, /--bogus/],
      [['serve', '--port'], {}, /--port/],
      [['--http', '--port', 'abc'], {}, /--port.*abc.*0 to 65535/],
      [['--http', '--port', '70000'], {}, /--port.*70000/],
      [['--http', '--port', '80.5'], {}, /--port.*80\.5/],
      [['--http', '--port', '-1'], {}, /--port/],
      [['--http', '--host', ''], {}, /--host/],
      [['--config', ''], {}, /--config/],
      [['--http', '--stdio'], {}, /--http and --stdio/],
      [['--port', '0'], {}, /--port .*--http/],
      [['--stdio', '--host', '::1'], { MCP_RESILIENCE_HTTP: '1' }, /--host .*--http/],
      [['surve'], {}, /surve/],
      [['--http'], { MCP_RESILIENCE_PORT: 'x' }, /MCP_RESILIENCE_PORT/],
      [[], { MCP_RESILIENCE_HTTP: 'maybe' }, /MCP_RESILIENCE_HTTP .*maybe/],
      [[], { WEATHER_API_URL: 'wttr.in' }, /WEATHER_API_URL/],
      [[], { MCP_RESILIENCE_LANG: 'zh-CN' }, /MCP_RESILIENCE_LANG must be en or zh, got "zh-cn"/],
      [
        [],
        { WEATHER_API_URL: 'x', SEARCH_API_URL: 'ftp://y' },
        /WEATHER_API_URL[\s\S]*SEARCH_API_URL/,
      ],
    ];
    const ends = await Promise.all(wrong.map(([args, env]) => runCommand(args, env)));
    for (const [index, { code, stdout, stderr }] of ends.entries()) {
      const [args, , named] = wrong[index] ?? [[], {}, /nothing/];
      expect([args, code, stdout]).toEqual([args, 2, '']);
      expect(stderr).toMatch(named);
      expect(stderr).toMatch(/^error: /);
      expect(stderr).not.toMatch(/^ {4}at |serves MCP/m);
    }
  });

  verifies('cli.cannot-serve', async () => {
    const port = String(await takenPort());
    const taken = await runCommand(['--http', '--port', port]);
    expect(taken).toMatchObject({ code: 1, stdout: '' });
    expect(taken.stderr).toBe(
      `error: port ${port} of 127.0.0.1 is in use; give another with --port or MCP_RESILIENCE_PORT\n`,
    );
    const elsewhere = await runCommand(['--http', '--port', '0', '--host', '192.0.2.1']);
    expect(elsewhere).toMatchObject({ code: 1, stdout: '' });
    expect(elsewhere.stderr).toMatch(/192\.0\.2\.1 is no address of this machine.*--host/);
  });
});

describe('variables', () => {
  verifies('cli.env-twins', async () => {
    const port = String(await takenPort());
    const tried = async (args: string[], env: NodeJS.ProcessEnv) =>
      (await runCommand(args, env)).stderr;
    const env = { MCP_RESILIENCE_HTTP: 'true', MCP_RESILIENCE_PORT: port };
    expect(await tried([], env)).toContain(`port ${port} of 127.0.0.1 is in use`);
    expect(await tried([], { ...env, MCP_RESILIENCE_HOST: '192.0.2.1' })).toContain('192.0.2.1');
    expect(await tried([], { MCP_RESILIENCE_CONFIG: '/nowhere.json' })).toContain('/nowhere.json');
    // The command line wins.
    expect(await tried(['--stdio'], env)).toContain('serves MCP on stdio');
    expect(await tried(['--port', port, '--http'], { MCP_RESILIENCE_PORT: 'x' })).toContain(port);
  });

  test('one that is set to nothing counts as unset', async () => {
    const nothing = Object.fromEntries(
      ['HTTP', 'HOST', 'PORT', 'CONFIG'].map((name) => [`MCP_RESILIENCE_${name}`, ' ']),
    );
    const { code, stderr } = await runCommand([], nothing);
    expect(code).toBe(0);
    expect(stderr).toContain('serves MCP on stdio');
    // An empty host would be every address of the machine.
    const { said, child } = startCommand(['--http', '--port', '0'], { MCP_RESILIENCE_HOST: '' });
    await said(/serves MCP at http:\/\/127\.0\.0\.1:/);
    child.kill();
  });
});
