/**
 * @module
 * Fault injection in a server of one's own, on the MCP SDK: the same faults, tools and marks as
 * `serve --chaos` has.
 */
import { registerOn, type SdkServer } from '../mcp/sdk-server.ts';
import type { PipelineOptions } from '../resilience/call-options.ts';
import type { FaultReport } from './active-fault.ts';
import { type ChaosOptions, chaosRefusal, createChaos as createParts } from './chaos.ts';
import type { CreateConnection } from './dispatcher.ts';
import { type FaultInput, faultSchema } from './fault.ts';
import { ChaosError, type FaultList } from './fault-registry.ts';
import type { Dispatcher } from './undici.ts';

/**
 * Fault injection that is on, and where it enters.
 *
 * @example
 * ```ts
 * import { createPipeline, type PolicySettings } from 'mcp-resilience';
 * import type { Chaos } from 'mcp-resilience/chaos';
 * const pipelineOf = (settings: PolicySettings, chaos?: Chaos) =>
 *   createPipeline('news-api', settings, chaos ? { inject: chaos.inject } : {});
 * ```
 */
export interface Chaos {
  /** Of the options of each pipeline whose calls faults may strike. */
  readonly inject: NonNullable<PipelineOptions['inject']>;
  /**
   * Has calls of a tool be told apart. Put it around the handler of every tool that is served,
   * outermost: without it a fault aimed at the tool strikes nothing, one aimed at its dependency
   * leaves its telemetry unmarked, and nobody notices when bystanders suffer.
   *
   * The last argument of the handler is its context, with `signal` and `sessionId` as the SDK has
   * them.
   */
  readonly watch: <Arguments extends readonly unknown[], Result>(
    tool: string,
    handler: (...args: Arguments) => Result,
  ) => (...args: Arguments) => Promise<Awaited<Result>>;
  /**
   * Registers `inject_fault`, `list_faults`, `clear_fault` and `halt_chaos`, the resource
   * `chaos://playbook` and the prompt `run_drill`. Call it for each server, before it is connected.
   * A fault ends with the session that armed it.
   *
   * @throws Error of the SDK, when a name is taken
   */
  readonly register: (server: SdkServer) => void;
  /**
   * Arms a fault, as `inject_fault` does, without asking anybody: for tests.
   *
   * @param by who arms it, for the audit log. Default `code`.
   * @throws ChaosError when it is none, its target is not known, too many are active, or all of it
   *   is halted
   */
  readonly arm: (fault: FaultInput, by?: string) => FaultReport;
  /** What is armed, and what was. */
  readonly list: () => FaultList;
  /** Ends the fault of that id, by default all of them. How many there were. */
  readonly clear: (id?: string) => number;
  /** Allows faults again that `halt_chaos` or too many failures have ended; true when they were not. */
  readonly lift: () => boolean;
  /**
   * Makes a dispatcher that is passed to single requests (`fetch(url, { dispatcher })` of undici)
   * one that faults can enter; the global one is taken care of.
   */
  readonly dispatcher: <T extends Dispatcher>(dispatcher: T) => T;
  /**
   * For a request of `node:http` that has a `createConnection` of its own, which faults do not reach
   * by themselves: another one for the request that is about to be made; undefined where no fault
   * strikes it.
   */
  readonly divert: () => CreateConnection | undefined;
  /** Ends all faults and takes everything back. Call it before what closes the server. */
  readonly close: () => Promise<void>;
}

/**
 * Switches fault injection on, for this process; once at a time. Do it before pipelines are made,
 * and only where it is meant: whoever can call tools can then make them fail.
 *
 * @param env where NODE_ENV and MCP_CHAOS_IN_PRODUCTION are looked for. Default `process.env`.
 * @throws ChaosError where NODE_ENV is production, unless MCP_CHAOS_IN_PRODUCTION is 1
 *
 * @example
 * ```ts
 * import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
 * import { createPipeline, presets, protect } from 'mcp-resilience';
 * import { createChaos } from 'mcp-resilience/chaos';
 *
 * const chaos = process.argv.includes('--chaos')
 *   ? createChaos({ targets: [{ tool: 'headlines', dependency: 'news-api' }] })
 *   : undefined;
 *
 * const pipeline = createPipeline(
 *   'news-api',
 *   presets['public-api'],
 *   chaos ? { inject: chaos.inject } : {},
 * );
 * const headlines = protect({ name: 'headlines', pipeline }, async (extra: { signal: AbortSignal }) => {
 *   const response = await fetch('https://news.example/today', { signal: extra.signal });
 *   return { content: [{ type: 'text' as const, text: await response.text() }] };
 * });
 *
 * const server = new McpServer({ name: 'news', version: '1.0.0' });
 * server.registerTool(
 *   'headlines',
 *   { description: 'Headlines of today' },
 *   chaos ? chaos.watch('headlines', headlines) : headlines,
 * );
 * chaos?.register(server);
 * ```
 */
export const createChaos = (options: ChaosOptions, env: NodeJS.ProcessEnv = process.env): Chaos => {
  const refused = chaosRefusal(env, 'fault injection');
  if (refused !== undefined) throw new ChaosError(refused);
  const parts = createParts(options);
  const { faults, inject, watchHandler, dispatcher, divert, close } = parts;
  return {
    inject,
    watch: watchHandler,
    register: (server) => registerOn(server, parts),
    arm: (fault, by = 'code') => {
      const checked = faultSchema.safeParse(fault);
      if (!checked.success) {
        const problems = checked.error.issues.map(
          ({ path, message }) => `${path.join('.') || 'fault'}: ${message}`,
        );
        throw new ChaosError(problems.join('; '));
      }
      parts.prepare();
      return faults.arm(checked.data, { by });
    },
    list: () => faults.list(),
    clear: (id) => (id === undefined ? faults.clearAll() : Number(faults.clear(id))),
    lift: () => faults.lift(),
    dispatcher,
    divert,
    close,
  };
};
