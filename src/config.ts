/**
 * @module
 * The configuration file of `serve`: policies of each tool, and settings of the HTTP door.
 * JSON with comments and trailing commas. Whatever is wrong is refused at start, all of it at
 * once, each with its path and what is allowed.
 */
import { type HttpConfig, readHttp } from './config-http.ts';
import { ConfigError, oddKeys, parseObject, readText } from './gateway/config-text.ts';
import { createPipeline } from './resilience/pipeline.ts';
import { overridePolicy, type PolicySettings, policyRules } from './resilience/policy.ts';
import { type PresetName, presets } from './resilience/presets.ts';
import { check, isObject } from './resilience/settings.ts';
import { type PolicyOverrides, type ToolPolicy, toolPolicies } from './tools/policies.ts';

/** What `serve` can be told in a file. */
export interface Config {
  /** Settings over the defaults of each tool, `preset` included: it lies between the two. */
  readonly tools: PolicyOverrides;
  readonly http: HttpConfig;
}

export { ConfigError };

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

/**
 * Reads a configuration.
 *
 * @param name of the file, for errors
 * @throws ConfigError with every problem found
 */
export const parseConfig = (text: string, name: string): Config => {
  const value = parseObject(text, name);
  const problems: string[] = [];
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

/**
 * Reads the configuration file, or gives the empty one where no file is named.
 *
 * @throws ConfigError when the file cannot be read or used
 */
export const loadConfig = (file: string | undefined): Config => {
  if (file === undefined) return { tools: {}, http: {} };
  return parseConfig(readText(file), file);
};
