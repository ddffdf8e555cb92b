/**
 * @module
 * Installs the proxies from npm that ours is compared with.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inFolder } from '../fixtures/npm.ts';
import { PEERS } from './subjects.ts';

/** Does nothing in a folder that has them already. Rejects when npm fails. */
export const installPeers = async (folder: string): Promise<void> => {
  mkdirSync(folder, { recursive: true });
  if (existsSync(join(folder, 'node_modules'))) return;
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const packages = Object.entries(PEERS).map(([name, version]) => `${name}@${version}`);
  await inFolder(folder, 'npm', [
    'install',
    '--no-audit',
    '--no-fund',
    '--save-exact',
    ...packages,
  ]);
};
