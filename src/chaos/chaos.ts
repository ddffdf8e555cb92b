/**
 * @module
 * Fault injection for one server, put together. Loaded only where it was asked for: without it
 * none of its tools is listed, none can be called, and nothing of it is on the way of a call.
 */
import type { Prompt, Resource } from '../mcp/prompt.ts';
import type { Tool } from '../mcp/tool.ts';
import type { PipelineOptions } from '../resilience/call-options.ts';
import { type Clock, type Random, systemClock } from '../resilience/clock.ts';
import { ChaosTargets, type ToolTarget } from './chaos-targets.ts';
import { CONTROL_TOOLS, createControlTools } from './control-tools.ts';
import { ChaosDispatcher, type CreateConnection } from './dispatcher.ts';
import { startMarking } from './fault-marks.ts';
import { FaultRegistry } from './fault-registry.ts';
import { FaultServer } from './fault-server.ts';
import { createInjectFaultTool, INJECT_FAULT } from './inject-fault.ts';
import { divertNodeHttp } from './node-http.ts';
import { type AutoStop, OutsideErrors } from './outside-errors.ts';
import { createPlaybook, createRunDrillPrompt } from './playbook.ts';
import { RecentCalls } from './recent-calls.ts';
import { createStage } from './stage.ts';
import type { Dispatcher } from './undici.ts';
import { type WatchedCall, watchCall } from './watch-call.ts';
import { watchHandler, watchTool } from './watch-tool.ts';

/** Allows chaos where NODE_ENV is production. */
export const PRODUCTION_SWITCH = 'MCP_CHAOS_IN_PRODUCTION';

/**
 * What fault injection needs.
 *
 * @example
 * ```ts
 * import { type ChaosOptions, createChaos } from 'mcp-resilience/chaos';
 * const options: ChaosOptions = {
 *   targets: [{ tool: 'headlines', dependency: 'news-api' }, { tool: 'clock' }],
 *   excluded: ['health_check', 'log_in'],
 *   maxActive: 1,
 * };
 * const chaos = createChaos(options);
 * ```
 */
export interface ChaosOptions {
  /** Tools that may be struck, and the dependency whose pipeline protects each. */
  readonly targets: readonly ToolTarget[];
  /** Tools that never may, beside those of chaos itself. Default: `health_check`. */
  readonly excluded?: readonly string[];
  /** Default: the process's monotonic clock. */
  readonly clock?: Clock;
  /** Draws ids and seeds. Default: `Math.random`. */
  readonly random?: Random;
  /** Faults active at one time at most. Default 5. */
  readonly maxActive?: number;
  /**
   * Whether requests of `node:http` and `node:https` are struck, whoever makes them. Default true;
   * false where all that may be struck ask `divert` themselves.
   */
  readonly nodeHttp?: boolean;
  /** When faults end by themselves. Default: half of at least 20 calls outside failed in 60 s. */
  readonly autoStop?: AutoStop;
}

/** Fault injection that is on. */
export interface Chaos {
  readonly faults: FaultRegistry;
  /** Targets; the gateway adds its upstreams here. */
  readonly targets: ChaosTargets;
  /** `inject` of the pipelines that protect tools and dependencies. */
  readonly inject: NonNullable<PipelineOptions['inject']>;
  /**
   * `inject` of the pipelines that protect upstream servers and are called after them. What these
   * carry is an answer as JSON-RPC has it: `{ result }` or `{ error }`.
   */
  readonly injectUpstreams: NonNullable<PipelineOptions['inject']>;
  /** `inject_fault` and the tools that end what it began. */
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly prompts: readonly Prompt[];
  /** Has calls of a tool be told apart; wrap every tool that is served, but the chaos tools. */
  readonly watch: <T extends Tool>(tool: T) => T;
  /** The same for the handler of a tool of that name; the last argument is its context. */
  readonly watchHandler: <Arguments extends readonly unknown[], Result>(
    tool: string,
    handler: (...args: Arguments) => Result,
  ) => (...args: Arguments) => Promise<Awaited<Result>>;
  /** The same for a call that is relayed. */
  readonly watchCall: <T extends { readonly isError?: unknown }>(
    call: WatchedCall,
    run: () => T | PromiseLike<T>,
  ) => Promise<T>;
  /**
   * `createConnection` for the request of `node:http` that is about to be made; undefined where no
   * fault strikes it.
   */
  readonly divert: () => CreateConnection | undefined;
  /**
   * Makes a dispatcher that is passed to single requests (`fetch(url, { dispatcher })` of undici)
   * one that faults can enter; the global one is taken care of.
   */
  readonly dispatcher: <T extends Dispatcher>(dispatcher: T) => T;
  /** Has faults reach what the process uses now; called before one is armed. */
  readonly prepare: () => void;
  /** Ends all faults and takes everything back. */
  readonly close: () => Promise<void>;
}

/**
 * Why chaos must not be switched on here; undefined when it may.
 *
 * @param what as whoever switches it on calls it
 */
export const chaosRefusal = (
  env: NodeJS.ProcessEnv,
  what = '--chaos (MCP_CHAOS)',
): string | undefined => {
  if (env.NODE_ENV?.trim().toLowerCase() !== 'production') return undefined;
  const second = env[PRODUCTION_SWITCH]?.trim().toLowerCase() ?? '';
  if (['1', 'true', 'yes', 'on'].includes(second)) return undefined;
  return `${what} is refused where NODE_ENV is production; set ${PRODUCTION_SWITCH}=1 as well if it is meant`;
};

/**
 * Switches fault injection on, for this process. Do it before pipelines are made.
 * Servers of others get it through `own-server.ts`.
 */
export const createChaos = (options: ChaosOptions): Chaos => {
  const { excluded = ['health_check'], clock = systemClock, autoStop } = options;
  const targets = new ChaosTargets(options.targets, [...excluded, INJECT_FAULT, ...CONTROL_TOOLS]);
  const faults = new FaultRegistry({
    targets,
    clock,
    ...(options.random && { random: options.random }),
    ...(options.maxActive !== undefined && { maxActive: options.maxActive }),
  });
  const calls = new RecentCalls(clock);
  const outside = new OutsideErrors(clock, autoStop);
  const server = new FaultServer();
  const dispatcher = new ChaosDispatcher(server, clock);
  const stage = createStage({ faults, calls });
  const stopMarking = startMarking();
  const restoreNodeHttp =
    options.nodeHttp === false ? undefined : divertNodeHttp(dispatcher.divert);
  const prepare = () => dispatcher.install();
  prepare();
  return {
    faults,
    targets,
    inject: stage,
    injectUpstreams: createStage({ faults, calls, protects: 'upstream' }),
    tools: [
      createInjectFaultTool({
        faults,
        calls,
        prepare,
      }) as unknown as Tool,
      ...createControlTools(faults),
    ],
    resources: [createPlaybook(faults)],
    prompts: [createRunDrillPrompt(faults)],
    watch: (tool) => watchTool(tool, { faults, outside, stage }),
    watchHandler: (tool, handler) => watchHandler(tool, handler, { faults, outside, stage }),
    watchCall: (call, run) => watchCall(call, { faults, outside }, run),
    divert: dispatcher.divert,
    dispatcher: dispatcher.wrap,
    prepare,
    close: async () => {
      faults.destroy();
      dispatcher.uninstall();
      restoreNodeHttp?.();
      stopMarking();
      await server.close();
    },
  };
};
