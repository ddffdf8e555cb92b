/**
 * @module
 * The policies that a block of settings names, for an upstream or for one of its tools: checked
 * one by one and together.
 */
import { createPipeline } from '../resilience/pipeline.ts';
import { type PolicySettings, policyRules } from '../resilience/policy.ts';
import { type PresetName, presets } from '../resilience/presets.ts';
import { check } from '../resilience/settings.ts';
import { unknownSetting, withoutUnknown } from './config-suggest.ts';

/** A block of settings as it stands in the file. */
export type Settings = Readonly<Record<string, unknown>>;

/** Adds the settings that nobody knows to `problems`. */
export const refuseUnknown = (
  settings: Settings,
  known: readonly string[],
  path: string,
  problems: string[],
): void => {
  for (const name of Object.keys(settings)) {
    if (!known.includes(name)) problems.push(unknownSetting(path, name, known));
  }
};

/** The policies of the preset that a block names. */
export const readPreset = (value: unknown, path: string, problems: string[]): PolicySettings => {
  if (value === undefined) return {};
  if (typeof value === 'string' && Object.hasOwn(presets, value)) {
    return presets[value as PresetName];
  }
  const names = Object.keys(presets).map((name) => `"${name}"`);
  problems.push(`${path}.preset must be one of ${names.join(', ')}`);
  return {};
};

/** The policies that a block names; `true` in the place of the breaker means one with its defaults. */
export const ownPolicy = (settings: Settings, path: string, problems: string[]): PolicySettings => {
  const own: Record<string, unknown> = {};
  for (const name of Object.keys(policyRules)) {
    if (settings[name] !== undefined) own[name] = settings[name];
  }
  if (own.breaker === true) own.breaker = {};
  if (settings.idleTimeout !== undefined) {
    if (own.timeout !== undefined) {
      problems.push(`${path}.idleTimeout and ${path}.timeout are the same setting; give one`);
    }
    own.timeout = settings.idleTimeout;
  }
  const known = withoutUnknown(policyRules, own, path, problems);
  const found: string[] = [];
  check(policyRules, known, path, found, { partial: true });
  // Told under the name that it was given.
  const given = settings.timeout === undefined ? 'idleTimeout' : 'timeout';
  problems.push(
    ...found.map((problem) =>
      problem.startsWith(`${path}.timeout `)
        ? `${path}.${given} ${problem.slice(path.length + 9)}`
        : problem,
    ),
  );
  return found.length === 0 ? (known as PolicySettings) : {};
};

/** Settings that are right one by one but not together. */
export const checkTogether = (policy: PolicySettings, path: string, problems: string[]): void => {
  const found: string[] = [];
  check(policyRules, policy, path, found);
  const { timeout = 0, deadline = Number.POSITIVE_INFINITY } = policy;
  if (timeout > deadline) {
    // It would never be reached, as if it had not been set.
    found.push(
      `${path}: the idle timeout (${timeout} ms) must not be longer than the deadline (${deadline} ms): an attempt is part of the call; set both`,
    );
  }
  if (found.length === 0) {
    try {
      createPipeline('configuration', policy).destroy();
    } catch (error) {
      found.push(`${path}.${error instanceof Error ? error.message : String(error)}`);
    }
  }
  problems.push(...found);
};

/** A longer attempt asks for a longer call, unless how long the call may be was said as well. */
export const withRoom = (policy: PolicySettings, own: PolicySettings): PolicySettings => {
  const { timeout, deadline } = policy;
  if (own.deadline !== undefined || timeout === undefined || deadline === undefined) return policy;
  return { ...policy, deadline: Math.max(deadline, timeout) };
};
