/**
 * @module
 * What a tool is, without any SDK: the same definitions can be served by the SDK of today and
 * by the one of tomorrow.
 */
import type { z } from 'zod';

/** One block of a tool's answer; kinds that nobody knew yet pass through untouched. */
export interface ContentBlock {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** Answer of a tool, as the protocol has it (2025-11-25, server/tools, "Tool Result"). */
export interface ToolResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
  readonly [key: string]: unknown;
}

/** Hints for the client about what a tool does (2025-11-25, schema, `ToolAnnotations`). */
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

/** What a handler knows of the call it serves. */
export interface ToolContext {
  /** Aborted when the client cancels or disconnects, an attempt times out or the deadline passes. */
  readonly signal: AbortSignal;
  /** Session the call belongs to, on transports that have sessions. */
  readonly sessionId?: string;
  /** Who calls, where the door authenticates: cached answers are never shared across principals. */
  readonly principal?: string;
  /** `_meta` of the request, untouched. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Sends a progress notification; does nothing when the client did not ask for progress. */
  progress(progress: number, total?: number, message?: string): void;
}

/** A tool: what it is called, what it takes and gives, and what it does. */
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
