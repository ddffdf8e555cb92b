/**
 * @module
 * What is set for single tools of an upstream, by the upstream's own names for them.
 */
import { overridePolicy, type PolicySettings, policyRules } from '../resilience/policy.ts';
import { isObject } from '../resilience/settings.ts';
import {
  checkTogether,
  ownPolicy,
  readPreset,
  refuseUnknown,
  type Settings,
} from './config-policy.ts';
import type { ToolRule } from './types.ts';

/** What a tool may have set for it. */
const toolSettings: readonly string[] = [
  'preset',
  ...Object.keys(policyRules),
  'idleTimeout',
  'idempotent',
  'readOnly',
];

const readFlag = (
  settings: Settings,
  name: 'idempotent' | 'readOnly',
  path: string,
  problems: string[],
): Partial<ToolRule> => {
  const value = settings[name];
  if (value === undefined) return {};
  if (typeof value !== 'boolean') problems.push(`${path}.${name} must be true or false`);
  return { [name]: value === true };
};

const readTool = (
  settings: unknown,
  upstream: PolicySettings,
  path: string,
  problems: string[],
): ToolRule => {
  if (!isObject(settings)) {
    problems.push(`${path} must be an object of settings`);
    return {};
  }
  refuseUnknown(settings, toolSettings, path, problems);
  const own = ownPolicy(settings, path, problems);
  const named = overridePolicy(readPreset(settings.preset, path, problems), own);
  // What the tool does not name is that of its upstream, and need not be said twice.
  const { timeout = upstream.timeout, deadline = upstream.deadline } = named;
  const widen =
    own.deadline === undefined &&
    timeout !== undefined &&
    deadline !== undefined &&
    timeout > deadline;
  const policy = widen ? { ...named, deadline: timeout } : named;
  const limits = { ...(timeout !== undefined && { timeout }), ...(deadline && { deadline }) };
  checkTogether({ ...limits, ...policy }, path, problems);
  return {
    ...(Object.keys(policy).length > 0 && { policy }),
    ...readFlag(settings, 'idempotent', path, problems),
    ...readFlag(settings, 'readOnly', path, problems),
  };
};

/** Reads `tools` of a block; whatever is wrong is added to `problems`. */
export const readTools = (
  value: unknown,
  upstream: PolicySettings,
  path: string,
  problems: string[],
): Record<string, ToolRule> => {
  if (value === undefined) return {};
  if (!isObject(value)) {
    problems.push(`${path} must be an object of tool names`);
    return {};
  }
  return Object.fromEntries(
    Object.entries(value).map(([tool, settings]) => [
      tool,
      readTool(settings, upstream, `${path}.${tool}`, problems),
    ]),
  );
};
