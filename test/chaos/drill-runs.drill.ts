import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { runCommand, temporaryFolder } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { readReport } from './drill-support.ts';

/** Bounds against hanging: a drill takes some 15 s, and slow-shard may wait for a quiet machine. */
const BOUND = 90_000;
const PATIENT_BOUND = 240_000;

const run = async (name: string) => {
  const json = join(temporaryFolder(), 'report.json');
  const { code, stdout, stderr } = await runCommand(['drill', name, '--json', json]);
  const report = readReport(json);
  const unmet = report.drills.flatMap(({ problem, expectations }) => [
    ...(problem === undefined ? [] : [problem]),
    ...expectations
      .filter(({ pass }) => !pass)
      .map(({ that, expected, measured }) => `${that}: expected ${expected}, got ${measured}`),
  ]);
  return { code, stdout, stderr, report, unmet };
};

describe('every drill passes, through the real command', () => {
  verifies(
    [
      'drill.hang',
      'drill.burst-503',
      'drill.rate-limited',
      'drill.flapping',
      'drill.dns-outage',
      'drill.garbage-body',
      'drill.collector-outage',
      'drill.retry-storm',
      'drill.recovery',
    ],
    async (id) => {
      const name = id.replace('drill.', '');
      const { code, stdout, stderr, report, unmet } = await run(name);
      expect(unmet).toEqual([]);
      expect(code).toBe(0);
      expect(report.verdict).toBe('PASS');
      expect(report.drills.map((drill) => drill.name)).toEqual([name]);
      expect(stdout).toMatch(new RegExp(`^PASS ${name} \\(`, 'm'));
      // Nobody who runs it looks at a screen that stands still.
      expect(stderr).toMatch(/^ {2}fault 1\/\d s: \d+ calls: /m);
    },
    BOUND,
  );

  verifies(
    ['drill.slow-shard', 'drill.comparison'],
    async (id) => {
      const { code, stdout, report, unmet } = await slowShard();
      if (id === 'drill.slow-shard') {
        expect(unmet).toEqual([]);
        expect(code).toBe(0);
        expect(report.drills[0]?.expectations).toHaveLength(8);
        return;
      }
      const rows = Object.fromEntries(
        (report.drills[0]?.notes ?? []).map((line) => {
          const [name = '', ...cells] = line.split('|').slice(1, -1);
          return [name.trim(), cells.map((cell) => cell.trim())];
        }),
      );
      for (const line of report.drills[0]?.notes ?? []) expect(stdout).toContain(line);
      expect(rows['']).toEqual(['unprotected', 'protected', 'undisturbed']);
      const [never, fast] = rows['until calls fail fast'] ?? [];
      expect(never).toBe('never');
      expect(fast).toMatch(/ s$/);
      const numbers = (row: string) => (rows[row] ?? []).map((cell) => Number.parseFloat(cell));
      const [pendingWithout = 0, pendingWith = 0] = numbers('requests without an answer, at most');
      // The pool holds 50: without protection more than that wait for an answer.
      expect(pendingWithout).toBeGreaterThan(50);
      expect(pendingWith).toBeLessThanOrEqual(50);
      const [oldestWithout = 0, oldestWith = 0] = numbers('oldest request without an answer');
      expect(oldestWithout).toBeGreaterThan(oldestWith);
      const [lostWithout = 0, lostWith = 0] = numbers('answers lost');
      expect(lostWithout).toBeGreaterThan(0);
      expect(lostWith).toBe(0);
    },
    PATIENT_BOUND,
  );
});

let slowShardRun: ReturnType<typeof run> | undefined;

/** One run serves both. */
const slowShard = (): ReturnType<typeof run> => {
  slowShardRun ??= run('slow-shard');
  return slowShardRun;
};
