import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { requirements } from './requirements.ts';

const testRoot = import.meta.dirname;
const files = readdirSync(testRoot, { recursive: true, encoding: 'utf8' })
  // Those that need the real programs, or the machine for themselves, have commands of their own.
  .filter((file) => /\.(test|stack|drill)\.ts$/.test(file))
  .map((file) => readFileSync(join(testRoot, file), 'utf8'));

describe('requirements', () => {
  const proved = new Set(
    files
      .flatMap((text) => [...text.matchAll(/\bverifies\(\s*(\[[^\]]*\]|'[^']+')/g)])
      .flatMap(([, ids = '']) => [...ids.matchAll(/'([^']+)'/g)].map(([, id]) => id)),
  );

  test('every listed promise is proved by a test', () => {
    const unproved = Object.keys(requirements).filter((id) => !proved.has(id));
    expect(unproved).toEqual([]);
  });

  test('no area lists an id that another one lists too', () => {
    const areas = readdirSync(join(testRoot, 'requirements')).map((file) =>
      readFileSync(join(testRoot, 'requirements', file), 'utf8'),
    );
    const ids = areas.flatMap((text) =>
      [...text.matchAll(/^ {2}'?([\w.-]+)'?: \{/gm)].map((match) => match[1]),
    );
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test('no test is skipped, focused or left to do', () => {
    const marked = files.filter((text) =>
      /\b(it|test|describe)\.(skip|only|todo|fails)\b\(/.test(text),
    );
    expect(marked).toEqual([]);
  });
});
