import { z } from 'zod';
import { defineTool, type Tool, type ToolContext, type ToolResult } from '../../../src/mcp/tool.ts';

export const text = (value: string): ToolResult => ({ content: [{ type: 'text', text: value }] });

/** A call that stands still inside its handler until the test lets it go on. */
interface HeldCall {
  readonly context: ToolContext;
  readonly label: string;
  answer(result: ToolResult): void;
}

/** Tools whose calls the test holds in its hands. */
export const heldTools = () => {
  const calls: HeldCall[] = [];
  const hold = defineTool({
    name: 'hold',
    description: 'Answers when the test says so',
    inputSchema: z.object({ label: z.string().default('') }),
    handler: ({ label }, context) =>
      new Promise<ToolResult>((resolve) => {
        calls.push({ context, label, answer: resolve });
      }),
  });
  const echo = defineTool({
    name: 'echo',
    description: 'Says what it is told',
    inputSchema: z.object({ say: z.string() }),
    annotations: { readOnlyHint: true },
    handler: ({ say }) => text(say),
  });
  const tools: readonly Tool[] = [hold, echo];
  return { calls, tools };
};
