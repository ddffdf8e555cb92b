/**
 * @module
 * Our tools on the SDK's low-level server. The SDK's own way to register a tool would lose
 * what it does not know of a result; here results pass through whole.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type {
  JSONRPCRequest,
  ServerNotification,
  ServerRequest,
  ServerResult,
} from '@modelcontextprotocol/sdk/types.js';
import { createFailure, type FailureDetails, failureToJSON } from '../resilience/failure.ts';
import { CODE, JsonRpcError } from './jsonrpc.ts';
import { META_FAILURE } from './meta.ts';
import type { KnownNames } from './operation.ts';
import { principalOf } from './principal.ts';
import type { Tool, ToolContext, ToolResult } from './tool.ts';
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

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** Progress of one call: only if the client asked, only while it waits, only forward (2025-11-25, basic/utilities/progress). */
const progressOf = (extra: Extra, isRunning: () => boolean): ToolContext['progress'] => {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let last = Number.NEGATIVE_INFINITY;
  return (progress, total, message) => {
    if (!isRunning() || !(progress > last)) return;
    last = progress;
    const params = {
      progressToken,
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    };
    // Progress is a courtesy: a client that has gone is noticed elsewhere.
    extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {});
  };
};

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
  protected override assertTaskHandlerCapability(): void {}
}

const callTool = async (
  tool: Tool,
  params: Readonly<Record<string, unknown>>,
  extra: Extra,
  definition: ServerDefinition,
): Promise<ToolResult> => {
  const principal = principalOf(extra.authInfo);
  let running = true;
  try {
    const input = await tool.inputSchema.safeParseAsync(params.arguments ?? {});
    if (!input.success) return invalidInput(tool.name, input.error);
    const result = await tool.handler(input.data, {
      signal: extra.signal,
      ...(extra.sessionId !== undefined && { sessionId: extra.sessionId }),
      ...(principal !== undefined && { principal }),
      ...(extra._meta && { meta: extra._meta }),
      progress: progressOf(extra, () => running),
    });
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

  const create = (): Server => {
    const server = new ToolServer(
      { name, version },
      { capabilities: { tools: {} }, ...(instructions !== undefined && { instructions }) },
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
      const result = await callTool(tool, params, extra, definition);
      return result as unknown as ServerResult;
    };
    return server;
  };
  return Object.assign(create, { known: { tools } });
};
