/**
 * @module
 * What a tool is, without any SDK: the same definitions can be served by the SDK of today and
 * by the one of tomorrow.
 */
import type { z } from 'zod';

/**
 * One block of a tool's answer; kinds that nobody knew yet pass through untouched.
 *
 * @example
 * ```ts
 * import type { ContentBlock } from 'mcp-resilience';
 * const textOf = (content: readonly ContentBlock[]) =>
 *   content.map(({ type, text }) => (type === 'text' ? text : `(${type})`)).join('\n');
 * ```
 */
export interface ContentBlock {
  readonly type: string;
  readonly [key: string]: unknown;
}

/**
 * Answer of a tool, as the protocol has it (2025-11-25, server/tools, "Tool Result").
 *
 * `isError` is false by default. `protect` caches no result with true, and repeats the call only
 * if `classifyResult` finds a failure in it that passes.
 *
 * @example
 * ```ts
 * import type { ToolResult } from 'mcp-resilience';
 * const answer = (city: string, degrees?: number): ToolResult =>
 *   degrees === undefined
 *     ? { isError: true, content: [{ type: 'text', text: `There is no city ${city}.` }] }
 *     : { content: [{ type: 'text', text: `${degrees} °C` }], structuredContent: { degrees } };
 * ```
 */
export interface ToolResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
  readonly [key: string]: unknown;
}

/**
 * Hints for the client about what a tool does (2025-11-25, schema, `ToolAnnotations`).
 *
 * @example
 * ```ts
 * import type { ToolAnnotations } from 'mcp-resilience';
 * const search: ToolAnnotations = { readOnlyHint: true }; // may be repeated and cached
 * const setName: ToolAnnotations = { idempotentHint: true }; // may be repeated, is never cached
 * const pay: ToolAnnotations = {}; // repeated only where it was surely not executed
 * ```
 */
export interface ToolAnnotations {
  readonly title?: string;
  /** Changes nothing. Such a call may be repeated and cached. Default false. */
  readonly readOnlyHint?: boolean;
  /** May destroy something. Default true. */
  readonly destructiveHint?: boolean;
  /** Repeating the call changes nothing further. Such a call may be repeated. Default false. */
  readonly idempotentHint?: boolean;
  /** Talks to the outside world. Default true. */
  readonly openWorldHint?: boolean;
}

/**
 * What a handler knows of the call it serves.
 *
 * @example
 * ```ts
 * import type { ToolContext } from 'mcp-resilience';
 * const download = async (urls: readonly string[], context: ToolContext) => {
 *   for (const [index, url] of urls.entries()) {
 *     await fetch(url, { signal: context.signal });
 *     context.progress(index + 1, urls.length); // renews the attempt's time limit
 *   }
 * };
 * ```
 */
export interface ToolContext {
  /** Aborted when the client cancels or disconnects, an attempt times out or the deadline passes. */
  readonly signal: AbortSignal;
  /** Session the call belongs to, on transports that have sessions. */
  readonly sessionId?: string;
  /**
   * Aborted when that session has ended, or its client has closed its stream and not come back
   * within 10 s, as one does that was killed. Absent where there is no session.
   */
  readonly sessionEnded?: AbortSignal;
  /** What the client calls itself. Anybody can say anything here. */
  readonly client?: { readonly name: string; readonly version: string };
  /** Who calls, where the door authenticates: cached answers are never shared across principals. */
  readonly principal?: string;
  /** `_meta` of the request, untouched. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /**
   * Asks the person behind the client (2025-11-25, client/elicitation, form mode) and resolves
   * with what they did. `schema` is a JSON Schema of flat fields for the form. Absent when the
   * client did not say that it can ask.
   *
   * @throws when the client cannot be reached, or nobody answered within five minutes
   */
  readonly elicit?: (
    message: string,
    schema: Readonly<Record<string, unknown>>,
  ) => Promise<{
    readonly action: 'accept' | 'decline' | 'cancel';
    /** What was filled in, on `accept`. */
    readonly content?: Readonly<Record<string, unknown>>;
  }>;
  /** Sends a progress notification; does nothing when the client did not ask for progress. */
  progress(progress: number, total?: number, message?: string): void;
}

/**
 * A tool: what it is called, what it takes and gives, and what it does.
 *
 * @example
 * ```ts
 * import { type Pipeline, protectTool, type Tool } from 'mcp-resilience';
 * const protectAll = (tools: readonly Tool[], pipeline: Pipeline): Tool[] =>
 *   tools.map((tool) => protectTool(tool, { pipeline }));
 * ```
 */
export interface Tool<Input extends z.ZodType = z.ZodType, Output extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: Input;
  readonly outputSchema?: Output;
  readonly annotations?: ToolAnnotations;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** Called with validated input. Throws, or answers `isError: true`, when it fails. */
  readonly handler: (
    input: z.output<Input>,
    context: ToolContext,
  ) => Promise<ToolResult> | ToolResult;
}

/**
 * Gives the tool back as it is, with the types of its schemas, which an object literal would
 * lose in a list of tools: the input of the handler is what `inputSchema` lets through.
 *
 * @example
 * ```ts
 * import { defineTool } from 'mcp-resilience';
 * import { z } from 'zod';
 *
 * const double = defineTool({
 *   name: 'double',
 *   description: 'Twice a number',
 *   inputSchema: z.object({ number: z.number() }),
 *   handler: ({ number }) => ({ content: [{ type: 'text', text: String(2 * number) }] }),
 * });
 * ```
 */
export const defineTool = <Input extends z.ZodType, Output extends z.ZodType>(
  tool: Tool<Input, Output>,
): Tool<Input, Output> => tool;
