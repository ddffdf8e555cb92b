// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are what is tested
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type GatewayConfig,
  loadGatewayConfig,
  parseGatewayConfig,
  readGatewayConfig,
} from '../../src/gateway/config.ts';
import { gatewayPolicy, resilienceSettings } from '../../src/gateway/config-resilience.ts';
import { ConfigError } from '../../src/gateway/config-text.ts';
import { policyRules } from '../../src/resilience/policy.ts';
import { presets } from '../../src/resilience/presets.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';

type Env = Readonly<Record<string, string>>;

const parse = (config: unknown, env: Env = {}): GatewayConfig =>
  parseGatewayConfig(typeof config === 'string' ? config : JSON.stringify(config), {
    name: 'mcp.json',
    env,
  });

/** The problems that a configuration is refused with. */
const problemsOf = (config: unknown, env: Env = {}): readonly string[] => {
  try {
    parse(config, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.message).toBe(
      ['mcp.json cannot be used:', ...error.problems.map((line) => `  - ${line}`)].join('\n'),
    );
    return error.problems;
  }
  return [];
};

const one = (entry: object, env: Env = {}) => {
  const [upstream] = parse({ mcpServers: { one: entry } }, env).upstreams;
  if (upstream === undefined) throw new Error('no upstream');
  return upstream;
};

const problemsOfEntry = (entry: unknown, env: Env = {}): string[] =>
  problemsOf({ mcpServers: { one: entry } }, env).map((line) =>
    line.replaceAll('mcpServers.one', '…'),
  );

const problemsOfBlock = (resilience: unknown): string[] =>
  problemsOfEntry({ command: 'x', resilience }).map((line) => line.replaceAll('….resilience', '…'));

describe('files that people have', () => {
  verifies('config.formats', () => {
    const claude = `\uFEFF{
      // What Claude Desktop, Claude Code and Cursor write.
      "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "some-server", "/data"], },
        "old": { "type": "sse", "url": "https://old.example/sse", "alwaysAllow": ["a"] },
        "off": { "command": "\${NOT_SET}", "disabled": true },
        "remote": { "type": "http", "url": "https://mcp.example/mcp", "headers": { "X-A": "1" } },
      },
      "preferences": { "theme": "\${NOT_SET}", "__proto__": 1, "theme": 2 },
    }`;
    const config = parse(claude);
    expect(config.upstreams.map(({ name, address }) => [name, address])).toEqual([
      ['files', { kind: 'stdio', command: 'npx', args: ['-y', 'some-server', '/data'], env: {} }],
      ['old', { kind: 'sse', url: 'https://old.example/sse', headers: {} }],
      ['remote', { kind: 'http', url: 'https://mcp.example/mcp', headers: { 'X-A': '1' } }],
    ]);
    expect(config.disabled).toEqual(['off']);

    const vscode = parse(
      {
        inputs: [{ id: 'key', type: 'promptString' }],
        servers: {
          local: {
            type: 'stdio',
            command: 'node',
            args: ['server.js'],
            cwd: '/srv',
            env: { KEY: '${env:KEY}', LEVEL: 3, TRACE: true },
          },
          web: { type: 'streamable-http', url: 'http://127.0.0.1:9/mcp' },
        },
      },
      { KEY: 'from the environment' },
    );
    expect(vscode.upstreams.map(({ address }) => address)).toEqual([
      {
        kind: 'stdio',
        command: 'node',
        args: ['server.js'],
        cwd: '/srv',
        env: { KEY: 'from the environment', LEVEL: '3', TRACE: 'true' },
      },
      { kind: 'http', url: 'http://127.0.0.1:9/mcp', headers: {} },
    ]);
    // Both lists in one file; names that other clients have for a URL; no type at all.
    const kinds = parse({
      mcpServers: {
        cursor: { url: 'https://a.example/mcp' },
        cursorOld: { url: 'https://a.example/sse' },
        gemini: { httpUrl: 'https://a.example/sse' },
        windsurf: { serverUrl: 'https://a.example/mcp' },
      },
      servers: { copilot: { type: 'http', url: 'https://a.example/sse' } },
    }).upstreams.map(({ name, address }) => [name, address.kind]);
    expect(Object.fromEntries(kinds)).toEqual({
      cursor: 'http',
      cursorOld: 'sse',
      gemini: 'http',
      windsurf: 'http',
      copilot: 'http',
    });
  });

  test('a file on the disk, and one that is not there', () => {
    const file = join(temporaryFolder(), 'mcp.json');
    writeFileSync(file, '{"mcpServers": {"a": {"command": "${PROGRAM}"}}}');
    expect(loadGatewayConfig(file, { PROGRAM: 'run' }).upstreams).toMatchObject([
      { name: 'a', address: { command: 'run' } },
    ]);
    expect(() => loadGatewayConfig(`${file}.none`)).toThrow(
      `${file}.none cannot be used:\n  - there is no such file`,
    );
  });

  test('made from flags: texts are taken as they stand', () => {
    const entry = { command: 'sh', args: ['-c', 'echo ${HOME} $${X}'] };
    const { upstreams } = readGatewayConfig({ mcpServers: { a: entry } }, { name: 'the command' });
    expect(upstreams[0]?.address).toMatchObject({ args: ['-c', 'echo ${HOME} $${X}'] });
  });
});

describe('variables', () => {
  verifies('config.variables', () => {
    const env = { TOKEN: 'abc123', HOST: 'mcp.example', EMPTY: '' };
    const { upstreams, variables, auth } = parse(
      {
        mcpServers: {
          web: {
            url: 'https://${HOST}/${PATH_PART:-mcp}',
            headers: { Authorization: 'Bearer ${env:TOKEN}' },
          },
          local: {
            command: '${EMPTY:-node}',
            args: ['--x=${EMPTY}', '$${TOKEN}', '$TOKEN', '${env:NONE:-a:-b}', '${NONE:-}'],
            env: { A: '${TOKEN}${TOKEN}' },
            resilience: { preset: '${PRESET:-internal}' },
          },
        },
        gateway: { auth: { tokens: [{ principal: '${HOST}', env: 'TOKEN' }] } },
      },
      env,
    );
    expect(upstreams[0]?.address).toEqual({
      kind: 'http',
      url: 'https://mcp.example/mcp',
      headers: { Authorization: 'Bearer abc123' },
    });
    expect(upstreams[1]?.address).toEqual({
      kind: 'stdio',
      command: 'node',
      args: ['--x=', '${TOKEN}', '$TOKEN', 'a:-b', ''],
      env: { A: 'abc123abc123' },
    });
    expect(upstreams[1]?.policy.deadline).toBe(presets.internal.deadline);
    expect(auth?.tokens).toEqual([{ principal: 'mcp.example', env: 'TOKEN' }]);
    expect(variables).toContainEqual({
      path: 'mcpServers.web.url',
      name: 'PATH_PART',
      from: 'default',
    });
    expect(variables).toContainEqual({
      path: 'mcpServers.web.headers.Authorization',
      name: 'TOKEN',
      from: 'environment',
    });

    expect(
      problemsOfEntry({
        command: '${A}',
        args: ['x', '${env:B}', '${input:key}', '${workspaceFolder}/x', '${C'],
        env: { D: '${D}' },
        resilience: { preset: '${E}' },
      }),
    ).toEqual([
      '….command: the variable A is not set; set it, or write ${A:-default}',
      '….args.1: the variable B is not set; set it, or write ${B:-default}',
      '….args.2: "${input…" is no variable of the environment: write ${NAME}, ${NAME:-default} or ${env:NAME}, or $${ for the text itself',
      '….args.3: the variable workspaceFolder is not set; set it, or write ${workspaceFolder:-default}',
      '….args.4: "${C…" is not closed: write ${NAME}, ${NAME:-default} or ${env:NAME}, or $${ for the text itself',
      '….env.D: the variable D is not set; set it, or write ${D:-default}',
      '….resilience.preset: the variable E is not set; set it, or write ${E:-default}',
      '….resilience.preset must be one of "public-api", "paid-api", "internal", "database", "filesystem"',
    ]);
  });

  test('names that every object has are no variables', () => {
    for (const name of ['toString', '__proto__', 'constructor', 'hasOwnProperty']) {
      expect(problemsOfEntry({ command: `\${${name}}` })[0]).toContain(`${name} is not set`);
    }
  });

  test('a value is put in as it is, and never read again', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const env = { A: value };
        const args = ['[${A}]'];
        if (value.includes('\0')) return;
        expect(one({ command: 'x', args }, env).address).toMatchObject({ args: [`[${value}]`] });
      }),
    );
    expect(one({ command: 'x', args: ['${A}'] }, { A: '${B} $& $1' }).address).toMatchObject({
      args: ['${B} $& $1'],
    });
  });
});

describe('what is wrong', () => {
  verifies('config.refused', () => {
    const text = `{
      "mcpServers": {
        "a": { "command": "x", "command": "y", "resilience": { "breker": true, "retry": { "maxRetries": 99, "jiter": "full" } } },
        "b": { "url": "ftp://x" },
        "c": {},
        "c": { "command": "z" },
        "__proto__": { "command": "w" }
      },
      "gateway": { "prefix": "sometimes", "seperator": "__", "http": { "maxConnections": 0 }, "auth": { "jwt": {} } }
    }`;
    expect(problemsOf(text)).toEqual([
      'mcpServers.a.command is given again at line 3, column 32',
      'mcpServers.c is given again at line 6, column 9',
      'mcpServers.__proto__ is not known',
      'mcpServers.a.resilience.breker is not a setting; did you mean "breaker"?',
      'mcpServers.a.resilience.retry.jiter is not a setting; did you mean "jitter"?',
      'mcpServers.a.resilience.retry.maxRetries must be a whole number from 0 to 10, got 99',
      'mcpServers.b.url must begin with http: or https:, got "ftp:"',
      'gateway.seperator is not a setting; did you mean "separator"?',
      'gateway.prefix must be one of "auto", "always", "never"',
      'gateway.http.maxConnections must be a whole number from 1 to 1000000, got 0',
      'gateway.auth.jwt.issuer must be given: the issuer of tokens, as in their claim "iss": a text of 1 to 200 printable ASCII characters',
    ]);
  });

  test('syntax, with its place', () => {
    expect(problemsOf('{"mcpServers": {}')).toEqual(['close brace expected at line 1, column 18']);
    for (const text of ['[]', '7', 'null', '"x"']) {
      expect(problemsOf(text)).toEqual(['it must be a JSON object']);
    }
  });

  test('no server at all', () => {
    expect(problemsOf({ theme: 'dark' })).toEqual([
      'mcpServers (or servers) must be given: the servers to stand in front of',
    ]);
    expect(problemsOf({ servers: {} })).toEqual(['servers must name a server: it is empty']);
    expect(problemsOf({ mcpServers: { a: { command: 'x', disabled: true } } })).toEqual([
      'mcpServers must name a server: all of its servers are disabled',
    ]);
    for (const wrong of [null, [], 7, 'x']) {
      expect(problemsOf({ mcpServers: wrong })).toEqual([
        'mcpServers must be an object of servers by their names',
      ]);
    }
  });

  verifies('A12', () => {
    const wrongName =
      'the name of a server must have 1 to 64 characters of A-Z, a-z, 0-9, "_", "." and "-"; it may stand in front of the names of its tools';
    const entry = { command: 'x' };
    expect(problemsOf({ mcpServers: { ['p'.repeat(130)]: entry } })).toEqual([
      `mcpServers.${'p'.repeat(80)}: ${wrongName}`,
    ]);
    for (const name of ['', 'a b', 'a/b', 'é', 'p'.repeat(65), 'a\n']) {
      expect(problemsOf({ mcpServers: { [name]: entry } })).toEqual([
        `mcpServers.${name}: ${wrongName}`,
      ]);
    }
    for (const name of ['a', 'p'.repeat(64), 'a.b_c-D9', 'constructor', 'toString']) {
      expect(parse({ mcpServers: { [name]: entry } }).upstreams.map((each) => each.name)).toEqual([
        name,
      ]);
    }
    expect(problemsOf({ mcpServers: { a: entry }, servers: { a: entry } })).toEqual([
      'servers.a is a name that stands in mcpServers already; give it another',
    ]);
    for (const separator of ['', 7, '___________', ' ', '::']) {
      expect(problemsOf({ mcpServers: { a: entry }, gateway: { separator } })).toEqual([
        'gateway.separator must have 1 to 8 characters of A-Z, a-z, 0-9, "_", "." and "-"',
      ]);
    }
  });

  test('an entry that says neither what to start nor where to call', () => {
    const neither = '… must have a command (a program to start) or a url (a server that runs)';
    expect(problemsOfEntry({})).toEqual([neither]);
    expect(problemsOfEntry({ command: ' ' })).toEqual([neither]);
    expect(problemsOfEntry({ command: 'x', url: 'http://a.example' })).toEqual([
      '… has both command and url; say with type which one is meant',
    ]);
    expect(problemsOfEntry({ type: 'stdio' })).toEqual([
      '….command must be the name or path of a program',
    ]);
    expect(problemsOfEntry({ type: 'sse', command: 'x' })).toEqual([
      '….url must be given for type "sse"',
    ]);
    for (const type of ['ws', 7, null, 'toString']) {
      expect(problemsOfEntry({ type, command: 'x' })).toEqual([
        '….type must be one of "stdio", "http", "streamable-http", "sse"',
      ]);
    }
    for (const wrong of [null, [], 7, 'x']) {
      expect(problemsOfEntry(wrong)).toEqual(['… must be an object with a command or a url']);
    }
  });

  test('parts of an entry', () => {
    expect(
      problemsOfEntry({
        command: 'x',
        args: ['a', {}, null, 'nul\0'],
        cwd: 7,
        env: { A: null, 'B=C': 'x', '': 'y', D: 'nul\0' },
      }),
    ).toEqual([
      '….cwd must be the path of a folder',
      '….args.1 must be a text',
      '….args.2 must be a text',
      '….args.3 must be a text',
      '….env.A must be a text',
      '….env.B=C is no name of a variable: it must not be empty or have "="',
      '….env. is no name of a variable: it must not be empty or have "="',
      '….env.D must not have a NUL character in it',
    ]);
    expect(problemsOfEntry({ command: 'x', args: 'y', env: [] })).toEqual([
      '….args must be a list of texts',
      '….env must be an object of texts',
    ]);
    const secret = 'hunter2-hunter2';
    const headers = { 'a b': 'x', Authorization: `Bearer ${secret}\nX: y` };
    const problems = problemsOfEntry({ url: `https://u:${secret}@a.example`, headers });
    expect(problems).toEqual([
      '….url must not hold a user name or password; send them in headers.Authorization',
      '….headers.a b cannot be sent: a line break or a character beyond Latin-1',
      '….headers.Authorization cannot be sent: a line break or a character beyond Latin-1',
    ]);
    expect(problems.join()).not.toContain(secret);
    expect(problemsOfEntry({ url: 'mcp.example' })).toEqual([
      '….url must be a URL, such as https://mcp.example/mcp',
    ]);
    for (const timeout of ['60', 0, -1, Number.MAX_VALUE, true]) {
      expect(problemsOfEntry({ command: 'x', timeout })).toEqual([
        '….timeout must be a number from 1 to 86400000 (ms)',
      ]);
    }
  });

  test('every setting of a block is checked, on the upstream and on a tool', () => {
    for (const [name, rule] of Object.entries(policyRules)) {
      for (const under of ['', 'tools.t.']) {
        const wrap = (settings: object) => (under === '' ? settings : { tools: { t: settings } });
        const [problem] = problemsOfBlock(wrap({ [name]: 'wrong' }));
        expect(problem).toContain(`….${under}${name} must be `);
        if (rule.kind !== 'group') continue;
        const [inner] = Object.keys(rule.rules);
        expect(problemsOfBlock(wrap({ [name]: { [String(inner)]: [] } }))[0]).toContain(
          `….${under}${name}.${inner} must be `,
        );
      }
    }
    for (const name of resilienceSettings) {
      expect(problemsOfBlock({ [name]: { nonsense: [] } })[0]).toContain(`….${name}`);
    }
    for (const wrong of [null, [], 7, 'x']) {
      expect(problemsOfBlock(wrong)).toEqual(['… must be an object of settings']);
      expect(problemsOfBlock({ tools: wrong })).toEqual([
        '….tools must be an object of tool names',
      ]);
      expect(problemsOfBlock({ tools: { t: wrong } })).toEqual([
        '….tools.t must be an object of settings',
      ]);
    }
  });

  test('settings of a block beside the policies', () => {
    expect(
      problemsOfBlock({
        connectTimeout: 0,
        discoveryTimeout: '1',
        idleTimeout: -1,
        shared: 1,
        restart: { initialDelay: 0, max: 5 },
        maxMessageBytes: 1,
        toolBreakers: { treshold: 2, probes: 0 },
        toolGuard: 1,
        tools: { t: { idempotent: 'yes', readOnly: 1 } },
      }),
    ).toEqual([
      '….idleTimeout must be a number from 1 to 86400000 (ms), got -1',
      '….tools.t.idempotent must be true or false',
      '….tools.t.readOnly must be true or false',
      '….toolBreakers.treshold is not a setting; did you mean "threshold"?',
      '….toolBreakers.probes must be a whole number from 1 to 1000, got 0',
      '….toolGuard must be a whole number from 2 to 1000, got 1',
      '….restart.max is not a setting; known are initialDelay, maxDelay',
      '….connectTimeout must be a number from 1 to 86400000 (ms), got 0',
      '….discoveryTimeout must be a number from 1 to 86400000 (ms), got "1"',
      '….shared must be true or false, got 1',
      '….restart.initialDelay must be a number from 1 to 86400000 (ms), got 0',
      '….maxMessageBytes must be a whole number from 1024 to 536870912, got 1',
    ]);
    expect(problemsOfBlock({ restart: { initialDelay: 60_000 } })).toEqual([
      '….restart.initialDelay (60000 ms) must not be longer than maxDelay (30000 ms)',
    ]);
    expect(problemsOfBlock({ idleTimeout: 5, timeout: 5 })).toEqual([
      '….idleTimeout and ….timeout are the same setting; give one',
    ]);
  });

  test('settings that do not go together', () => {
    expect(problemsOfBlock({ deadline: 5_000 })).toEqual([
      '…: the idle timeout (60000 ms) must not be longer than the deadline (5000 ms): an attempt is part of the call; set both',
    ]);
    expect(problemsOfBlock({ bulkhead: { limit: { min: 5, max: 2 } } })).toEqual([
      '….bulkhead.limit.max must be at least bulkhead.limit.min (5), got 2',
    ]);
    expect(problemsOfBlock({ rateLimit: { burst: 2 } })).toEqual([
      '….rateLimit.limit must be given: a whole number from 1 to 1000000',
    ]);
    expect(problemsOfBlock({ tools: { t: { timeout: 9_000, deadline: 8_000 } } })).toEqual([
      '….tools.t: the idle timeout (9000 ms) must not be longer than the deadline (8000 ms): an attempt is part of the call; set both',
    ]);
  });
});

describe('what holds', () => {
  verifies('config.defaults', () => {
    const { policy, tools, toolBreaker, toolGuard, shared } = one({ command: 'x' });
    expect(policy).toEqual(gatewayPolicy);
    expect(policy).not.toHaveProperty('cache');
    expect(policy).not.toHaveProperty('rateLimit');
    expect(policy).not.toHaveProperty('hedge');
    // Retries are limited to what a tool allows by who makes the calls; no rule here widens it.
    expect([tools, toolBreaker, toolGuard, shared]).toEqual([{}, false, false, false]);
    expect(policy.deadline).toBeGreaterThanOrEqual(300_000);
    expect(policy.timeout).toBeGreaterThanOrEqual(60_000);
  });

  test('a block lies over the defaults, a preset between the two', () => {
    const upstream = one({
      command: 'x',
      resilience: {
        preset: 'public-api',
        retry: { maxRetries: 1 },
        breaker: false,
        bulkhead: { limit: 3 },
        cache: { ttl: 5_000 },
        connectTimeout: 1_000,
        discoveryTimeout: 2_000,
        restart: { maxDelay: 9_000 },
        shared: true,
        toolBreakers: true,
        toolGuard: 4,
        tools: {
          write: { idempotent: false, timeout: 2_000 },
          read: { readOnly: true, cache: { ttl: 1_000 }, preset: 'database' },
          slow: { idleTimeout: 900_000 },
        },
      },
    });
    expect(upstream).toMatchObject({
      policy: {
        ...presets['public-api'],
        retry: { maxRetries: 1, baseDelay: 2_000 },
        breaker: false,
        bulkhead: { limit: 3, queue: 1_000 },
        cache: { ttl: 5_000 },
      },
      connectTimeout: 1_000,
      discoveryTimeout: 2_000,
      restart: { initialDelay: 500, maxDelay: 9_000 },
      shared: true,
      toolBreaker: {},
      toolGuard: 4,
    });
    expect(upstream.tools).toEqual({
      write: { idempotent: false, policy: { timeout: 2_000 } },
      read: { readOnly: true, policy: { ...presets.database, cache: { ttl: 1_000 } } },
      // A longer attempt asks for a longer call.
      slow: { policy: { timeout: 900_000, deadline: 900_000 } },
    });
    const { toolBreaker, policy } = one({
      command: 'x',
      resilience: { toolBreakers: { threshold: 9 }, breaker: true },
    });
    expect([toolBreaker, policy.breaker]).toEqual([{ threshold: 9 }, gatewayPolicy.breaker]);
  });

  verifies('config.timeout-wins', () => {
    expect(one({ command: 'x', timeout: 90_000 }).policy).toMatchObject({
      timeout: 90_000,
      deadline: 300_000,
    });
    expect(one({ command: 'x', timeout: 900_000 }).policy).toMatchObject({
      timeout: 900_000,
      deadline: 900_000,
    });
    expect(
      one({ command: 'x', timeout: 90_000, resilience: { preset: 'internal' } }).policy,
    ).toMatchObject({ timeout: 90_000, deadline: 90_000 });
    // What was said for the gateway wins over what was said for clients.
    expect(
      one({ command: 'x', timeout: 90_000, resilience: { idleTimeout: 7_000 } }).policy.timeout,
    ).toBe(7_000);
    expect(parse({ mcpServers: { a: { command: 'x', timeout: 60 } } }).notices).toEqual([
      'mcpServers.a.timeout is 60 ms; some clients write seconds here, in which case 60000 is meant',
    ]);
  });

  test('the gateway itself', () => {
    const servers = { mcpServers: { a: { command: 'x', envFile: '.env' } } };
    expect(parse(servers)).toMatchObject({
      name: 'mcp-resilience',
      prefix: 'auto',
      separator: '__',
      strict: false,
      http: {},
      notices: ['mcpServers.a.envFile is not read; set its variables before the gateway starts'],
    });
    expect(parse(servers)).not.toHaveProperty('auth');
    const gateway = {
      name: 'front',
      prefix: 'always',
      separator: '.',
      strict: true,
      http: { path: '/all', rateLimit: false },
      auth: { tokens: [{ principal: 'ci', env: 'CI_TOKEN' }] },
    };
    expect(parse({ ...servers, gateway })).toMatchObject(gateway);
    expect(problemsOf({ ...servers, gateway: { http: { auth: gateway.auth } } })).toEqual([
      'gateway.http.auth is not a setting; did you mean "gateway.auth"?',
    ]);
    for (const wrong of [null, [], 7]) {
      expect(problemsOf({ ...servers, gateway: wrong })).toEqual(['gateway must be an object']);
    }
    expect(
      problemsOf({ ...servers, gateway: { name: '', strict: 1, http: [], auth: {} } }),
    ).toEqual([
      'gateway.name must be a text of 1 to 64 characters',
      'gateway.strict must be true or false',
      'gateway.http must be an object, got []',
      'gateway.auth must have jwt, tokens or both: without any nobody could call',
    ]);
  });

  test('any JSON is refused or read, and never anything else', () => {
    const problem = fc.oneof(
      fc.json(),
      fc.anything().map((value) => JSON.stringify(value) ?? 'null'),
    );
    fc.assert(
      fc.property(problem, problem, (entry, gateway) => {
        try {
          parse(`{"mcpServers": {"a": ${entry}}, "gateway": ${gateway}}`);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
        }
        expect(({} as Record<string, unknown>).command).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });
});
