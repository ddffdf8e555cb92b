/**
 * @module
 * Builds the package: `dist/` from `src/`, from scratch. `npm run build`, and before `npm pack`.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);
const dist = join(root, 'dist');
const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));

// What was built from a file that is gone must not stay in the package.
rmSync(dist, { recursive: true, force: true });
const { status, error } = spawnSync(
  process.execPath,
  [join(typescript, 'bin', 'tsc'), '-p', join(root, 'tsconfig.build.json')],
  { stdio: 'inherit' },
);
if (error) throw error;
if (status !== 0) {
  rmSync(dist, { recursive: true, force: true });
  console.error('build failed: nothing is left in dist/');
  process.exit(1);
}
// The compiler rewrites `.ts` in what runs, but not in declarations; not every tool that reads
// those takes './clock.ts' for clock.d.ts.
for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.d.ts')) continue;
  const path = join(dist, file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/((?:from |import\()['"]\.[^'"\n]*)\.ts(?=['"])/g, '$1.js'));
}
// npm does so when it installs the package; whoever runs dist/ in place has no npm.
chmodSync(join(dist, 'cli.js'), 0o755);
