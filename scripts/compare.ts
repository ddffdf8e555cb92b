/**
 * @module
 * Runs the cases of `test/comparison` against this library and its alternatives and writes
 * `docs/comparison.md`. `npm run compare`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { render } from '../test/comparison/report.ts';
import { compare } from '../test/comparison/run.ts';

const root = join(import.meta.dirname, '..');
const { name, version, devDependencies } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
) as { name: string; version: string; devDependencies: Record<string, string> };

const report = render(await compare(), {
  versions: { ...devDependencies, [name]: version },
  node: process.version.slice(1),
  date: new Date().toISOString().slice(0, 10),
});
writeFileSync(join(root, 'docs', 'comparison.md'), report);
