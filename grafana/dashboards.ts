/**
 * @module
 * Makes the dashboards and their page: `npm run dashboards`. Tests fail while the files say
 * something else.
 */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { dashboardOf } from './build.ts';
import { drill } from './drill.ts';
import { overview } from './overview.ts';
import { page } from './page.ts';
import type { Board } from './panel.ts';
import { processes } from './process.ts';

/** Every dashboard, the first to look at first. */
export const boards: readonly Board[] = [overview, drill, processes];

/** Every file that is made, by its path in the repository. */
export const files = (): ReadonlyMap<string, string> =>
  new Map([
    ...boards.map((board): [string, string] => [
      `grafana/dashboards/${board.uid}.json`,
      `${JSON.stringify(dashboardOf(board), null, 2)}\n`,
    ]),
    ['docs/dashboards.md', page(boards)],
  ]);

if (process.argv[1] === import.meta.filename) {
  const root = dirname(import.meta.dirname);
  for (const [path, text] of files()) writeFileSync(join(root, path), text);
}
