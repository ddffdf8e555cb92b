/**
 * @module
 * Puts a tool under the eyes of fault injection: which tool and session a call belongs to, and
 * whether calls fail that no fault is aimed at. Its arguments and its answer pass through.
 */
import type { Tool, ToolContext, ToolResult } from '../mcp/tool.ts';
import { inScope } from './call-scope.ts';
import { asCall } from './fault-marks.ts';
import type { FaultRegistry } from './fault-registry.ts';
import type { OutsideErrors } from './outside-errors.ts';
import type { Stage } from './stage.ts';

/** What watching needs. */
export interface WatchOptions {
  readonly faults: FaultRegistry;
  readonly outside: OutsideErrors;
  /** Strikes tools that no pipeline protects; those with one meet it there. */
  readonly stage: Stage;
}

/** The tool, watched; everything else of it stays as it is. */
export const watchTool = <T extends Tool>(tool: T, options: WatchOptions): T => {
  const { faults, outside, stage } = options;
  const { name } = tool;
  const target = faults.targets.tools.find((candidate) => candidate.tool === name);
  const dependency = target?.dependency;

  const judge = (failed: boolean, context: ToolContext): void => {
    if (!faults.active) {
      outside.reset();
      return;
    }
    if (context.signal.aborted || faults.aimsAt({ tool: name, dependency })) return;
    const problem = outside.record(failed);
    if (problem !== undefined) faults.halt(problem, 'error_rate');
  };

  const call = async (input: unknown, context: ToolContext): Promise<ToolResult> => {
    try {
      const unprotected = target !== undefined && dependency === undefined;
      const result = await (unprotected
        ? stage(undefined, { signal: context.signal, attempt: 1 }, () =>
            tool.handler(input, context),
          )
        : tool.handler(input, context));
      judge(result?.isError === true, context);
      return result;
    } catch (error) {
      judge(true, context);
      throw error;
    }
  };

  return {
    ...tool,
    handler: (input: unknown, context: ToolContext) =>
      asCall(() => inScope({ tool: name, session: context.sessionId }, () => call(input, context))),
  };
};
