/**
 * @module
 * What is wrong with settings that a zod schema describes, told as it is told for policies: with
 * the path and what is allowed. One schema serves the check, the errors and the documentation.
 */
import { z } from 'zod';
import { isObject } from '../resilience/settings.ts';

/** As much of JSON Schema as settings use. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly format?: string;
  readonly description?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
}

/** One setting, for errors and for the documentation. */
export interface DescribedSetting {
  /** `rateLimit.burst` */
  readonly name: string;
  /** What it may be, in words. */
  readonly allowed: string;
  readonly fallback: unknown;
}

type Path = readonly PropertyKey[];

const schemaOf = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: 'input' }) as Schema;

const numberIn = (what: string, { minimum, maximum }: Schema): string =>
  maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER
    ? `${what} of at least ${minimum}`
    : `${what} from ${minimum} to ${maximum}`;

const allowed = (rule: Schema): string => {
  if (rule.description !== undefined) return rule.description;
  if (rule.enum !== undefined) return `one of ${rule.enum.map((item) => `"${item}"`).join(', ')}`;
  switch (rule.type) {
    case 'boolean':
      return rule.const === undefined ? 'true or false' : String(rule.const);
    case 'integer':
      return numberIn('a whole number', rule);
    case 'number':
      return numberIn('a number', rule);
    case 'array':
      return `a list, each ${allowed(rule.items ?? {})}`;
    case 'object':
      return 'an object';
    case 'string':
      return rule.format === 'uri' ? 'a URL' : 'a text';
    default:
      return (rule.anyOf ?? []).map(allowed).join(', or ');
  }
};

/** The object that a rule is, or may be. */
const objectOf = (rule: Schema): Schema | undefined =>
  rule.properties ? rule : rule.anyOf?.find(({ properties }) => properties);

const settingsOf = (rule: Schema, prefix: string): DescribedSetting[] =>
  Object.entries(objectOf(rule)?.properties ?? {}).flatMap(([key, inner]) => {
    const name = `${prefix}${key}`;
    const setting = { name, allowed: allowed(inner), fallback: inner.default };
    const under = inner.items?.properties ? inner.items : inner;
    return [setting, ...settingsOf(under, `${name}.`)];
  });

/** Every setting of a schema, those of groups behind the group. */
export const describeSettings = (schema: z.ZodType): readonly DescribedSetting[] =>
  settingsOf(schemaOf(schema), '');

const ruleAt = (schema: Schema, path: Path): Schema | undefined => {
  let rule: Schema | undefined = schema;
  for (const key of path) {
    rule =
      typeof key === 'number' ? rule?.items : rule && objectOf(rule)?.properties?.[String(key)];
  }
  return rule;
};

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : inner),
    value,
  );

/** Explains the issues of one value under one schema. */
const explainer = (schema: Schema, root: unknown, name: string) => {
  const nameOf = (path: Path): string => [name, ...path.map(String)].join('.');
  const explain = (issue: z.core.$ZodIssue, under: Path): string[] => {
    const path = [...under, ...issue.path];
    const value = valueAt(root, path);
    if (issue.code === 'custom') return [`${nameOf(path)} ${issue.message}`];
    if (issue.code === 'unrecognized_keys') {
      const known = Object.keys(objectOf(ruleAt(schema, path) ?? {})?.properties ?? {});
      return issue.keys.map(
        (key) => `${nameOf([...path, key])} is not a setting; known are ${known.join(', ')}`,
      );
    }
    if (issue.code === 'invalid_union' && isObject(value)) {
      // Of the alternatives, the one that the value is meant for.
      const meant = issue.errors.find((errors) => errors.some((error) => error.path.length > 0));
      const inner = meant ?? issue.errors.at(-1) ?? [];
      return inner.flatMap((error) => explain(error, path));
    }
    const rule = allowed(ruleAt(schema, path) ?? {});
    return [
      value === undefined
        ? `${nameOf(path)} must be given: ${rule}`
        : `${nameOf(path)} must be ${rule}, got ${JSON.stringify(value).slice(0, 40)}`,
    ];
  };
  return explain;
};

/**
 * Checks `value` against `schema` and adds what is wrong to `problems`; true when nothing is.
 *
 * @param name that the value has in the file: `http`
 */
export const checkSettings = (
  schema: z.ZodType,
  value: unknown,
  name: string,
  problems: string[],
): boolean => {
  const parsed = schema.safeParse(value);
  if (parsed.success) return true;
  const explain = explainer(schemaOf(schema), value, name);
  problems.push(...parsed.error.issues.flatMap((issue) => explain(issue, [])));
  return false;
};
