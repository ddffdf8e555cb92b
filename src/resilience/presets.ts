/**
 * @module
 * Settings to start from, by the kind of dependency. Thresholds, open times, retries, backoffs
 * and rates are those of the founding matrix; the time limits keep a whole call below the 60 s
 * after which MCP clients give up by default.
 */
import type { PolicySettings } from './policy.ts';

/**
 * Names of the presets: the kinds of dependency.
 *
 * @example
 * ```ts
 * import { createPipeline, type PresetName, presets } from 'mcp-resilience';
 * const pipelineFor = (dependency: string, kind: PresetName) =>
 *   createPipeline(dependency, presets[kind]);
 * const orders = pipelineFor('orders', 'database');
 * ```
 */
export type PresetName = 'public-api' | 'paid-api' | 'internal' | 'database' | 'filesystem';

const MINUTE = 60_000;

/**
 * | preset | failures to open | open time | retries | base backoff | rate | attempt | whole call |
 * |---|---|---|---|---|---|---|---|
 * | `public-api` | 3 | 60 s | 2 | 2 s | 10 / min | 10 s | 45 s |
 * | `paid-api` | 5 | 30 s | 3 | 1 s | set by your quota | 15 s | 55 s |
 * | `internal` | 3 | 15 s | 2 | 500 ms | 100 / min | 5 s | 20 s |
 * | `database` | 2 | 10 s | 2 | 200 ms | 50 / min | 5 s | 15 s |
 * | `filesystem` | 1 | 5 s | 1 | 100 ms | none | 5 s | 10 s |
 *
 * @example
 * ```ts
 * import { createPipeline, presets } from 'mcp-resilience';
 * const weather = createPipeline('weather-api', presets['public-api']);
 * ```
 */
export const presets: Readonly<Record<PresetName, PolicySettings>> = {
  'public-api': {
    deadline: 45_000,
    timeout: 10_000,
    breaker: { threshold: 3, openDuration: 60_000 },
    retry: { maxRetries: 2, baseDelay: 2_000 },
    rateLimit: { limit: 10, interval: MINUTE },
  },
  'paid-api': {
    deadline: 55_000,
    timeout: 15_000,
    breaker: { threshold: 5, openDuration: 30_000 },
    retry: { maxRetries: 3, baseDelay: 1_000 },
  },
  internal: {
    deadline: 20_000,
    timeout: 5_000,
    breaker: { threshold: 3, openDuration: 15_000 },
    retry: { maxRetries: 2, baseDelay: 500 },
    rateLimit: { limit: 100, interval: MINUTE },
  },
  database: {
    deadline: 15_000,
    timeout: 5_000,
    breaker: { threshold: 2, openDuration: 10_000 },
    retry: { maxRetries: 2, baseDelay: 200 },
    rateLimit: { limit: 50, interval: MINUTE },
  },
  filesystem: {
    deadline: 10_000,
    timeout: 5_000,
    breaker: { threshold: 1, openDuration: 5_000 },
    retry: { maxRetries: 1, baseDelay: 100 },
  },
};
