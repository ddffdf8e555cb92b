/**
 * @module
 * The tools of the reference server, put together.
 */
import type { Tool } from '../mcp/tool.ts';
import { type Clock, systemClock } from '../resilience/clock.ts';
import type { PipelineRegistry } from '../resilience/registry.ts';
import type { Snapshot } from '../telemetry/snapshot.ts';
import { VERSION } from '../version.ts';
import { createHealthCheckTool } from './health-check.ts';
import { type PolicyOverrides, toolPolicies } from './policies.ts';
import { createSearchTool, DEFAULT_SEARCH_URL } from './search.ts';
import { baseUrl, type Environment } from './upstream.ts';
import { createWeatherTool, DEFAULT_WEATHER_URL } from './weather.ts';

export { describePolicies } from './policies.ts';

/** What the tools are made from. */
export interface CreateToolsOptions {
  /** Where their pipelines are made; `health_check` reports on all that are in it. */
  readonly registry: PipelineRegistry;
  /** `WEATHER_API_URL` and `SEARCH_API_URL` are read from it. Default: none is set. */
  readonly env?: Environment;
  /** The metrics as they are now: `telemetry.snapshot`. Default: there are none. */
  readonly snapshot?: () => Promise<Snapshot>;
  /** Where telemetry goes: `telemetry.destination`. */
  readonly destination?: string;
  /** Settings to lay over the defaults, by the name of the tool. */
  readonly policies?: PolicyOverrides;
  /** The clock that the registry gives to its pipelines. Default: that of the process. */
  readonly clock?: Clock;
}

/**
 * Makes `get_weather`, `search` and `health_check`. Settings are checked before anything is made.
 *
 * @throws Error for a base URL that is none, naming the variable; for policies of an unknown
 * tool, naming the known ones; for wrong settings, naming each
 *
 * @example
 * ```ts
 * const telemetry = startTelemetry();
 * const tools = createTools({
 *   registry: new PipelineRegistry(),
 *   env: process.env,
 *   snapshot: () => telemetry.snapshot(),
 *   destination: telemetry.destination,
 * });
 * ```
 */
export const createTools = (options: CreateToolsOptions): readonly Tool[] => {
  const { registry, env = {}, snapshot, destination, policies, clock = systemClock } = options;
  const weatherUrl = baseUrl(env, 'WEATHER_API_URL', DEFAULT_WEATHER_URL);
  const searchUrl = baseUrl(env, 'SEARCH_API_URL', DEFAULT_SEARCH_URL);
  const wanted = toolPolicies(policies);
  const pipelineOf = (name: string) => {
    const found = wanted.find(({ tool }) => tool === name);
    if (found === undefined) throw new Error(`the tool "${name}" has no policies`);
    return registry.create(found.dependency, found.policy);
  };
  return [
    createWeatherTool({
      url: weatherUrl,
      pipeline: pipelineOf('get_weather'),
      wallTime: () => clock.wallTime(),
    }),
    createSearchTool({ url: searchUrl, pipeline: pipelineOf('search') }),
    createHealthCheckTool({
      pipelines: registry,
      snapshot,
      destination,
      clock,
      startedAt: clock.now(),
      version: VERSION,
    }),
  ];
};
