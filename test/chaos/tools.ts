import { z } from 'zod';
import { defineTool } from '../../src/mcp/tool.ts';

/** A tool of the name that faults are aimed at; `work` is what it does. */
export const searchTool = (
  work: (signal: AbortSignal) => unknown,
  { name = 'search', idempotent = false } = {},
) =>
  defineTool({
    name,
    description: 'Looks something up.',
    inputSchema: z.object({ query: z.string() }),
    ...(idempotent && { annotations: { idempotentHint: true } }),
    handler: async (_input, { signal }) => ({
      content: [{ type: 'text', text: String(await work(signal)) }],
    }),
  });
