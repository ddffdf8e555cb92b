/**
 * @module
 * What the gateway itself offers beside its upstreams: `health_check`, and what steers fault
 * injection where it is on. Names give way to those of upstreams.
 */
import { createOffer } from '../mcp/offer.ts';
import type { Prompt, Resource } from '../mcp/prompt.ts';
import type { Tool, ToolContext } from '../mcp/tool.ts';
import { checkResult, invalidInput, thrownToResult } from '../mcp/tool-failure.ts';
import { describeTool } from '../mcp/tool-schema.ts';
import { jsonAt } from './catalog-kinds.ts';
import type { Json } from './types.ts';

/** Entries of lists, under the names that they have here. */
export interface OwnLists {
  readonly tools: readonly Json[];
  readonly resources: readonly Json[];
  readonly prompts: readonly Json[];
}

/** What is offered. */
export interface OwnOffer {
  readonly lists: OwnLists;
  /** Told to models beside what upstreams say. */
  readonly instructions?: string | undefined;
  /** Whether a request for it is about tools of upstreams that nobody has listed yet. */
  readonly needsTools: (params: Json | undefined) => boolean;
  /**
   * Answers `tools/call`, `prompts/get` and `resources/read`, under the names that things have here.
   *
   * @throws JsonRpcError for arguments of a prompt that are wrong
   */
  readonly answer: (method: string, params: Json, context: ToolContext) => Promise<Json>;
}

/** Parts of an offer. */
export interface OwnParts {
  readonly tools: readonly Tool[];
  readonly resources?: readonly Resource[];
  readonly prompts?: readonly Prompt[];
  readonly instructions?: string | undefined;
  readonly needsTools?: OwnOffer['needsTools'];
}

const callTool = async (tool: Tool, params: Json, context: ToolContext): Promise<Json> => {
  try {
    const input = await tool.inputSchema.safeParseAsync(params.arguments ?? {});
    if (!input.success) return invalidInput(tool.name, input.error);
    return await checkResult(tool, await tool.handler(input.data, context));
  } catch (error) {
    return thrownToResult(error);
  }
};

/** Puts an offer together. */
export const createOwnOffer = (parts: OwnParts): OwnOffer => {
  const { resources = [], prompts = [], instructions, needsTools = () => false } = parts;
  const tools = new Map(parts.tools.map((tool) => [tool.name, tool]));
  const offer = createOffer(resources, prompts);
  return {
    lists: {
      tools: parts.tools.map((tool) => ({ ...describeTool(tool) })),
      resources: resources.map(({ read: _, ...listed }) => ({ ...listed })),
      prompts: prompts.map(({ text: _, ...listed }) => ({ ...listed })),
    },
    instructions,
    needsTools,
    answer: async (method, params, context) => {
      const tool = method === 'tools/call' ? tools.get(String(params.name)) : undefined;
      if (tool) return callTool(tool, params, context);
      return { ...(await offer.answer(method, params)) };
    },
  };
};

/** The answer to `initialize`, with what the gateway offers besides. */
export const withOwn = (result: Json, own: OwnOffer | undefined): Json => {
  if (!own) return result;
  const { lists, instructions } = own;
  const capabilities = jsonAt(result, 'capabilities');
  const added = Object.entries(lists)
    .filter(([kind, entries]) => entries.length > 0 && !Object.hasOwn(capabilities, kind))
    .map(([kind]) => [kind, {}] as const);
  const told = [result.instructions, instructions].filter((text) => typeof text === 'string');
  return {
    ...result,
    ...(added.length > 0 && { capabilities: { ...capabilities, ...Object.fromEntries(added) } }),
    ...(instructions !== undefined && { instructions: told.join('\n\n') }),
  };
};
