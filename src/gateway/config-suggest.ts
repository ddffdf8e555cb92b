/**
 * @module
 * "Did you mean": a misspelt setting that is ignored is worse than none, and one that is refused
 * should say which was meant.
 */
import { isObject, type Rules } from '../resilience/settings.ts';

/** Letters to insert, remove, replace or swap until one word is the other (Damerau, restricted). */
const distance = (a: string, b: string): number => {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
};

/** The known word that is nearest to one that is not; undefined when none is near. */
const nearest = (word: string, known: readonly string[]): string | undefined => {
  const wanted = word.toLowerCase().slice(0, 64);
  const [best] = known
    .map((name) => ({ name, far: distance(wanted, name.toLowerCase()) }))
    .toSorted((a, b) => a.far - b.far);
  return best && best.far <= Math.max(2, Math.floor(wanted.length / 3)) ? best.name : undefined;
};

/** That a setting does not exist, and which may be meant. */
export const unknownSetting = (group: string, name: string, known: readonly string[]): string => {
  const meant = nearest(name, known);
  const hint = meant === undefined ? `known are ${known.join(', ')}` : `did you mean "${meant}"?`;
  return `${group}.${name} is not a setting; ${hint}`;
};

/** A copy of settings without those that no rule knows; each of them is added to `problems`. */
export const withoutUnknown = (
  rules: Rules,
  value: unknown,
  path: string,
  problems: string[],
): unknown => {
  if (!isObject(value)) return value;
  const known: [string, unknown][] = [];
  for (const [name, inner] of Object.entries(value)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    const at = `${path}.${name}`;
    if (rule === undefined) {
      problems.push(unknownSetting(path, name, Object.keys(rules)));
      continue;
    }
    const under = rule.kind === 'group' ? rule.rules : rule.kind === 'number' && rule.instead;
    known.push([name, under ? withoutUnknown(under, inner, at, problems) : inner]);
  }
  return Object.fromEntries(known);
};
