/**
 * @module
 * Checks settings against a table of rules. One table per policy serves the check, the
 * defaults, the error texts and the documentation, so that they cannot drift apart.
 * (A schema library would be larger than all policies together; bundle size is a promise.)
 */

/** What one setting may be. `fallback` is its default; without one it is off until set. */
export type Rule =
  | {
      readonly kind: 'number';
      readonly unit: string;
      readonly min: number;
      readonly max: number;
      readonly integer: boolean;
      readonly fallback?: number;
      readonly required?: boolean;
      /** Settings that may be given in place of the number. */
      readonly instead?: Rules;
    }
  | { readonly kind: 'choice'; readonly choices: readonly string[]; readonly fallback: string }
  | { readonly kind: 'flag'; readonly fallback: boolean }
  | { readonly kind: 'group'; readonly rules: Rules };

/** Rules by the name of the setting. */
export type Rules = { readonly [name: string]: Rule };

/** Longest duration that can be set, in milliseconds. */
export const DAY = 86_400_000;

/** A duration in milliseconds, of at most one day. */
export const ms = (min: number, fallback?: number): Rule => number('ms', min, DAY, false, fallback);

/** A whole number. */
export const count = (min: number, max: number, fallback?: number): Rule =>
  number('', min, max, true, fallback);

/** A number that need not be whole. */
export const ratio = (min: number, max: number, fallback?: number): Rule =>
  number('', min, max, false, fallback);

/** Makes a number setting one that must be given. */
export const required = (rule: Rule): Rule => ({ ...rule, required: true }) as Rule;

/** Lets a number setting be given as a group of settings instead. */
export const orGroup = (rule: Rule, instead: Rules): Rule => ({ ...rule, instead }) as Rule;

const number = (
  unit: string,
  min: number,
  max: number,
  integer: boolean,
  fallback?: number,
): Rule => ({
  kind: 'number',
  unit,
  min,
  max,
  integer,
  ...(fallback === undefined ? {} : { fallback }),
});

/**
 * Settings that break their rules: `problems` names every one of them, each with its path, what
 * is allowed and what was given. Thrown where policies are made, never by a call.
 *
 * @example
 * ```ts
 * import { createPipeline, SettingsError } from 'mcp-resilience';
 * try {
 *   createPipeline('search', { timeout: -1 });
 * } catch (error) {
 *   if (error instanceof SettingsError) console.error(error.problems.join('\n'));
 * }
 * ```
 */
export class SettingsError extends RangeError {
  override readonly name = 'SettingsError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

/** What a rule allows, in words: part of errors and documentation. */
export const allowed = (rule: Rule): string => {
  if (rule.kind === 'number') {
    const what = rule.integer ? 'a whole number' : 'a number';
    const group = rule.instead ? `, or an object of ${Object.keys(rule.instead).join(', ')}` : '';
    return `${what} from ${rule.min} to ${rule.max}${rule.unit ? ` (${rule.unit})` : ''}${group}`;
  }
  if (rule.kind === 'choice') return `one of ${rule.choices.map((c) => `"${c}"`).join(', ')}`;
  return rule.kind === 'flag' ? 'true or false' : 'an object, or false to switch it off';
};

const fits = (rule: Rule, value: unknown): boolean => {
  if (rule.kind === 'number') {
    return (
      typeof value === 'number' &&
      value >= rule.min &&
      value <= rule.max &&
      (!rule.integer || Number.isInteger(value))
    );
  }
  if (rule.kind === 'choice') return rule.choices.includes(value as string);
  return typeof value === 'boolean';
};

const show = (value: unknown): string =>
  typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : typeof value === 'string'
      ? `"${value.slice(0, 40)}"`
      : value === null
        ? 'null'
        : `a value of type ${Array.isArray(value) ? 'array' : typeof value}`;

/** True for what settings are written as: an object that is no list. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Collects into `problems` what is wrong with `value`; `path` names it in the texts. With
 * `partial`, what is required may be absent: it stands in the settings underneath.
 */
export const check = (
  rules: Rules,
  value: unknown,
  path: string,
  problems: string[],
  options: { readonly partial?: boolean } = {},
): void => {
  if (!isObject(value)) {
    problems.push(`${path || 'settings'} must be an object, got ${show(value)}`);
    return;
  }
  const given = value;
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  for (const [name, setting] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) {
      problems.push(`${at(name)} is not a setting; known are ${Object.keys(rules).join(', ')}`);
    } else if (setting === undefined) {
      // As good as absent: what a caller gets who passes an option on.
    } else if (rule.kind === 'group') {
      if (setting !== false) check(rule.rules, setting, at(name), problems, options);
    } else if (rule.kind === 'number' && rule.instead && isObject(setting)) {
      check(rule.instead, setting, at(name), problems, options);
    } else if (!fits(rule, setting)) {
      problems.push(`${at(name)} must be ${allowed(rule)}, got ${show(setting)}`);
    }
  }
  if (options.partial) return;
  for (const [name, rule] of Object.entries(rules)) {
    if (rule.kind === 'number' && rule.required && given[name] === undefined) {
      problems.push(`${at(name)} must be given: ${allowed(rule)}`);
    }
  }
};

/**
 * Checks `settings` and fills in the defaults.
 *
 * @throws SettingsError with every problem found
 */
export const resolve = <Settings extends object>(
  rules: Rules,
  settings: Settings,
  path: string,
): Settings => {
  const problems: string[] = [];
  check(rules, settings, path, problems);
  if (problems.length > 0) throw new SettingsError(problems);
  const resolved: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const value = (settings as Record<string, unknown>)[name];
    if (value !== undefined) resolved[name] = value;
    else if ('fallback' in rule) resolved[name] = rule.fallback;
  }
  return resolved as Settings;
};
