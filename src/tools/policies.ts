/**
 * @module
 * Which tool calls what, under which policies: the defaults, what was set over them, and what
 * holds in the end.
 */
import { overridePolicy, type PolicySettings, policyRules } from '../resilience/policy.ts';
import { check, isObject } from '../resilience/settings.ts';
import { spelledOut } from '../resilience/spelled-out.ts';
import { searchPolicy } from './search.ts';
import { weatherPolicy } from './weather.ts';

/** The policies of one tool. */
export interface ToolPolicy {
  /** Name of the tool. */
  readonly tool: string;
  /** Name of the pipeline, which is that of the dependency on every signal. */
  readonly dependency: string;
  readonly policy: PolicySettings;
}

/** Settings to lay over the defaults, by the name of the tool. */
export type PolicyOverrides = Readonly<Record<string, PolicySettings>>;

const DEFAULTS: readonly ToolPolicy[] = [
  { tool: 'get_weather', dependency: 'weather-api', policy: weatherPolicy },
  { tool: 'search', dependency: 'search-api', policy: searchPolicy },
];

/**
 * The policies to make pipelines from: the defaults of each tool with `overrides` over them.
 *
 * @throws Error for the name of a tool that has no policies, with those that have, and for
 * settings that are wrong
 */
export const toolPolicies = (overrides: PolicyOverrides = {}): readonly ToolPolicy[] => {
  const names = DEFAULTS.map(({ tool }) => tool);
  for (const name of Object.keys(overrides)) {
    if (!names.includes(name)) {
      throw new Error(`no tool with policies is called "${name}": there are ${names.join(', ')}`);
    }
  }
  return DEFAULTS.map(({ tool, dependency, policy }) => {
    const override = Object.hasOwn(overrides, tool) ? overrides[tool] : undefined;
    if (override === undefined) return { tool, dependency, policy };
    const problems: string[] = [];
    // Overrides may come out of a file: whether they are an object is part of the check.
    const merged = isObject(override) ? overridePolicy(policy, override) : override;
    check(policyRules, merged, '', problems);
    if (problems.length > 0) throw new Error(`policies of "${tool}": ${problems.join('; ')}`);
    return { tool, dependency, policy: merged };
  });
};

/**
 * What holds for each tool with `overrides` laid over its defaults, every setting spelt out:
 * for people to read.
 *
 * @throws Error as `toolPolicies` does
 *
 * @example
 * ```ts
 * for (const { tool, policy } of describePolicies({ search: { timeout: 3_000 } }))
 *   console.error(tool, policy);
 * ```
 */
export const describePolicies = (overrides: PolicyOverrides = {}): readonly ToolPolicy[] =>
  toolPolicies(overrides).map((entry) => ({ ...entry, policy: spelledOut(entry.policy) }));
