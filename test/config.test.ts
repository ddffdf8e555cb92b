import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ConfigError, loadConfig, parseConfig } from '../src/config.ts';
import { httpSettings } from '../src/config-http.ts';
import { httpSettingsSchema } from '../src/mcp/transports/http-settings.ts';
import { bulkheadRules, policyRules } from '../src/resilience/policy.ts';
import { presets } from '../src/resilience/presets.ts';
import { allowed } from '../src/resilience/settings.ts';
import { describePolicies } from '../src/tools/index.ts';
import { configFile, runCommand, temporaryFolder } from './fixtures/command.ts';
import { closedPort, OtlpReceiver } from './fixtures/otlp-receiver.ts';
import { verifies } from './fixtures/verifies.ts';

/** The problems that a configuration is refused with. */
const PATH = 'a path that starts with "/", without "?" and "#", and neither /healthz nor /readyz';

const problemsOf = (config: unknown): string[] => {
  try {
    parseConfig(typeof config === 'string' ? config : JSON.stringify(config), 'the file');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [first, ...problems] = error.message.split('\n');
    expect(first).toBe('the file cannot be used:');
    return problems.map((line) => line.replace(/^ {2}- /, ''));
  }
  return [];
};

const policyOf = (tool: string, config: object) =>
  describePolicies(parseConfig(JSON.stringify(config), 'x').tools).find(
    (entry) => entry.tool === tool,
  )?.policy;

describe('a wrong configuration', () => {
  verifies('cli.config-refused', async () => {
    const collector = await OtlpReceiver.start();
    onTestFinished(() => collector.stop());
    const port = new URL(await closedPort()).port;
    const file = configFile({
      toools: {},
      tools: {
        get_weather: { timeout: -5, retry: { maxRetries: 99, budget: { ratio: 77 } } },
        serch: {},
      },
      http: { maxConnections: 0 },
    });
    const { code, stdout, stderr } = await runCommand(
      ['--http', '--port', port, '--config', file],
      { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    );
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.trimEnd().split('\n')).toEqual([
      `error: ${file} cannot be used:`,
      '  - toools is not known; known are tools, http',
      '  - tools.get_weather.timeout must be a number from 1 to 86400000 (ms), got -5',
      '  - tools.get_weather.retry.maxRetries must be a whole number from 0 to 10, got 99',
      '  - tools.get_weather.retry.budget.ratio must be a number from 0 to 10, got 77',
      '  - tools.serch is no tool with policies; there are get_weather, search',
      '  - http.maxConnections must be a whole number from 1 to 1000000, got 0',
    ]);
    const probe = connect(Number(port), '127.0.0.1');
    const [error] = await once(probe, 'error');
    expect(error).toHaveProperty('code', 'ECONNREFUSED');
    expect(collector.connections).toBe(0);
  });

  test('one that cannot be read', async () => {
    const folder = temporaryFolder();
    for (const [file, why] of [
      [`${folder}/none.json`, 'there is no such file'],
      [folder, 'it is a directory'],
    ] as const) {
      const { code, stderr } = await runCommand(['--config', file]);
      expect([code, stderr]).toEqual([2, `error: ${file} cannot be used:\n  - ${why}\n`]);
    }
  });

  test('syntax errors are told with their place', () => {
    expect(problemsOf('{"tools": {}')).toEqual(['close brace expected at line 1, column 13']);
    expect(problemsOf('{\n  "tools" {}\n}')[0]).toBe('colon expected at line 2, column 11');
    expect(problemsOf('')).toEqual(['value expected at line 1, column 1']);
    for (const text of ['[]', '7', 'null', '"x"']) {
      expect(problemsOf(text)).toEqual(['it must be a JSON object']);
    }
  });

  test('a setting that is given twice would be half ignored', () => {
    expect(problemsOf('{"tools": {"search": {"timeout": 1,\n "timeout": 2}}}')).toEqual([
      'tools.search.timeout is given again at line 2, column 2',
    ]);
    expect(problemsOf('{"http": {}, "http": {}}')).toEqual([
      'http is given again at line 1, column 14',
    ]);
    // The same name in two places is not the same setting.
    expect(problemsOf({ tools: { search: { timeout: 1 }, get_weather: { timeout: 1 } } })).toEqual(
      [],
    );
  });

  test('every setting of a policy is checked', () => {
    for (const [name, rule] of Object.entries(policyRules)) {
      const [problem] = problemsOf({ tools: { search: { [name]: 'wrong' } } });
      expect(problem).toContain(`tools.search.${name} must be `);
      if (rule.kind !== 'group') continue;
      for (const [inner, innerRule] of Object.entries(rule.rules)) {
        const problems = problemsOf({ tools: { search: { [name]: { [inner]: [] } } } });
        const expected = `tools.search.${name}.${inner} must be ${allowed(innerRule)}, got `;
        if (innerRule.kind !== 'group') expect(problems[0]).toContain(expected);
        else expect(problems[0]).toMatch(`tools.search.${name}.${inner} must be an object`);
      }
    }
    for (const wrong of [null, [], 7, 'x']) {
      expect(problemsOf({ tools: wrong })).toEqual(['tools must be an object of tool names']);
      expect(problemsOf({ tools: { search: wrong } })).toEqual([
        'tools.search must be an object of settings',
      ]);
    }
    expect(problemsOf({ tools: { search: { retries: 1 } } })[0]).toMatch(
      /^tools\.search\.retries is not a setting; known are deadline, timeout, /,
    );
    expect(problemsOf({ tools: { health_check: {} } })[0]).toContain(
      'there are get_weather, search',
    );
  });

  test('what a group needs may stand in the defaults of the tool, but must stand somewhere', () => {
    const { limit } = bulkheadRules;
    expect(problemsOf({ tools: { search: { bulkhead: { queue: 3 } } } })).toEqual([]);
    expect(problemsOf({ tools: { get_weather: { bulkhead: { queue: 3 } } } })).toEqual([
      `tools.get_weather.bulkhead.limit must be given: ${limit ? allowed(limit) : ''}`,
    ]);
  });

  test('settings that do not go together are refused too', () => {
    const bulkhead = { limit: { min: 5, max: 2 } };
    expect(problemsOf({ tools: { search: { bulkhead } } })).toEqual([
      'tools.search.bulkhead.limit.max must be at least bulkhead.limit.min (5), got 2',
    ]);
    expect(problemsOf({ tools: { search: { bulkhead: { limit: { max: 2 } } } } })).toEqual([]);
  });

  test('a timeout that the deadline would cut short is not taken in silence', () => {
    expect(problemsOf({ tools: { search: { timeout: 90_000 } } })).toEqual([
      'tools.search.timeout (90000 ms) must not be longer than tools.search.deadline (45000 ms): an attempt is part of the call; set both',
    ]);
    expect(problemsOf({ tools: { search: { timeout: 90_000, deadline: 90_000 } } })).toEqual([]);
  });

  test('every setting of the HTTP door is checked', () => {
    for (const { name, allowed: range } of httpSettings) {
      const [group = '', key] = name.split('.');
      const wrong = { never: 'right' };
      const problems = problemsOf({ http: { [group]: key ? { [key]: wrong } : wrong } });
      if (name === 'rateLimit') {
        expect(problems).toContain(
          'http.rateLimit.limit must be given: a whole number from 1 to 1000000',
        );
        expect(problems).toContain(
          'http.rateLimit.never is not a setting; known are limit, interval, burst',
        );
      } else {
        expect(problems).toContain(`http.${name} must be ${range}, got {"never":"right"}`);
      }
    }
    expect(problemsOf({ http: { rateLimit: true } })).toEqual([
      'http.rateLimit must be false, or an object, got true',
    ]);
    expect(problemsOf({ http: { rateLimit: { limit: 5, burst: 0 } } })).toEqual([
      'http.rateLimit.burst must be a whole number from 1 to 1000000, got 0',
    ]);
    expect(problemsOf({ http: { allowedOrigins: ['here'], path: 'mcp' } })).toEqual([
      `http.path must be ${PATH}, got "mcp"`,
      'http.allowedOrigins.0 must be a URL, got "here"',
    ]);
    expect(problemsOf({ http: { prot: 1 } })[0]).toMatch(
      /^http\.prot is not a setting; known are path,/,
    );
    for (const wrong of [null, [], 7]) {
      expect(problemsOf({ http: wrong })[0]).toMatch(/^http must be an object, got /);
    }
  });

  test('a path or a host that no request could ever have is refused', () => {
    for (const path of ['/healthz', '/readyz', '/mcp?x=1', '/mcp#x', '/m cp']) {
      expect(problemsOf({ http: { path } })).toEqual([
        `http.path must be ${PATH}, got ${JSON.stringify(path)}`,
      ]);
    }
    for (const host of ['http://mcp.example', 'mcp.example/mcp', 'a b', '']) {
      expect(problemsOf({ http: { allowedHosts: [host] } })).toEqual([
        `http.allowedHosts.0 must be a host name, such as mcp.example, got ${JSON.stringify(host)}`,
      ]);
    }
    for (const host of ['mcp.example', 'MCP.example:8443', '[fe80::1]', '10.0.0.1']) {
      expect(problemsOf({ http: { allowedHosts: [host] } })).toEqual([]);
    }
    expect(problemsOf({ http: { path: '/healthz/mcp' } })).toEqual([]);
  });

  test('a key that would be the prototype is no setting either', () => {
    for (const text of [
      '{ "__proto__": { "tools": { "search": { "timeout": 5 } } } }',
      '{ "tools": { "__proto__": { "search": {} } } }',
      '{ "tools": { "search": { "__proto__": { "timeout": 5 } } } }',
    ]) {
      expect(() => parseConfig(text, 'x.json')).toThrow(/__proto__ is not known/);
    }
  });
});

describe('a right configuration', () => {
  verifies('cli.config-forms', () => {
    const text = `\uFEFF{
      // A comment,
      "$schema": "./schema.json", /* and another */
      "tools": { "search": { "timeout": 3000, }, },
      "http": { "rateLimit": false, "maxSessions": 5 },
    }`;
    const config = loadConfig(configFile(text));
    expect(config).toEqual({
      tools: { search: { timeout: 3000 } },
      http: { rateLimit: false, maxSessions: 5 },
    });
    expect(httpSettingsSchema.parse(config.http)).toMatchObject({ maxConnections: 100 });
    expect(loadConfig(undefined)).toEqual({ tools: {}, http: {} });
    expect(loadConfig(configFile({}))).toEqual({ tools: {}, http: {} });
  });

  verifies('cli.config-presets', () => {
    const tools = { search: { preset: 'internal', retry: { maxRetries: 1 }, rateLimit: false } };
    const policy = policyOf('search', { tools });
    expect(policy).toMatchObject({
      ...presets.internal,
      retry: { maxRetries: 1, baseDelay: 500 },
      rateLimit: false,
      // Not in the preset: what the tool had before.
      bulkhead: { limit: 4 },
      cache: { ttl: 600_000 },
    });
    for (const preset of ['intern', 'toString', 5, null, ['internal']]) {
      expect(problemsOf({ tools: { search: { preset } } })).toEqual([
        'tools.search.preset must be one of "public-api", "paid-api", "internal", "database", "filesystem"',
      ]);
    }
    for (const preset of Object.keys(presets)) {
      expect(problemsOf({ tools: { search: { preset }, get_weather: { preset } } })).toEqual([]);
    }
  });

  test('false switches a group off', () => {
    const policy = policyOf('search', { tools: { search: { cache: false, bulkhead: false } } });
    expect(policy).toMatchObject({ cache: false, bulkhead: false });
  });
});
