/**
 * @module
 * The configuration file of `serve`: policies of each tool, and settings of the HTTP door.
 * JSON with comments and trailing commas. Whatever is wrong is refused at start, all of it at
 * once, each with its path and what is allowed.
 */
import { readFileSync } from 'node:fs';
import { type ParseError, parse, printParseErrorCode, visit } from 'jsonc-parser';
import { readHttp } from './config-http.ts';
import type { HttpSettings } from './mcp/transports/http-settings.ts';
import { createPipeline } from './resilience/pipeline.ts';
import { overridePolicy, type PolicySettings, policyRules } from './resilience/policy.ts';
import { type PresetName, presets } from './resilience/presets.ts';
import { check, isObject } from './resilience/settings.ts';
import { type PolicyOverrides, type ToolPolicy, toolPolicies } from './tools/policies.ts';

/** What `serve` can be told in a file. */
export interface Config {
  /** Settings over the defaults of each tool, `preset` included: it lies between the two. */
  readonly tools: PolicyOverrides;
  readonly http: HttpSettings;
}

/** A configuration that cannot be used; the message names where it stands and every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(where: string, problems: readonly string[]) {
    super([`${where} cannot be used:`, ...problems.map((problem) => `  - ${problem}`)].join('\n'));
  }
}

const SYNTAX = { allowTrailingComma: true };

/** Line and column of an offset, counted from 1. */
const positionOf = (text: string, offset: number): string => {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
};

/** Settings that are right one by one but not together are refused by the policies themselves. */
const misfits = (policy: PolicySettings, path: string): string[] => {
  try {
    createPipeline('configuration', policy).destroy();
    return [];
  } catch (error) {
    return [`${path}.${error instanceof Error ? error.message : String(error)}`];
  }
};

const readTool = (
  { tool, policy }: ToolPolicy,
  settings: Record<string, unknown>,
  problems: string[],
): PolicySettings => {
  const path = `tools.${tool}`;
  const { preset = undefined, ...own } = settings;
  const isPreset = typeof preset === 'string' && Object.hasOwn(presets, preset);
  if (preset !== undefined && !isPreset) {
    const names = Object.keys(presets).map((name) => `"${name}"`);
    problems.push(`${path}.preset must be one of ${names.join(', ')}`);
  }
  const base = isPreset ? presets[preset as PresetName] : {};
  const override = overridePolicy(base, own as PolicySettings);
  const merged = overridePolicy(policy, override);
  const found: string[] = [];
  check(policyRules, own, path, found, { partial: true });
  // What a group needs may stand in the defaults, but has to stand somewhere.
  check(policyRules, merged, path, found);
  const { timeout = 0, deadline = Number.POSITIVE_INFINITY } = merged;
  if (found.length === 0 && timeout > deadline) {
    // It would never be reached, as if it had not been set.
    found.push(
      `${path}.timeout (${timeout} ms) must not be longer than ${path}.deadline (${deadline} ms): ` +
        'an attempt is part of the call; set both',
    );
  }
  if (found.length === 0) found.push(...misfits(merged, path));
  problems.push(...new Set(found));
  return override;
};

const readTools = (value: unknown, problems: string[]): PolicyOverrides => {
  if (value === undefined) return {};
  if (!isObject(value)) {
    problems.push('tools must be an object of tool names');
    return {};
  }
  const known = toolPolicies();
  const tools: Record<string, PolicySettings> = {};
  for (const [tool, settings] of Object.entries(value)) {
    const entry = known.find((candidate) => candidate.tool === tool);
    if (entry === undefined) {
      const names = known.map((candidate) => candidate.tool).join(', ');
      problems.push(`tools.${tool} is no tool with policies; there are ${names}`);
    } else if (isObject(settings)) {
      tools[tool] = readTool(entry, settings, problems);
    } else {
      problems.push(`tools.${tool} must be an object of settings`);
    }
  }
  return tools;
};

/** `CloseBraceExpected` as people say it. */
const inWords = (code: string): string =>
  code.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim();

/** Keys that are given twice, and those that would be none: they set the prototype. */
const oddKeys = (text: string): string[] => {
  const seen = new Set<string>();
  const problems: string[] = [];
  visit(
    text,
    {
      onObjectProperty: (property, offset, _length, _line, _column, pathOf) => {
        const path = [...pathOf(), property].join('.');
        if (property === '__proto__') problems.push(`${path} is not known`);
        if (seen.has(path)) problems.push(`${path} is given again at ${positionOf(text, offset)}`);
        seen.add(path);
      },
    },
    SYNTAX,
  );
  return problems;
};

/**
 * Reads a configuration.
 *
 * @param name of the file, for errors
 * @throws ConfigError with every problem found
 */
export const parseConfig = (text: string, name: string): Config => {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, SYNTAX);
  const problems = errors.map(
    ({ error, offset }) => `${inWords(printParseErrorCode(error))} at ${positionOf(text, offset)}`,
  );
  if (problems.length > 0) throw new ConfigError(name, problems);
  if (!isObject(value)) throw new ConfigError(name, ['it must be a JSON object']);
  for (const key of Object.keys(value)) {
    if (key !== 'tools' && key !== 'http' && key !== '$schema') {
      problems.push(`${key} is not known; known are tools, http`);
    }
  }
  problems.push(...oddKeys(text));
  const config = { tools: readTools(value.tools, problems), http: readHttp(value.http, problems) };
  if (problems.length > 0) throw new ConfigError(name, problems);
  return config;
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'it may not be read',
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
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new ConfigError(file, [REASONS[code] ?? message]);
  }
  // Some editors put a byte order mark in front.
  return parseConfig(text.replace(/^\uFEFF/, ''), file);
};
