import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import { readTable, tableOf } from './report.ts';
import { compare } from './run.ts';
import { VirtualTime } from './virtual-time.ts';

const report = join(import.meta.dirname, '..', '..', 'docs', 'comparison.md');

describe('comparison', () => {
  verifies(
    'comparison.current',
    async () => {
      const rows = await compare();
      const ours = rows.map(({ case: { id }, results: [first] }) => [id, first?.verdict]);
      expect(ours.filter(([, verdict]) => verdict !== 'pass')).toEqual([]);
      expect(readTable(readFileSync(report, 'utf8'))).toEqual(tableOf(rows));
    },
    300_000,
  );

  test('time that is simulated passes as the real one does, and leaves it as it was', async () => {
    const before = [setTimeout, setInterval, clearTimeout, Date, performance.now];
    const time = new VirtualTime();
    time.install();
    const fired: string[] = [];
    try {
      const started = performance.now();
      const told = () => fired.push(`${performance.now() - started}`);
      const beat = setInterval(told, 40);
      setTimeout(told, 100);
      clearTimeout(setTimeout(told, 50));
      // As in Node: what does not fit into 31 bits fires at once.
      setTimeout(() => fired.push('overflow'), 2 ** 31);
      setTimeout(() => Promise.resolve().then(() => setTimeout(told, 5)), 10);
      await time.advance(100);
      clearInterval(beat);
      await time.advance(1_000);
      expect(new Date().toISOString()).toBe('2026-01-01T00:00:01.100Z');
      expect(new Date(0).toISOString()).toBe('1970-01-01T00:00:00.000Z');
    } finally {
      time.uninstall();
    }
    expect(fired).toEqual(['overflow', '15', '40', '80', '100']);
    expect([setTimeout, setInterval, clearTimeout, Date, performance.now]).toEqual(before);
  });
});
