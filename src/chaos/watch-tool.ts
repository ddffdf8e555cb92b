/**
 * @module
 * Puts a tool under the eyes of fault injection: which tool and session a call belongs to, and
 * whether calls fail that no fault is aimed at. Its arguments and its answer pass through.
 */
import type { Tool, ToolContext } from '../mcp/tool.ts';
import type { Stage } from './stage.ts';
import { type WatchCallOptions, watchCall } from './watch-call.ts';

/** What watching needs. */
export interface WatchOptions extends WatchCallOptions {
  /** Strikes tools that no pipeline protects; those with one meet it there. */
  readonly stage: Stage;
}

/** The tool, watched; everything else of it stays as it is. */
export const watchTool = <T extends Tool>(tool: T, options: WatchOptions): T => {
  const { faults, stage } = options;
  const { name } = tool;
  const target = faults.targets.tools.find((candidate) => candidate.tool === name);
  const dependency = target?.dependency;
  const unprotected = target !== undefined && dependency === undefined;
  return {
    ...tool,
    handler: (input: unknown, context: ToolContext) => {
      const { signal, sessionId: session } = context;
      return watchCall({ tool: name, dependency, session, signal }, options, () =>
        unprotected
          ? stage(undefined, { signal, attempt: 1 }, () => tool.handler(input, context))
          : tool.handler(input, context),
      );
    },
  };
};
