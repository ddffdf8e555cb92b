/**
 * @module
 * Our tools on the SDK's low-level server. The SDK's own way to register a tool would lose
 * what it does not know of a result; here results pass through whole.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCRequest, ServerResult } from '@modelcontextprotocol/sdk/types.js';
import { createFailure, type FailureDetails, failureToJSON } from '../resilience/failure.ts';
import { CODE, JsonRpcError } from './jsonrpc.ts';
import { META_FAILURE } from './meta.ts';
import { createOffer } from './offer.ts';
import type { KnownNames } from './operation.ts';
import type { Prompt, Resource } from './prompt.ts';
import type { Tool, ToolResult } from './tool.ts';
import { contextFor, type Extra } from './tool-context.ts';
import { checkResult, internalError, invalidInput, thrownToResult } from './tool-failure.ts';
import { describeTool, type ListedTool } from './tool-schema.ts';

/** What a server is made of. */
export interface ServerDefinition {
  readonly name: string;
  readonly version: string;
  /** Shown to the model: what the server is for and how its tools belong together. */
  readonly instructions?: string;
  /** Listed in this order. Names must be unique. */
  readonly tools: readonly Tool[];
  /** Texts that clients can read. Default: none, and the capability is not declared. */
  readonly resources?: readonly Resource[];
  /** Texts that start a conversation. Default: none, and the capability is not declared. */
  readonly prompts?: readonly Prompt[];
  /** Result for what a handler threw. Default: its message and a structured failure. */
  readonly toErrorResult?: (error: unknown, tool: Tool) => ToolResult;
}

export type { Transport };

/** What a door needs of the server behind it: the SDK's `Server` is one, the gateway's relay another. */
export interface Connectable {
  onerror?: ((error: Error) => void) | undefined;
  /** Takes the transport, sets its callbacks and starts it. */
  connect(transport: Transport): Promise<void>;
  close(): Promise<void>;
}

/** Makes a server for one session; a server is never shared between two. */
export interface ServerFactory {
  (): Connectable;
  /** Names that telemetry may record as they are. */
  readonly known?: KnownNames;
}

/** Failures that are no tool's: a JSON-RPC error whose data holds the structured failure. */
const refusal = (
  code: 'INVALID_INPUT' | 'METHOD_NOT_FOUND',
  message: string,
  details: Pick<FailureDetails, 'suggestion'> = {},
): JsonRpcError =>
  new JsonRpcError(code === 'INVALID_INPUT' ? CODE.invalidParams : CODE.methodNotFound, message, {
    [META_FAILURE]: failureToJSON(createFailure(code, { message, ...details })),
  });

/** A name that nobody has, as far as one could have been that long. */
const quoted = (name: string): string => (name.length > 128 ? `${name.slice(0, 128)}…` : name);

/** There are no tasks here, so a request that asks for one is processed as any other (2025-11-25, basic/utilities/tasks, "Capability Negotiation"); the SDK would refuse it. */
class ToolServer extends Server {
  #ended = new AbortController();

  /** Aborted when its session has ended, or the client has gone, as far as anybody can tell. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  override onclose = (): void => this.#ended.abort();

  override connect(transport: Transport): Promise<void> {
    const onclientgone = () => {
      this.#ended.abort();
      // It may come back all the same.
      this.#ended = new AbortController();
    };
    Object.assign(transport, { onclientgone });
    return super.connect(transport);
  }

  protected override assertTaskHandlerCapability(): void {}
}

const callTool = async (
  tool: Tool,
  params: Readonly<Record<string, unknown>>,
  extra: Extra,
  server: ToolServer,
  definition: ServerDefinition,
): Promise<ToolResult> => {
  let running = true;
  try {
    const input = await tool.inputSchema.safeParseAsync(params.arguments ?? {});
    if (!input.success) return invalidInput(tool.name, input.error);
    const context = contextFor(server, extra, server.ended, () => running);
    const result = await tool.handler(input.data, context);
    return await checkResult(tool, result);
  } catch (error) {
    try {
      return (definition.toErrorResult ?? thrownToResult)(error, tool);
    } catch {
      return internalError(tool.name, 'failed, and describing the failure failed too');
    }
  } finally {
    running = false;
  }
};

/**
 * Prepares a server: schemas are converted and names checked once, here; what it returns makes
 * a server for each session.
 *
 * Throws a `TypeError` for a name that appears twice and for a schema that the protocol cannot
 * carry (one that is no object, or that JSON Schema cannot express).
 *
 * @example
 * ```ts
 * const door = await serveHttp({ createServer: createServer({ name, version, tools }), port: 3000 });
 * ```
 */
export const createServer = (definition: ServerDefinition): ServerFactory => {
  const { name, version, instructions } = definition;
  const tools = new Map<string, Tool>();
  const listed: ListedTool[] = [];
  for (const tool of definition.tools) {
    if (tools.has(tool.name)) throw new TypeError(`two tools are called "${tool.name}"`);
    tools.set(tool.name, tool);
    listed.push(describeTool(tool));
  }
  const offer = createOffer(definition.resources ?? [], definition.prompts ?? []);

  const create = (): Server => {
    const server = new ToolServer(
      { name, version },
      {
        capabilities: { tools: {}, ...offer.capabilities },
        ...(instructions !== undefined && { instructions }),
      },
    );
    // Not setRequestHandler: for tools/call the SDK would parse the result and drop, or refuse,
    // whatever it does not know; and params that it cannot parse would be our internal error.
    server.fallbackRequestHandler = async (request: JSONRPCRequest, extra) => {
      const { method, params = {} } = request;
      if (method === 'tools/list') {
        if (params.cursor !== undefined) {
          throw refusal(
            'INVALID_INPUT',
            'Invalid cursor: all tools are on the first page; call tools/list without a cursor',
            { suggestion: 'Call tools/list without a cursor.' },
          );
        }
        return { tools: listed } as unknown as ServerResult;
      }
      if (method !== 'tools/call') {
        const offered = await offer.answer(method, params);
        if (offered) return offered as ServerResult;
        throw refusal('METHOD_NOT_FOUND', `Method not found: ${quoted(method)}`);
      }
      const tool = typeof params.name === 'string' ? tools.get(params.name) : undefined;
      if (!tool) {
        const problem =
          typeof params.name === 'string'
            ? `Unknown tool: ${quoted(params.name)}`
            : 'params.name must be the name of a tool';
        throw refusal('INVALID_INPUT', `${problem}; tools/list tells the names that exist`, {
          suggestion: 'Use a name that tools/list gives.',
        });
      }
      const result = await callTool(tool, params, extra, server, definition);
      return result as unknown as ServerResult;
    };
    return server;
  };
  return Object.assign(create, { known: { tools, prompts: offer.prompts } });
};
