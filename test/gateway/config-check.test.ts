// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are what is tested
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config.ts';
import { visitUpstreams } from '../../src/gateway/config-connect.ts';
import { describeConfig, upstreamLines } from '../../src/gateway/config-print.ts';
import { masked, maskedArgs, secretsOf } from '../../src/gateway/config-secrets.ts';
import { configFile, runCommand } from '../fixtures/command.ts';
import { closedPort } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';
import { stdioUpstream } from './support/upstream-server.ts';

const parse = (config: object, env: Readonly<Record<string, string>> = {}) =>
  parseGatewayConfig(JSON.stringify(config), { name: 'mcp.json', env });

const printedOf = (config: ReturnType<typeof parse>): string =>
  [JSON.stringify(describeConfig(config)), ...config.upstreams.flatMap(upstreamLines)].join('\n');

describe('mcp-resilience check', () => {
  verifies('check.verdict', async () => {
    const dead = `http://127.0.0.1:${await closedPort()}/mcp`;
    const resilience = { connectTimeout: 20_000, tools: { ok: { idleTimeout: 1_500 } } };
    const fine = configFile({ mcpServers: { one: { ...stdioUpstream(), resilience } } });
    const good = await runCommand(['check', '--config', fine, '--connect']);
    expect(good).toMatchObject({ code: 0 });
    expect(good.stdout).toContain(`${fine} can be used: 1 server\n`);
    expect(good.stdout).toContain('\n  retry: {"maxRetries": 2, "baseDelay": 500, ');
    expect(good.stdout).toContain('\n  tool ok:\n    timeout: 1500\n');
    expect(good.stdout).toContain(' tools, as clients see them:\n  ok (one)\n  slow (one)\n');

    const broken = configFile({
      mcpServers: {
        one: stdioUpstream({ odd: true }),
        two: stdioUpstream(),
        gone: { url: dead },
        off: { command: 'x', disabled: true },
        wrong: { command: '/nowhere/server', timeout: 60 },
      },
    });
    const bad = await runCommand(['check', '--config', broken, '--connect']);
    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain('\noff is disabled\n');
    expect(bad.stdout).toContain('\nnote: mcpServers.wrong.timeout is 60 ms; some clients write');
    expect(bad.stdout).toContain('\n  one__ok (one: "ok")\n');
    const problems = bad.stderr.split('\n').filter((line) => line.startsWith('would break: '));
    expect(problems).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^would break: gone cannot be used: .*ECONNREFUSED/),
        expect.stringMatching(
          /^would break: wrong cannot be used: .*"\/nowhere\/server" was not found/,
        ),
        'would break: one: the tool "ok" becomes "one__ok": another server has it too',
        'would break: two: the tool "ok" becomes "two__ok": another server has it too',
        expect.stringMatching(
          /^would break: one: the tool ".* .*" becomes "[\w.-]+_[0-9a-f]{8}": it has characters that clients do not take$/,
        ),
      ]),
    );
    // Without connecting nobody is asked, and nothing can be said about it.
    const unasked = await runCommand(['check', '--config', broken]);
    expect([unasked.code, unasked.stderr]).toEqual([0, '']);

    const refused = configFile({ mcpServers: { one: { command: '${NOT_SET}' } } });
    expect(await runCommand(['check', '--config', refused])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `error: ${refused} cannot be used:\n  - mcpServers.one.command: the variable NOT_SET is not set; set it, or write \${NOT_SET:-default}\n`,
    });
    expect(await runCommand(['check'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('error: --config FILE is missing'),
    });
    const unknown = await runCommand(['check', '--config', fine, '--conect']);
    expect([unknown.code, unknown.stdout]).toEqual([2, '']);
  });

  test('a door that would let nobody in is found as well', async () => {
    const auth = { tokens: [{ principal: 'ci', env: 'CI_TOKEN' }] };
    const file = configFile({ mcpServers: { a: { command: 'x' } }, gateway: { auth } });
    expect(await runCommand(['check', '--config', file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the variable CI_TOKEN is not set'),
    });
  });

  verifies('config.secrets', async () => {
    const secrets = {
      GITHUB_TOKEN: 'value-of-the-variable',
      DB: 'postgres://me:hunter2hunter2@db.example/x',
    };
    const literal = 'literal-in-the-file-0123456789';
    const config = {
      mcpServers: {
        local: {
          command: 'server',
          args: ['--dsn=${DB}', '--api-key', literal, '--mode', 'fast'],
          env: { TOKEN: '${GITHUB_TOKEN}', ODD: literal, PIN: '1234' },
          cwd: '/srv/${GITHUB_TOKEN}',
        },
        remote: {
          url: `https://mcp.example/mcp?key=${literal}&t=\${GITHUB_TOKEN}`,
          headers: { Authorization: 'Bearer ${GITHUB_TOKEN}', 'X-Key': literal },
        },
      },
      gateway: { auth: { tokens: [{ principal: 'ci', sha256: 'ab'.repeat(32) }] } },
    };
    const file = configFile(config);
    for (const flag of [[], ['--print-config']]) {
      const { code, stdout, stderr } = await runCommand(
        ['check', '--config', file, ...flag],
        secrets,
      );
      expect([code, stderr]).toEqual([0, '']);
      for (const hidden of [...Object.values(secrets), literal, 'hunter2', '1234', 'abab']) {
        expect([hidden, stdout.includes(hidden)]).toEqual([hidden, false]);
      }
      expect(stdout).toContain('fast');
      expect(stdout).toContain('GITHUB_TOKEN');
    }
    // Whatever a secret looks like, and wherever in the entry it stands.
    fc.assert(
      fc.property(fc.stringMatching(/^[!-~]{8,40}$/), (secret) => {
        const entry = {
          a: {
            command: 'server-${S}',
            args: ['${S}', 'x=${S}'],
            env: { A: 'x${S}' },
          },
        };
        const printed = printedOf(parse({ mcpServers: entry }, { S: secret }));
        // In JSON, and as a line shows it.
        expect(printed).not.toContain(JSON.stringify(secret).slice(1, -1));
        expect(printed).not.toContain(` ${secret}`);
      }),
    );
  });

  verifies('config.timeout-shown', async () => {
    const file = configFile({ mcpServers: { slow: { command: 'x', timeout: 90_000 } } });
    const { stdout } = await runCommand(['check', '--config', file, '--print-config']);
    expect(JSON.parse(stdout)).toMatchObject({
      mcpServers: {
        slow: {
          kind: 'stdio',
          policy: { timeout: 90_000, deadline: 300_000, breaker: { probeLease: 301_000 } },
          connectTimeout: 60_000,
        },
      },
      gateway: { prefix: 'auto', separator: '__', strict: false, name: 'mcp-resilience' },
    });
    const { stdout: lines } = await runCommand(['check', '--config', file]);
    expect(lines).toContain('slow (stdio): idle timeout 90 s (progress renews it); deadline 300 s');
  });
});

describe('a visit to the upstreams', () => {
  test('one that hangs costs its own limit only, and the others are told of', async () => {
    const hanging = createServer(() => {});
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      hanging.closeAllConnections();
      hanging.close();
    });
    const { port } = hanging.address() as AddressInfo;
    const config = parse({
      mcpServers: {
        hangs: { url: `http://127.0.0.1:${port}/mcp`, resilience: { connectTimeout: 200 } },
        works: stdioUpstream({ pages: 3 }),
        silent: {
          ...stdioUpstream({ silent: ['tools/list'] }),
          resilience: { discoveryTimeout: 300 },
        },
      },
    });
    const { tools, problems } = await visitUpstreams(config);
    expect(new Set(tools.map(({ upstream }) => upstream))).toEqual(new Set(['works']));
    expect(tools.map(({ shown }) => shown)).toContain('write');
    expect(problems).toEqual([
      expect.stringMatching(/^hangs cannot be used: /),
      'silent cannot be used: tools/list took longer than 300 ms',
    ]);
  });
});

describe('secrets', () => {
  test('are masked wherever they turn up, longest first', () => {
    const secrets = secretsOf(
      {
        kind: 'http',
        url: 'https://a.example/?sig=signature-1',
        headers: { Authorization: 'Bearer abcdefgh' },
      },
      ['abcdef', '8080'],
    );
    expect(secrets).toEqual(['Bearer abcdefgh', 'signature-1', 'abcdefgh', 'abcdef']);
    expect(masked('got abcdefgh, abcdef and signature-1 on 8080', secrets)).toBe(
      'got ***, *** and *** on 8080',
    );
    const env = {
      PWD: '/home/anna/project',
      SSH_AUTH_SOCK: '/tmp/agent',
      GIT_AUTHOR_NAME: 'Anna Example',
      XDG_SESSION_TYPE: 'wayland',
      OPENAI_API_KEY: 'value-1',
      DB_PWD: 'value-2',
      BASIC_AUTH: 'value-3',
      MY_TOKEN: 'value-4',
    };
    // The whole environment of a shell: what is no secret stays readable.
    expect(secretsOf({ kind: 'stdio', command: 'x', args: [], env }, [])).toEqual([
      'value-1',
      'value-2',
      'value-3',
      'value-4',
    ]);
    expect(maskedArgs(['--password', 'x', '--token=abc123', 'plain'], [])).toEqual([
      '--password',
      '***',
      '--token=***',
      'plain',
    ]);
  });
});
