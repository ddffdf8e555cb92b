/**
 * @module
 * The configuration file of `serve`: policies of each tool, and settings of the HTTP door.
 * JSON with comments and trailing commas. Whatever is wrong is refused at start, all of it at
 * once, each with its path and what is allowed.
 */
import { readFileSync } from 'node:fs';
import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import { type HttpSettings, httpSettingsSchema } from './mcp/transports/http-settings.ts';
import { overridePolicy, type PolicySettings, policyRules } from './resilience/policy.ts';
import { type PresetName, presets } from './resilience/presets.ts';
import { check } from './resilience/settings.ts';
import { describePolicies, type PolicyOverrides } from './tools/policies.ts';

/** What `serve` can be told in a file. */
export interface Config {
  /** Settings over the defaults of each tool; `preset` lays one of the presets underneath. */
  readonly tools: PolicyOverrides;
  readonly http: HttpSettings;
}

/** A configuration that cannot be used; the message names the file and every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(file: string, problems: readonly string[]) {
    super([`${file} cannot be used:`, ...problems.map((problem) => `  - ${problem}`)].join('\n'));
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Line and column of an offset, counted from 1. */
const positionOf = (text: string, offset: number): string => {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
};

const readTools = (value: unknown, problems: string[]): PolicyOverrides => {
  if (value === undefined) return {};
  if (!isObject(value)) {
    problems.push('tools must be an object of tool names');
    return {};
  }
  const known = describePolicies().map(({ tool }) => tool);
  const tools: Record<string, PolicySettings> = {};
  for (const [tool, settings] of Object.entries(value)) {
    const path = `tools.${tool}`;
    if (!known.includes(tool)) {
      problems.push(`${path} is no tool with policies; there are ${known.join(', ')}`);
      continue;
    }
    if (!isObject(settings)) {
      problems.push(`${path} must be an object of settings`);
      continue;
    }
    const { preset, ...rest } = settings;
    if (preset !== undefined && !Object.hasOwn(presets, String(preset))) {
      problems.push(`${path}.preset must be one of ${Object.keys(presets).join(', ')}`);
    }
    const before = problems.length;
    check(policyRules, rest, path, problems, PARTIAL);
    if (problems.length > before) continue;
    const base = presets[preset as PresetName] ?? {};
    tools[tool] = overridePolicy(base, rest as PolicySettings);
  }
  return tools;
};

const readHttp = (value: unknown, problems: string[]): HttpSettings => {
  const parsed = httpSettingsSchema.partial().safeParse(value ?? {});
  if (parsed.success) return (value ?? {}) as HttpSettings;
  for (const { path, message } of parsed.error.issues) {
    problems.push(`${['http', ...path].join('.')}: ${message}`);
  }
  return {};
};

/** A group over a default one need not repeat what is required of a whole one. */
const PARTIAL = { partial: true };

/**
 * Reads a configuration.
 *
 * @param name of the file, for errors
 * @throws ConfigError with every problem found
 */
export const parseConfig = (text: string, name: string): Config => {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  const problems = errors.map(
    ({ error, offset }) => `${printParseErrorCode(error)} at ${positionOf(text, offset)}`,
  );
  if (problems.length > 0) throw new ConfigError(name, problems);
  if (!isObject(value)) throw new ConfigError(name, ['it must be a JSON object']);
  for (const key of Object.keys(value)) {
    if (key !== 'tools' && key !== 'http' && key !== '$schema') {
      problems.push(`${key} is not known; known are tools, http`);
    }
  }
  const config = { tools: readTools(value.tools, problems), http: readHttp(value.http, problems) };
  if (problems.length > 0) throw new ConfigError(name, problems);
  return config;
};

/**
 * Reads the configuration file, or gives the empty one where no file is named.
 *
 * @throws ConfigError when the file cannot be read or used
 */
export const loadConfig = (file: string | undefined): Config => {
  if (file === undefined) return { tools: {}, http: {} };
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(file, [error instanceof Error ? error.message : String(error)]);
  }
  return parseConfig(text, file);
};
