import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PAGE, render } from '../scripts/docs.ts';
import { parseConfig } from '../src/config.ts';
import { presets } from '../src/resilience/presets.ts';
import { describePolicies } from '../src/tools/index.ts';
import { runCommand } from './fixtures/command.ts';
import { verifies } from './fixtures/verifies.ts';

const read = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const page = read(PAGE);

const section = (text: string, heading: string): string =>
  text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';

/** Rows of the first table of a section, as objects with the column heads as keys. */
const rowsOf = (text: string, heading: string): Record<string, string>[] => {
  const lines = section(text, heading).split('\n');
  const cells = lines
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  const [head = [], , ...rows] = cells;
  return rows.map((row) => Object.fromEntries(head.map((name, index) => [name, row[index] ?? ''])));
};

describe(PAGE, () => {
  verifies('docs.configuration', async () => {
    expect(render(page)).toBe(page);
    const { stdout } = await runCommand(['--help']);
    const names = stdout.match(/--[a-z]+|[A-Z]+_[A-Z_]*[A-Z]/g) ?? [];
    expect(names.length).toBeGreaterThan(10);
    for (const name of names.filter((candidate) => !candidate.startsWith('OTEL_'))) {
      expect(page).toContain(`\`${name}\``);
    }
  });

  verifies('T08', () => {
    const explained = section(page, 'Attempt timeout and deadline');
    for (const limit of ['**The attempt timeout (`timeout`)**', '**The deadline (`deadline`)**']) {
      expect(explained).toContain(limit);
    }
    const limits = (heading: string, key: string, text = page) =>
      rowsOf(text, heading).map((row) => [row[key], row['attempt timeout'], row.deadline]);
    const ofPresets = Object.entries(presets).map(([name, { timeout, deadline }]) => [
      `\`${name}\``,
      String(timeout),
      String(deadline),
    ]);
    expect(limits('Presets', 'preset')).toEqual(ofPresets);
    expect(limits('Presets', 'preset', read('README.md'))).toEqual(ofPresets);
    expect(limits('Defaults of the tools', 'tool')).toEqual(
      describePolicies().map(({ tool, policy: { timeout, deadline } }) => [
        `\`${tool}\``,
        String(timeout),
        String(deadline),
      ]),
    );
  });

  test('its example can be used, and comes to what it says', () => {
    const [, example = ''] = /```jsonc\n([\s\S]*?)```/.exec(page) ?? [];
    const [weather] = describePolicies(parseConfig(example, 'the example').tools);
    expect(weather?.policy).toMatchObject({ timeout: 15_000, deadline: 50_000 });
    expect(page).toContain('attempt timeout 15 s, deadline 50 s, retries 3');
  });

  test('its example of a refusal is what is said', () => {
    const config = {
      tools: { get_weather: { retry: { maxRetries: 99 } }, serch: {} },
      http: { rateLimit: { limit: 5 } },
    };
    const [, example] = /```\nerror: (mcp\.json cannot be used:[\s\S]*?)\n```/.exec(page) ?? [];
    expect(() => parseConfig(JSON.stringify(config), 'mcp.json')).toThrow(example ?? 'no example');
  });
});
