/**
 * @module
 * A tool as `tools/list` shows it (2025-11-25, server/tools, "Tool").
 */
import { z } from 'zod';
import type { Tool, ToolAnnotations } from './tool.ts';

/** An entry of `tools/list`. */
export interface ListedTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: ToolAnnotations;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

// SEP-986: "Tool names SHOULD be between 1 and 128 characters", of these only.
const TOOL_NAME = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * JSON Schema 2020-12 of what the zod schema accepts. Of the output schema too it is the
 * accepting side that is shown: the result goes over the wire as the handler gave it, and what
 * zod's parser would drop from it is still there.
 */
const jsonSchema = (tool: string, part: string, schema: z.ZodType): Record<string, unknown> => {
  let converted: Record<string, unknown>;
  try {
    converted = z.toJSONSchema(schema, { target: 'draft-2020-12', io: 'input' });
  } catch (cause) {
    throw new TypeError(`tool "${tool}": JSON Schema cannot express its ${part}`, { cause });
  }
  if (converted.type !== 'object') {
    throw new TypeError(`tool "${tool}": its ${part} must be an object schema, such as z.object`);
  }
  return converted;
};

/** What clients are told of a tool. Throws a `TypeError` when the protocol cannot carry it. */
export const describeTool = (tool: Tool): ListedTool => {
  const { name, title, description, inputSchema, outputSchema, annotations, _meta } = tool;
  if (!TOOL_NAME.test(name)) {
    throw new TypeError(`tool name "${name}": use 1 to 128 of the characters A-Z a-z 0-9 . _ -`);
  }
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    inputSchema: jsonSchema(name, 'inputSchema', inputSchema),
    ...(outputSchema && { outputSchema: jsonSchema(name, 'outputSchema', outputSchema) }),
    ...(annotations && { annotations }),
    ...(_meta && { _meta }),
  };
};
