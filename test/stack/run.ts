/**
 * @module
 * `npm run test:stack`: builds the real programs if they are not in the cache, runs the stack
 * test against them, and leaves nothing behind, however it ends. Flags go to vitest.
 * `STACK_KEEP=1` keeps the folder with logs and data, and says where it is.
 */
import { spawn } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { root } from './compose.ts';
import { composeCommand } from './compose-command.ts';
import { type ProgramName, program } from './programs.ts';

const say = (line: string): void => console.error(line);

const folder = mkdtempSync(join(tmpdir(), 'mcp-resilience-stack-'));

/** Ends what the tests have left running, each with whatever it has started itself. */
const endPrograms = (): void => {
  for (const note of globSync('{pids,*/pids}/*', { cwd: folder })) {
    const pid = Number(basename(note));
    // Its group, if it leads one, and itself.
    for (const target of [-pid, pid]) {
      try {
        process.kill(target, 'SIGKILL');
      } catch {
        // It has ended by itself, or leads none.
      }
    }
  }
};

process.on('exit', () => {
  endPrograms();
  if (process.env.STACK_KEEP) say(`logs and data: ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
});

/** The end of each log, for whoever has to find out what was wrong. */
const sayLogs = (): void => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.log'))) {
    const lines = readFileSync(join(folder, file), 'utf8').trim().split('\n');
    say(
      `\n--- ${file}\n${lines
        .slice(-15)
        .map((line) => line.slice(0, 300))
        .join('\n')}`,
    );
  }
};

const report = join(folder, 'report.json');

const runTests = (compose: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        join(root, 'node_modules', 'vitest', 'vitest.mjs'),
        'run',
        '--config',
        join(import.meta.dirname, 'vitest.config.ts'),
        '--reporter=default',
        '--reporter=json',
        `--outputFile.json=${report}`,
        ...process.argv.slice(2),
      ],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
        env: { ...process.env, STACK_FOLDER: folder, COMPOSE_COMMAND: compose },
      },
    );
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => {
        child.kill('SIGKILL');
        process.exit(128 + constants.signals[signal]);
      });
    }
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });

const names: readonly ProgramName[] = ['promtool', 'prometheus', 'otelcol', 'jaeger'];
try {
  const compose = await composeCommand();
  for (const name of names) say(`${name}: ${await program(name)}`);
  const started = performance.now();
  const code = await runTests(compose);
  const seconds = Math.round((performance.now() - started) / 1_000);
  if (code !== 0) sayLogs();
  const { numPassedTests = 0, numFailedTests = 0 } = existsSync(report)
    ? (JSON.parse(readFileSync(report, 'utf8')) as Record<string, number>)
    : {};
  // A run that could not even begin has failed too.
  const failed = Math.max(numFailedTests, code === 0 ? 0 : 1);
  say(
    `\nthe stack, on the real programs, in ${seconds} s:\n${numPassedTests} passed, ${failed} failed`,
  );
  process.exitCode = failed === 0 ? 0 : 1;
} catch (error) {
  say(`error: ${error instanceof Error ? error.message : String(error)}\n0 passed, 1 failed`);
  process.exitCode = 1;
}
