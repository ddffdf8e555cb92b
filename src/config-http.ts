/**
 * @module
 * The part of the configuration file that is for the HTTP door: checked by the schema of the
 * door, and what is wrong told as for policies, with the path and what is allowed.
 */
import { z } from 'zod';
import { type HttpSettings, httpSettingsSchema } from './mcp/transports/http-settings.ts';
import { isObject } from './resilience/settings.ts';

/** As much of JSON Schema as the settings of the door use. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
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
export interface HttpSetting {
  /** `rateLimit.burst` */
  readonly name: string;
  /** What it may be, in words. */
  readonly allowed: string;
  readonly fallback: unknown;
}

const schema = z.toJSONSchema(httpSettingsSchema, { io: 'input' }) as Schema;

const numberIn = (what: string, { minimum, maximum }: Schema): string =>
  maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER
    ? `${what} of at least ${minimum}`
    : `${what} from ${minimum} to ${maximum}`;

const allowed = (rule: Schema): string => {
  if (rule.description !== undefined) return rule.description;
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

const settingsOf = (rule: Schema, prefix = ''): HttpSetting[] =>
  Object.entries(objectOf(rule)?.properties ?? {}).flatMap(([key, inner]) => {
    const name = `${prefix}${key}`;
    const setting = { name, allowed: allowed(inner), fallback: inner.default };
    return [setting, ...settingsOf(inner, `${name}.`)];
  });

/** Every setting of the door, those of groups behind the group. */
export const httpSettings: readonly HttpSetting[] = settingsOf(schema);

const ruleAt = (path: readonly PropertyKey[]): Schema | undefined => {
  let rule: Schema | undefined = schema;
  for (const key of path) {
    rule =
      typeof key === 'number' ? rule?.items : rule && objectOf(rule)?.properties?.[String(key)];
  }
  return rule;
};

const nameOf = (path: readonly PropertyKey[]): string => ['http', ...path.map(String)].join('.');

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : inner),
    value,
  );

const explain = (
  issue: z.core.$ZodIssue,
  under: readonly PropertyKey[],
  root: unknown,
): string[] => {
  const path = [...under, ...issue.path];
  const value = valueAt(root, path);
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys(objectOf(ruleAt(path) ?? {})?.properties ?? {});
    return issue.keys.map(
      (key) => `${nameOf([...path, key])} is not a setting; known are ${known.join(', ')}`,
    );
  }
  if (issue.code === 'invalid_union' && isObject(value)) {
    // Of the alternatives, the one that the value is meant for.
    const meant = issue.errors.find((errors) => errors.some((error) => error.path.length > 0));
    const inner = meant ?? issue.errors.at(-1) ?? [];
    return inner.flatMap((error) => explain(error, path, root));
  }
  const rule = allowed(ruleAt(path) ?? {});
  return [
    value === undefined
      ? `${nameOf(path)} must be given: ${rule}`
      : `${nameOf(path)} must be ${rule}, got ${JSON.stringify(value).slice(0, 40)}`,
  ];
};

/** Reads the settings of the door; what is wrong is added to `problems`. */
export const readHttp = (value: unknown, problems: string[]): HttpSettings => {
  if (value === undefined) return {};
  const parsed = httpSettingsSchema.safeParse(value);
  if (parsed.success) return value as HttpSettings;
  problems.push(...parsed.error.issues.flatMap((issue) => explain(issue, [], value)));
  return {};
};
