/**
 * @module
 * The identity of a call: what must be equal for its answer to be the same.
 */
import { hash } from 'node:crypto';

/**
 * What a cached answer depends on.
 *
 * @example
 * ```ts
 * import { type CacheKeyParts, cacheKey } from 'mcp-resilience';
 * const invoice: CacheKeyParts = { dependency: 'billing', operation: 'invoice', args: { id: 7 } };
 * cacheKey(invoice) === cacheKey({ ...invoice, principal: 'tenant-1' }); // false
 * ```
 */
export interface CacheKeyParts {
  /** The upstream: answers never cross from one to another. */
  readonly dependency: string;
  /** The tool or method. */
  readonly operation: string;
  /** Its arguments: plain data. */
  readonly args: unknown;
  /** Whose answer it is. Default: it is the same for everybody. */
  readonly principal?: string | undefined;
}

/** Keys beyond this many characters are hashed. */
const LONGEST = 256;
/** Nesting beyond this is refused rather than left to overflow the stack. */
const DEEPEST = 200;

/**
 * Makes the key of a call. The order of object keys does not matter; everything else does:
 * `1`, `"1"`, `1n`, `null`, `undefined`, a missing key, `NaN`, `-0`, a date and its text are
 * all different. Long keys are replaced by their SHA-256.
 *
 * Objects without a prototype and plain ones are the same; objects of a class count as their
 * class name and what their `toJSON` gives; symbol keys are not seen.
 *
 * @throws TypeError for what has no identity as data: cycles, functions, symbols, objects of a
 * class without `toJSON` (Map, Set), more than 200 levels of nesting
 *
 * @example
 * ```ts
 * import { cacheKey } from 'mcp-resilience';
 * const parts = { dependency: 'weather', operation: 'today', principal: 'tenant-1' };
 * cacheKey({ ...parts, args: { city: 'Oslo', days: 2 } });
 * // the same: cacheKey({ ...parts, args: { days: 2, city: 'Oslo' } })
 * ```
 */
export const cacheKey = ({ dependency, operation, args, principal }: CacheKeyParts): string => {
  const key = canonical([dependency, operation, principal, args], []);
  // A key in clear begins with a bracket, so no hash can be mistaken for one.
  return key.length > LONGEST ? `sha256:${hash('sha256', key, 'base64url')}` : key;
};

/** One text for each value, and one value for each text. `path` holds the objects around it. */
const canonical = (value: unknown, path: object[]): string => {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'bigint':
      return `${value}n`;
    case 'object':
      return value === null ? 'null' : canonicalObject(value, path);
    default:
      throw new TypeError(
        `cacheKey: args contain a ${typeof value}, which has no value to compare`,
      );
  }
};

const canonicalObject = (value: object, path: object[]): string => {
  if (path.includes(value)) throw new TypeError('cacheKey: args contain themselves (a cycle)');
  if (path.length > DEEPEST) {
    throw new TypeError(`cacheKey: args are nested deeper than ${DEEPEST} levels`);
  }
  path.push(value);
  const text = Array.isArray(value)
    ? canonicalArray(value, path)
    : isPlain(value)
      ? canonicalRecord(value, path)
      : canonicalInstance(value, path);
  path.pop();
  return text;
};

const canonicalArray = (array: readonly unknown[], path: object[]): string => {
  const items: string[] = [];
  for (let index = 0; index < array.length; index += 1) {
    items.push(index in array ? canonical(array[index], path) : '');
  }
  // The trailing comma tells a hole from nothing at all: `[,]` and `[]`.
  return `[${items.map((item) => `${item},`).join('')}]`;
};

const canonicalRecord = (record: Readonly<Record<string, unknown>>, path: object[]): string =>
  `{${Object.keys(record)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(record[key], path)}`)
    .join(',')}}`;

const canonicalInstance = (value: object, path: object[]): string => {
  const { name = '' } = value.constructor ?? {};
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return `${JSON.stringify(name)}(${canonical(value.toJSON(), path)})`;
  }
  throw new TypeError(
    `cacheKey: args contain a ${name || 'class instance'}; pass plain data, or give it a toJSON`,
  );
};

const isPlain = (value: object): value is Record<string, unknown> => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};
