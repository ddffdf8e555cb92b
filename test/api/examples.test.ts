/**
 * Type-checks every example: the ts blocks of the docstrings in files that declare public names,
 * of the README and of the documents. Each is a file of its own, checked as it stands.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inFolder } from '../fixtures/npm.ts';
import { ENTRIES, type Entry, publicNames, root } from './public.ts';

const BLOCK = /^```ts\n([\s\S]*?)^```$/gm;
const DOCSTRING = /^[ \t]*\/\*\*([\s\S]*?)\*\//gm;

const blocksOf = (text: string): string[] => [...text.matchAll(BLOCK)].map(([, code = '']) => code);

/** Blocks inside of docstrings, without the asterisks. */
const examplesOf = (source: string): string[] =>
  [...source.matchAll(DOCSTRING)].flatMap(([, doc = '']) =>
    blocksOf(doc.replace(/^[ \t]*\* ?/gm, '')),
  );

const TSCONFIG = {
  extends: join(root, 'tsconfig.json'),
  compilerOptions: {
    // An example shows what there is; it need not use it.
    noUnusedLocals: false,
    noUnusedParameters: false,
    paths: Object.fromEntries(
      Object.entries(ENTRIES).map(([entry, file]) => [entry, [join(root, file)]]),
    ),
  },
  include: ['*.ts'],
};

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-resilience-examples-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What tsc says of these files; empty when all is well. */
const typeCheck = async (examples: ReadonlyMap<string, string>): Promise<string> => {
  const project = await mkdtemp(join(folder, 'project-'));
  await mkdir(project, { recursive: true });
  await symlink(join(root, 'node_modules'), join(project, 'node_modules'));
  await writeFile(join(project, 'package.json'), '{"type": "module"}');
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  for (const [name, code] of examples) {
    // A block without an import would be a script, and share its names with the others.
    await writeFile(join(project, `${name}.ts`), `${code}\nexport {};\n`);
  }
  const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
  const tsc = join(dirname(typescript), 'bin', 'tsc');
  try {
    return await inFolder(project, process.execPath, [tsc, '--pretty', 'false']);
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
};

describe('examples', () => {
  test('every example of a docstring or a document compiles as it stands', async () => {
    const documents = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md'));
    const names = (Object.keys(ENTRIES) as Entry[]).flatMap(publicNames);
    const sources = [...new Set(names.map(({ file }) => file))];
    const examples = new Map<string, string>();
    const add = (file: string, blocks: readonly string[]): void => {
      const name = file.replaceAll(/[^\w]+/g, '-');
      for (const [index, code] of blocks.entries()) examples.set(`${name}-${index + 1}`, code);
    };
    for (const file of sources) add(file, examplesOf(await readFile(join(root, file), 'utf8')));
    for (const file of ['README.md', ...documents.map((name) => join('docs', name))]) {
      add(file, blocksOf(await readFile(join(root, file), 'utf8')));
    }
    expect(examples.size).toBeGreaterThan(names.length);
    expect(await typeCheck(examples)).toBe('');
  });

  test('an example that does not compile is found', async () => {
    const wrong = "import { createPipeline } from 'mcp-resilience';\ncreatePipeline(42);";
    expect(await typeCheck(new Map([['wrong', wrong]]))).toContain("'number' is not assignable");
  });
});
