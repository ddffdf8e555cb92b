/**
 * @module
 * What holds for each upstream, in words for the start: a setting that was not taken is seen at
 * once.
 */
import type { PolicySettings } from '../resilience/policy.ts';
import type { UpstreamConfig } from './types.ts';

const duration = (ms: number | undefined): string => {
  if (ms === undefined) return 'none';
  return ms % 1_000 === 0 ? `${ms / 1_000} s` : `${ms} ms`;
};

const breakerOf = ({ breaker }: PolicySettings): string => {
  if (!breaker) return 'none';
  const {
    window = 'consecutive',
    threshold = 5,
    failureRate = 0.5,
    openDuration = 30_000,
  } = breaker;
  const opens =
    window === 'consecutive' ? `${threshold} failures in a row` : `${failureRate * 100} % failures`;
  return `opens at ${opens} for ${duration(openDuration)}`;
};

const rateOf = ({ rateLimit }: PolicySettings): string => {
  if (!rateLimit) return 'none';
  const { limit, interval = 1_000 } = rateLimit;
  return `${limit} in ${duration(interval)}`;
};

const bulkheadOf = ({ bulkhead }: PolicySettings): string => {
  if (!bulkhead) return 'no limit';
  const { limit, queue = 0 } = bulkhead;
  return `${typeof limit === 'number' ? limit : `up to ${limit.max}`}, ${queue} may wait`;
};

/** The limits of an upstream, and of those of its tools that have their own. */
export const limitsOf = (config: UpstreamConfig): string[] => {
  const { name, address, policy, connectTimeout, discoveryTimeout, shared } = config;
  const retries = policy.retry ? (policy.retry.maxRetries ?? 2) : 0;
  const parts = [
    `idle timeout ${duration(policy.timeout)} (progress renews it)`,
    `deadline ${duration(policy.deadline)}`,
    `retries ${retries}, only of what may be repeated`,
    `breaker ${breakerOf(policy)}`,
    `calls at one time ${bulkheadOf(policy)}`,
    `rate limit ${rateOf(policy)}`,
    `cache ${policy.cache ? duration(policy.cache.ttl) : 'none'}`,
    `connect timeout ${duration(connectTimeout)}`,
    `discovery timeout ${duration(discoveryTimeout)}`,
    shared ? 'one session for all clients' : 'a session for each client',
  ];
  const tools = Object.entries(config.tools).flatMap(([tool, { policy: own }]) =>
    own?.timeout === undefined && own?.deadline === undefined
      ? []
      : [
          `${name}, tool ${tool}: idle timeout ${duration(own.timeout ?? policy.timeout)}, deadline ${duration(own.deadline ?? policy.deadline)}`,
        ],
  );
  return [`${name} (${address.kind}): ${parts.join('; ')}`, ...tools];
};
