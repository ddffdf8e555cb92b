import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { MEASURES } from '../../src/chaos/drill-expectation.ts';
import { parseDrill } from '../../src/chaos/drill-file.ts';
import { drills } from '../../src/chaos/drills/index.ts';
import { runCommand } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { drillFile } from './drill-support.ts';

const page = readFileSync(new URL('../../docs/drills.md', import.meta.url), 'utf8');

/** Cells of every row of every table. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );

describe('docs/drills.md', () => {
  verifies('drill.docs', async () => {
    const listed = rows.filter(([name]) => drills.some((drill) => `\`${drill.name}\`` === name));
    expect(listed.map(([name, , expected]) => [name, expected])).toEqual(
      drills.map(({ name, hypothesis }) => [`\`${name}\``, hypothesis]),
    );
    const [, example = ''] = /```jsonc\n([\s\S]*?)```/.exec(page) ?? [];
    const file = drillFile(example);
    const { code, stdout } = await runCommand(['drill', '--file', file]);
    expect([code, stdout.match(/^ {2}FAIL.*$/gm)]).toEqual([0, null]);
  });

  test('names every setting, with its default', () => {
    const [, example = ''] = /```jsonc\n([\s\S]*?)```/.exec(page) ?? [];
    const drill = parseDrill(example, 'the example');
    const settings = [
      ...Object.keys(drill.server).map((key) => `server.${key}`),
      ...Object.keys(drill.load[0] ?? {}).map((key) => `load[].${key}`),
      ...Object.keys(drill.faults[0] ?? {}).map((key) => `faults[].${key}`),
    ];
    const names = rows.flatMap(([name = '']) =>
      [...name.matchAll(/`([^`]+)`/g)].map(([, key]) => key),
    );
    for (const setting of settings) expect(names).toContain(setting);
    const fallback = (name: string) => rows.find(([cell]) => cell === `\`${name}\``)?.[2];
    const bare = { ...JSON.parse(JSON.stringify(drill)), load: [{ tool: 'search' }] };
    const [load] = parseDrill(JSON.stringify(bare), 'bare').load;
    expect(fallback('load[].agents')).toBe(String(load?.agents));
    expect(fallback('load[].everyMs')).toBe(String(load?.everyMs));
    expect(fallback('load[].retries')).toBe(String(load?.retries));
    expect(fallback('load[].timeoutMs')).toBe(String(load?.timeoutMs));
    expect(fallback('server.upstreamMs')).toBe(String(drill.server.upstreamMs));
  });

  test('names every measure of every source', () => {
    const text = rows.map((cells) => cells.join(' ')).join('\n');
    for (const [source, measures] of Object.entries(MEASURES)) {
      const row = rows.find(([name, ...rest]) => name === `\`${source}\`` && rest.length === 3);
      expect(text).toContain(`\`${source}\``);
      for (const measure of measures) expect(row?.at(-1)).toContain(`\`${measure}\``);
    }
  });
});
