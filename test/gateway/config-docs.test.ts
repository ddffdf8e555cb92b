import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config.ts';
import { parseGatewayConfig } from '../../src/gateway/config.ts';
import {
  connectionRules,
  gatewayPolicy,
  resilienceSettings,
} from '../../src/gateway/config-resilience.ts';
import { ConfigError } from '../../src/gateway/config-text.ts';
import { createAuthenticator } from '../../src/mcp/auth.ts';
import { authSettingsSchema } from '../../src/mcp/auth-settings.ts';
import { describeSettings } from '../../src/mcp/settings-problems.ts';
import { policyRules } from '../../src/resilience/policy.ts';
import { allowed } from '../../src/resilience/settings.ts';

const read = (file: string): string =>
  readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8');

const blocksOf = (page: string, language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, block = '']) => block,
  );

/** Cells of the row whose first cell is that setting. */
const rowOf = (page: string, name: string): string[] =>
  page
    .split('\n')
    .find((line) => line.startsWith(`| \`${name}\` `))
    ?.split(/(?<!\\)\|/)
    .map((cell) => cell.trim()) ?? [];

describe('docs/gateway-config.md', () => {
  const page = read('gateway-config.md');
  const env = { GITHUB_TOKEN: 'value-of-the-token' };

  test('its example can be used, and comes to what it says', () => {
    const [example = ''] = blocksOf(page, 'jsonc');
    const { upstreams, http } = parseGatewayConfig(example, { name: 'the example', env });
    const [files, github] = upstreams;
    expect(files?.policy).toEqual(gatewayPolicy);
    expect(github?.policy).toMatchObject({ rateLimit: false, timeout: 10_000 });
    expect(github?.tools.run_workflow?.policy).toEqual({ timeout: 600_000, deadline: 600_000 });
    expect(http.allowedHosts).toEqual(['mcp.example']);
  });

  test('its example of a refusal is what is said', () => {
    const [, refusal = ''] = /```\nerror: ([\s\S]*?)\n```/.exec(page) ?? [];
    const [, first, second] = refusal.split('\n');
    const config = {
      mcpServers: {
        files: { command: 'x', resilience: { breaker: { treshold: 3 } } },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the file
        github: { url: 'https://a.example', headers: { Authorization: 'Bearer ${GITHUB_TOKEN}' } },
      },
    };
    expect(() => parseGatewayConfig(JSON.stringify(config), { name: 'mcp.json', env: {} })).toThrow(
      new ConfigError(
        'mcp.json',
        [first ?? '', second ?? ''].map((line) => line.slice(4)),
      ),
    );
  });

  test('every setting of the block is on it, with its default', () => {
    const own = resilienceSettings.filter((name) => !(name in policyRules));
    for (const name of [...own, 'breaker'])
      expect([name, rowOf(page, name)[1]]).toEqual([name, `\`${name}\``]);
    for (const [name, rule] of Object.entries(connectionRules)) {
      if (rule.kind === 'group') continue;
      const [, , range, fallback] = rowOf(page, name);
      expect([name, range]).toEqual([name, allowed(rule)]);
      expect(fallback).toBe(`\`${rule.fallback}\``);
    }
    const { timeout, deadline, breaker, bulkhead } = gatewayPolicy;
    expect(rowOf(page, 'idleTimeout')[3]).toBe(`\`${timeout}\``);
    expect(page).toContain(`| ${timeout} ms of silence, renewed by progress `);
    expect(page).toContain(`| ${deadline} ms `);
    if (!breaker || !bulkhead) throw new Error('a default has gone');
    expect(page).toContain(`| ${bulkhead.limit}, and ${bulkhead.queue} in line `);
    expect(page).toContain(
      `opens at ${breaker.threshold} failures in a row, for ${breaker.openDuration} ms, doubled up to ${breaker.maxOpenDuration} ms`,
    );
    expect(breaker.openBackoff).toBe(2);
  });
});

describe('docs/auth.md', () => {
  const page = read('auth.md');

  test('its examples can be used', () => {
    const [gateway = '', server = ''] = blocksOf(page, 'jsonc');
    const { auth } = parseGatewayConfig(gateway, { name: 'the example', env: {} });
    if (auth === undefined) throw new Error('the example has no auth');
    const { documents, close } = createAuthenticator(auth);
    expect(Object.keys(documents)).toEqual([
      '/.well-known/oauth-protected-resource',
      '/.well-known/oauth-protected-resource/mcp',
    ]);
    close();
    for (const path of Object.keys(documents)) expect(page).toContain(`\`${path}\``);
    expect(parseConfig(server, 'the example').http.auth?.tokens).toHaveLength(2);
  });

  test('every setting is on it, with what is allowed and its default', () => {
    const settings = describeSettings(authSettingsSchema);
    expect(settings.length).toBeGreaterThan(15);
    for (const { name, allowed: range, fallback } of settings) {
      const [, , cell, shown] = rowOf(page, name);
      expect([name, cell]).toEqual([name, range]);
      const expected =
        name === 'jwt.algorithms'
          ? 'all'
          : fallback === undefined
            ? ''
            : `\`${JSON.stringify(fallback)}\``;
      expect([name, shown]).toEqual([name, expected]);
    }
  });
});
