/**
 * @module
 * Puts a tool under the eyes of fault injection: which tool and session a call belongs to, and
 * whether calls fail that no fault is aimed at. Its arguments and its answer pass through.
 */
import type { Tool } from '../mcp/tool.ts';
import type { Stage } from './stage.ts';
import { type WatchCallOptions, watchCall } from './watch-call.ts';

/** What watching needs. */
export interface WatchOptions extends WatchCallOptions {
  /** Strikes tools that no pipeline protects; those with one meet it there. */
  readonly stage: Stage;
}

/** What is read of the last argument of a handler, be it our context or the SDK's. */
interface HandlerContext {
  readonly signal?: AbortSignal;
  readonly sessionId?: string;
}

/** The handler of a tool, watched. */
export const watchHandler = <Arguments extends readonly unknown[], Result>(
  name: string,
  handler: (...args: Arguments) => Result,
  options: WatchOptions,
): ((...args: Arguments) => Promise<Awaited<Result>>) => {
  const { faults, stage } = options;
  const target = faults.targets.tools.find((candidate) => candidate.tool === name);
  const dependency = target?.dependency;
  const unprotected = target !== undefined && dependency === undefined;
  return (...args) => {
    const { signal = new AbortController().signal, sessionId: session } = (args.at(-1) ??
      {}) as HandlerContext;
    const run = () =>
      unprotected
        ? stage(undefined, { signal, attempt: 1 }, () => handler(...args))
        : handler(...args);
    const call = { tool: name, dependency, session, signal };
    return watchCall(call, options, run as () => object) as Promise<Awaited<Result>>;
  };
};

/** The tool, watched; everything else of it stays as it is. */
export const watchTool = <T extends Tool>(tool: T, options: WatchOptions): T => ({
  ...tool,
  handler: watchHandler(tool.name, tool.handler, options),
});
