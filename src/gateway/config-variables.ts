/**
 * @module
 * Variables in the texts of a configuration: `${NAME}`, `${NAME:-default}` and, as VS Code
 * writes it, `${env:NAME}`. What clients do with one that is not set (they pass `${NAME}` on as
 * it stands) ends in a server that gets a wrong token and says so to nobody: here it is an error.
 */
import { isObject } from '../resilience/settings.ts';

/** A variable that a configuration names. */
export interface VariableUse {
  /** Where: `mcpServers.github.env.TOKEN`. */
  readonly path: string;
  readonly name: string;
  /** Whether its value is set in the environment, or the default in the text holds. */
  readonly from: 'environment' | 'default';
}

/** What expanding needs and collects. */
export interface Variables {
  /** Undefined leaves every text as it is. */
  readonly env: Readonly<Record<string, string | undefined>> | undefined;
  readonly problems: string[];
  readonly uses: VariableUse[];
  /** Values that were put in. */
  readonly values: Set<string>;
}

/** `$${` stands for `${`; else from `${` to the next brace, if there is one. */
const PLACE = /\$\$\{|\$\{([^}]*)(\}?)/g;
const VARIABLE = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;
const FORMS = `write $\{NAME}, $\{NAME:-default} or $\{env:NAME}, or $$\{ for the text itself`;

/** `text` with the values of its variables; what cannot be filled in is added to the problems. */
const expandText = (text: string, path: string, variables: Variables): string => {
  const { env, problems, uses, values } = variables;
  if (env === undefined) return text;
  return text.replace(PLACE, (place, inner: string | undefined, close: string | undefined) => {
    if (inner === undefined) return '${';
    const [, name, fallback] = VARIABLE.exec(inner) ?? [];
    if (name === undefined || close === '') {
      // What stands behind a colon may be a default, and that a secret.
      const shown = /^[^:]{0,40}/.exec(inner)?.[0] ?? '';
      const odd = close === '' ? 'is not closed' : 'is no variable of the environment';
      problems.push(`${path}: "$\{${shown}…" ${odd}: ${FORMS}`);
      return place;
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    // As in a shell, an empty value counts as none where there is a default.
    const filled = value === '' && fallback !== undefined ? fallback : (value ?? fallback);
    if (filled === undefined) {
      problems.push(
        `${path}: the variable ${name} is not set; set it, or write $\{${name}:-default}`,
      );
      return place;
    }
    uses.push({ path, name, from: filled === value ? 'environment' : 'default' });
    values.add(filled);
    return filled;
  });
};

/** A copy of any JSON value with the variables of every text in it filled in. */
export const expand = (value: unknown, path: string, variables: Variables): unknown => {
  if (typeof value === 'string') return expandText(value, path, variables);
  if (Array.isArray(value)) {
    return value.map((item, index) => expand(item, `${path}.${index}`, variables));
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, expand(inner, `${path}.${key}`, variables)]),
  );
};
