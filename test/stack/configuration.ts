/**
 * @module
 * The configuration files of the stack, moved to other hosts, ports and paths, and nothing else:
 * each change names a place in the file that must be there.
 */
import { isDeepStrictEqual } from 'node:util';
import { isScalar, parse, parseDocument } from 'yaml';

/** New values, by their path in the file: `service.telemetry.metrics.readers.0.port`. */
export type Changes = Readonly<Record<string, string | number>>;

/** One value that differs between two files. */
interface Difference {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

const step = (key: string): string | number => (/^\d+$/.test(key) ? Number(key) : key);

/**
 * @throws Error naming the path that the file does not have
 */
export const relocate = (text: string, changes: Changes): string => {
  const document = parseDocument(text);
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split('.').map(step);
    const node = document.getIn(keys, true);
    if (!isScalar(node)) throw new Error(`there is no value to change at ${path}`);
    node.value = value;
  }
  return document.toString({ lineWidth: 0 });
};

const compare = (path: string, before: unknown, after: unknown): Difference[] => {
  if (isDeepStrictEqual(before, after)) return [];
  const isBranch = (value: unknown): value is object => typeof value === 'object' && value !== null;
  if (!isBranch(before) || !isBranch(after)) return [{ path, before, after }];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) =>
    compare(
      path === '' ? key : `${path}.${key}`,
      (before as Record<string, unknown>)[key],
      (after as Record<string, unknown>)[key],
    ),
  );
};

/** Every value in which two YAML texts differ. */
export const differences = (before: string, after: string): readonly Difference[] =>
  compare('', parse(before, { merge: true }), parse(after, { merge: true }));
