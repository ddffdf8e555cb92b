/**
 * @module
 * The `resilience` block of an upstream: what holds for it, and for each of its tools. The
 * defaults never break a server that works without the gateway: they end what would never end,
 * and stop calling what does not answer; everything that could change an answer or refuse a call
 * of a server in good health has to be asked for.
 */
import {
  breakerRules,
  overridePolicy,
  type PolicySettings,
  policyRules,
} from '../resilience/policy.ts';
import { check, count, isObject, ms, type Rules, resolve } from '../resilience/settings.ts';
import {
  checkTogether,
  ownPolicy,
  readPreset,
  refuseUnknown,
  type Settings,
  withRoom,
} from './config-policy.ts';
import { withoutUnknown } from './config-suggest.ts';
import { readTools } from './config-tools.ts';
import type { UpstreamConfig } from './types.ts';

/**
 * What holds for an upstream that says nothing. Tools may take minutes, so that an attempt may
 * too, as long as it reports progress: it is given up after 60 s of silence, which is when most
 * clients give up by themselves, and after 5 minutes in any case. Retries are made only where a
 * tool's annotations allow it. 64 calls at a time with a thousand in line is more than one busy
 * client sends, and keeps a server that hangs from taking all memory. There is no rate limit
 * and no cache.
 */
export const gatewayPolicy: PolicySettings = {
  deadline: 300_000,
  timeout: 60_000,
  bulkhead: { limit: 64, queue: 1_000 },
  breaker: { threshold: 5, openDuration: 10_000, openBackoff: 2, maxOpenDuration: 60_000 },
  retry: { maxRetries: 2, baseDelay: 500, maxDelay: 30_000 },
};

const restartRules: Rules = { initialDelay: ms(1, 500), maxDelay: ms(1, 30_000) };

/** Settings of the block beside the policies, with their defaults. */
export const connectionRules: Rules = {
  /** From the start of a connection to the end of `initialize`: npx may have to download first. */
  connectTimeout: ms(1, 60_000),
  discoveryTimeout: ms(1, 20_000),
  shared: { kind: 'flag', fallback: false },
  restart: { kind: 'group', rules: restartRules },
  maxMessageBytes: count(1_024, 512 * 1024 * 1024, 64 * 1024 * 1024),
};

const toolGuardRule = count(2, 1_000);

/** Everything that a block may hold, for what is misspelt. */
export const resilienceSettings: readonly string[] = [
  'preset',
  ...Object.keys(policyRules),
  'idleTimeout',
  ...Object.keys(connectionRules),
  'toolBreakers',
  'toolGuard',
  'tools',
];

/** What the block decides of an upstream. */
export type ResilienceConfig = Omit<UpstreamConfig, 'name' | 'address' | 'secrets'>;

const readToolBreaker = (
  value: unknown,
  path: string,
  problems: string[],
): UpstreamConfig['toolBreaker'] => {
  if (value === undefined || value === false) return false;
  if (value === true) return {};
  const known = withoutUnknown(breakerRules, value, path, problems);
  const found: string[] = [];
  check(breakerRules, known, path, found);
  problems.push(...found);
  return found.length === 0 ? (known as UpstreamConfig['toolBreaker']) : false;
};

const readToolGuard = (value: unknown, path: string, problems: string[]): number | false => {
  if (value === undefined || value === false) return false;
  const group = path.slice(0, path.lastIndexOf('.'));
  check({ toolGuard: toolGuardRule }, { toolGuard: value }, group, problems);
  return value as number;
};

type Connection = Pick<
  UpstreamConfig,
  'connectTimeout' | 'discoveryTimeout' | 'shared' | 'restart' | 'maxMessageBytes'
>;

const readConnection = (block: Settings, path: string, problems: string[]): Connection => {
  const own = Object.fromEntries(
    Object.keys(connectionRules)
      .filter((name) => block[name] !== undefined)
      .map((name) => [name, block[name]]),
  );
  const found: string[] = [];
  const known = withoutUnknown(connectionRules, own, path, found);
  check(connectionRules, known, path, found);
  const group = isObject(known) && isObject(known.restart) ? known.restart : {};
  problems.push(...found);
  const usable = found.length === 0 && isObject(known) ? known : {};
  const connection = resolve(connectionRules, usable, path) as Connection;
  const restart = resolve(restartRules, found.length === 0 ? group : {}, `${path}.restart`);
  const { initialDelay, maxDelay } = restart as Connection['restart'];
  if (initialDelay > maxDelay) {
    problems.push(
      `${path}.restart.initialDelay (${initialDelay} ms) must not be longer than maxDelay (${maxDelay} ms)`,
    );
  }
  return { ...connection, restart: { initialDelay, maxDelay } };
};

/**
 * Reads the block; whatever is wrong is added to `problems`.
 *
 * @param timeout of the entry itself, in milliseconds: what clients give a server per request
 */
export const readResilience = (
  value: unknown,
  timeout: number | undefined,
  path: string,
  problems: string[],
): ResilienceConfig => {
  if (value !== undefined && !isObject(value)) {
    problems.push(`${path} must be an object of settings`);
  }
  const block = isObject(value) ? value : {};
  refuseUnknown(block, resilienceSettings, path, problems);
  const own = ownPolicy(block, path, problems);
  const base = overridePolicy(gatewayPolicy, readPreset(block.preset, path, problems));
  const merged = overridePolicy(base, { ...(timeout !== undefined && { timeout }), ...own });
  const policy = withRoom(merged, own);
  checkTogether(policy, path, problems);
  return {
    policy,
    tools: readTools(block.tools, policy, `${path}.tools`, problems),
    toolBreaker: readToolBreaker(block.toolBreakers, `${path}.toolBreakers`, problems),
    toolGuard: readToolGuard(block.toolGuard, `${path}.toolGuard`, problems),
    ...readConnection(block, path, problems),
  };
};
