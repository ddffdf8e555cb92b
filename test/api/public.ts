/**
 * @module
 * The public names as the sources declare them: what each entry of the package exports, from
 * which file, and what the docstring there says.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

/** What is imported by name, and the file that stands behind it. */
export const ENTRIES = {
  'mcp-resilience': 'src/index.ts',
  'mcp-resilience/chaos': 'src/chaos/index.ts',
} as const;

export type Entry = keyof typeof ENTRIES;

/** One exported name. */
export interface PublicName {
  readonly name: string;
  /** The file that declares it, from the root of the repository. */
  readonly file: string;
  readonly kind: 'class' | 'function' | 'constant' | 'type';
  /** Text of its docstring without the asterisks; empty when it has none. */
  readonly doc: string;
}

const cache = new Map<string, string>();
const textOf = (path: string): string => {
  const text = cache.get(path) ?? readFileSync(path, 'utf8');
  cache.set(path, text);
  return text;
};

/** `export { a, type B } from './file.ts'`, with the names and the file apart. */
const REEXPORT = /export (type )?\{([^}]*)\} from '([^']+)'/g;

/** Where a name comes from, and what it is called there. */
interface Source {
  readonly path: string;
  readonly name: string;
  /** Passed on as a type, which a class can be. */
  readonly type: boolean;
}

/** Names that a file passes on. */
const reexports = (path: string): Map<string, Source> => {
  const found = new Map<string, Source>();
  for (const [, all, names = '', from = ''] of textOf(path).matchAll(REEXPORT)) {
    for (const entry of names.split(',')) {
      const type = all !== undefined || entry.trim().startsWith('type ');
      const [name = '', alias = name] = entry
        .trim()
        .replace(/^type /, '')
        .split(' as ');
      if (name !== '') found.set(alias, { path: join(dirname(path), from), name, type });
    }
  }
  return found;
};

const DECLARATION = (name: string) =>
  new RegExp(`^export (?:abstract )?(class|const|function|interface|type) ${name}\\b.*`, 'm');

const kindOf = (keyword: string, head: string): PublicName['kind'] => {
  if (keyword === 'class' || keyword === 'function') return keyword;
  if (keyword !== 'const') return 'type';
  return /^export const \w+ = (?:async )?[(<]/.test(head) ? 'function' : 'constant';
};

const docBefore = (text: string, at: number): string => {
  const before = text.slice(0, at).trimEnd();
  if (!before.endsWith('*/')) return '';
  // At the start of a line: an example may hold the same characters.
  const start = [...before.matchAll(/^\/\*\*/gm)].at(-1)?.index ?? 0;
  return before
    .slice(start + 3, -2)
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, ''))
    .join('\n')
    .trim();
};

const find = (exported: string, { path, name, type }: Source): PublicName => {
  const declared = DECLARATION(name).exec(textOf(path));
  if (declared) {
    const [head, keyword = ''] = declared;
    return {
      name: exported,
      file: relative(root, path),
      kind: type ? 'type' : kindOf(keyword, head),
      doc: docBefore(textOf(path), declared.index),
    };
  }
  const next = reexports(path).get(name);
  if (next === undefined) throw new Error(`${path} does not declare ${name}`);
  return find(exported, { ...next, type: type || next.type });
};

/** Every name of an entry. */
export const publicNames = (entry: Entry): PublicName[] =>
  [...reexports(join(root, ENTRIES[entry]))].map(([name, source]) => find(name, source));
