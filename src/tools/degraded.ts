/**
 * @module
 * Tells programs that read only `structuredContent` what `protect` tells in `_meta`.
 */
import type { Tool, ToolResult } from '../mcp/tool.ts';

const marked = (result: ToolResult): ToolResult => {
  const { structuredContent, _meta } = result;
  if (structuredContent === undefined || _meta?.degraded !== true) return result;
  const { reason } = _meta;
  return {
    ...result,
    structuredContent: {
      ...structuredContent,
      degraded: true,
      ...(typeof reason === 'string' && { reason }),
    },
  };
};

/**
 * A protected tool whose lesser answers, stale ones included, have `degraded` and `reason` in
 * their `structuredContent` too. Its output schema must allow both.
 */
export const markDegraded = <T extends Tool>(tool: T): T => {
  const handler: Tool['handler'] = async (input, context) =>
    marked(await tool.handler(input, context));
  return { ...tool, handler };
};
