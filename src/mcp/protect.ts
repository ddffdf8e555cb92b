/**
 * @module
 * Puts a pipeline around a tool handler. Knows what a tool result is and what annotations mean;
 * knows no SDK: a handler is a function of its arguments and of anything with a `signal`.
 */

import { diag } from '@opentelemetry/api';
import type { CallContext } from '../resilience/attempt.ts';
import { cacheKey } from '../resilience/cache.ts';
import type { CallOptions } from '../resilience/call-options.ts';
import { systemClock } from '../resilience/clock.ts';
import { createFailure, type Failure } from '../resilience/failure.ts';
import type { Pipeline } from '../resilience/pipeline.ts';
import type { Priority } from '../resilience/policy.ts';
import { ERROR_TYPE_TOOL_ERROR } from '../telemetry/semconv.ts';
import { META_FAILURE } from './meta.ts';
import { type Credentials, principalOf } from './principal.ts';
import { toolOutcome, toResult } from './protected-result.ts';
import type { Tool, ToolAnnotations, ToolResult } from './tool.ts';
import { recordsOwnDuration, recordToolDuration, sentCode } from './tool-duration.ts';

/**
 * How a handler is protected.
 *
 * @example
 * ```ts
 * import { createPipeline, type ProtectOptions, presets } from 'mcp-resilience';
 * const options: ProtectOptions<{ city: string; lang?: string }> = {
 *   name: 'get_weather',
 *   pipeline: createPipeline('weather-api', presets['public-api']),
 *   annotations: { readOnlyHint: true }, // may be repeated and cached
 *   cacheInput: ({ city, lang }) => [city.toLowerCase(), lang],
 *   fallback: ({ city }) => ({ content: [{ type: 'text', text: `No weather of ${city} now.` }] }),
 * };
 * ```
 */
export interface ProtectOptions<Input, Context = unknown> {
  /** Name of the tool. */
  readonly name: string;
  /** The policies of what the handler calls. */
  readonly pipeline: Pipeline;
  /**
   * What the tool says of itself. Only with `readOnlyHint` or `idempotentHint` is a call
   * repeated after it may have been executed; only with `readOnlyHint` is an answer cached.
   */
  readonly annotations?: ToolAnnotations;
  /**
   * What tells one answer from another. Default: the whole input. Leave out what does not
   * change the answer, such as a switch for the cache itself.
   */
  readonly cacheInput?: (input: Input) => unknown;
  /** False asks for a new answer. Default: always true. */
  readonly useCache?: (input: Input) => boolean;
  /** A lesser answer for failures that pass by themselves; undefined when there is none. */
  readonly fallback?: (
    input: Input,
    failure: Failure,
  ) => ToolResult | undefined | Promise<ToolResult | undefined>;
  /**
   * Who calls: cached answers and rate limits are kept apart by it. Default: `principal` of the
   * context, or what the MCP SDK's `authInfo` tells of the access token.
   */
  readonly principal?: (context: Context) => string | undefined;
  /** Default `interactive`. */
  readonly priority?: Priority;
  /**
   * Finds the failure in a result, such as throttling told in a payload (`throttledResult`).
   * Where it finds none, a result with `isError` is a `TOOL_ERROR`, which is neither retried nor
   * counted nor cached.
   */
  readonly classifyResult?: (result: ToolResult) => Failure | undefined;
}

/**
 * What protection reads of a handler's context; everything else is passed on to the handler.
 *
 * @example
 * ```ts
 * import { createPipeline, type ProtectedContext, protect } from 'mcp-resilience';
 * const pipeline = createPipeline('billing', { timeout: 5_000 });
 * const invoice = protect({ name: 'invoice', pipeline }, async (context: ProtectedContext) => {
 *   const response = await fetch('https://billing.example/1', { signal: context.signal ?? null });
 *   return { content: [{ type: 'text', text: await response.text() }] };
 * });
 * await invoice({ principal: 'tenant-1', signal: AbortSignal.timeout(20_000) });
 * ```
 */
export interface ProtectedContext {
  /** Aborted when the client cancels or disconnects. */
  readonly signal?: AbortSignal;
  readonly principal?: string;
  readonly authInfo?: Credentials;
  /** Progress, as our server offers it: renews the attempt's time limit, never the deadline. */
  readonly progress?: (progress: number, total?: number, message?: string) => void;
  /** The SDK's way to send progress: renews it too. */
  // biome-ignore lint/suspicious/noExplicitAny: the SDK's notification types are not ours to name
  readonly sendNotification?: (notification: any) => Promise<void>;
}

/** Arguments of a handler: its input, unless the tool takes none, and the context of the call. */
type HandlerArguments = [ProtectedContext] | [unknown, ProtectedContext];

/**
 * What a protected handler answers: its own result, or one that tells of a failure.
 *
 * @example
 * ```ts
 * import { type Failure, META_FAILURE, type Protected, type ToolResult } from 'mcp-resilience';
 * const secondsToWait = ({ isError, _meta }: Protected<ToolResult>) =>
 *   isError ? (_meta?.[META_FAILURE] as Failure | undefined)?.retryAfter : 0;
 * ```
 */
export type Protected<Result> = Result & {
  isError?: boolean;
  _meta?: Record<string, unknown>;
};

type InputOf<Arguments> = Arguments extends [infer Input, unknown] ? Input : undefined;
type ContextOf<Arguments> = Arguments extends [...unknown[], infer Context] ? Context : never;

/**
 * Protects a tool handler. What fails becomes a tool result with `isError: true`, a text that
 * a model can act on, and the structured failure under `_meta["mcp-resilience/failure"]`;
 * cached and lesser answers are marked as such, for the model in the content and for programs
 * under `_meta`. The handler's signal is aborted on timeout, deadline and cancellation.
 *
 * @throws the reason of the client's cancellation: nobody waits for an answer then
 *
 * @example
 * ```ts
 * import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
 * import { createPipeline, presets, protect } from 'mcp-resilience';
 *
 * const server = new McpServer({ name: 'news', version: '1.0.0' });
 * const annotations = { readOnlyHint: true };
 * const pipeline = createPipeline('news-api', presets['public-api']);
 * server.registerTool(
 *   'headlines',
 *   { description: 'Headlines of today', annotations },
 *   protect({ name: 'headlines', pipeline, annotations }, async (extra: { signal: AbortSignal }) => {
 *     const response = await fetch('https://news.example/today', { signal: extra.signal });
 *     return { content: [{ type: 'text', text: await response.text() }] };
 *   }),
 * );
 * ```
 */
export const protect = <Arguments extends HandlerArguments, Result extends object>(
  options: ProtectOptions<InputOf<Arguments>, ContextOf<Arguments>>,
  handler: (...args: Arguments) => Result | Promise<Result>,
): ((...args: Arguments) => Promise<Protected<Result>>) => {
  const { name, pipeline, annotations = {}, priority } = options;
  const readOnly = annotations.readOnlyHint === true;
  const idempotent = readOnly || annotations.idempotentHint === true;
  const classifyResult = (result: ToolResult): Failure | undefined => {
    let told: Failure | undefined;
    try {
      told = options.classifyResult?.(result) ?? pipeline.classifyResult?.(result);
    } catch (error) {
      diag.error(`classifyResult of the tool "${name}" threw`, error);
    }
    return told ?? failureOfResult(result);
  };

  return async (...args) => {
    const context = args[args.length - 1] as ContextOf<Arguments> & ProtectedContext;
    const input = (args.length > 1 ? args[0] : undefined) as InputOf<Arguments>;
    const principal = options.principal
      ? options.principal(context)
      : (context.principal ?? principalOf(context.authInfo));
    const key =
      readOnly && pipeline.cache
        ? identityOf(pipeline.name, name, options.cacheInput?.(input) ?? input, principal)
        : undefined;
    const { fallback } = options;
    const callOptions: CallOptions<ToolResult> = {
      idempotent,
      classifyResult,
      ...(context.signal && { signal: context.signal }),
      ...(principal !== undefined && { rateLimitKey: principal }),
      ...(priority && { priority }),
      ...(key !== undefined && { cacheKey: key }),
      ...(options.useCache && { useCache: options.useCache(input) }),
      ...(fallback && { fallback: (failure: Failure) => fallback(input, failure) }),
    };
    const started = recordsOwnDuration() ? systemClock.now() : undefined;
    const outcome = await pipeline.outcome<ToolResult>((call) => {
      const inner = contextOf(context, call);
      return handler(...([...args.slice(0, -1), inner] as unknown as Arguments)) as never;
    }, callOptions);
    const cancelled = !outcome.ok && context.signal?.aborted === true;
    if (started !== undefined) {
      const seconds = (systemClock.now() - started) / 1_000;
      // A tool that speaks of an error is one to the conventions too, as where we see its answer.
      const failure = outcome.ok ? outcome.value._meta?.[META_FAILURE] : outcome.failure;
      const code = sentCode((failure as Partial<Failure> | undefined)?.code);
      recordToolDuration(
        name,
        seconds,
        cancelled ? 'cancelled' : toolOutcome(outcome),
        code ?? ERROR_TYPE_TOOL_ERROR,
      );
    }
    if (cancelled) throw outcome.error;
    return toResult(outcome) as unknown as Protected<Result>;
  };
};

/**
 * A tool whose handler is protected as by `protect`; everything else of it stays as it is, and
 * its name and annotations are the tool's own.
 *
 * @example
 * ```ts
 * import { createPipeline, defineTool, presets, protectTool } from 'mcp-resilience';
 * import { z } from 'zod';
 *
 * const headlines = defineTool({
 *   name: 'headlines',
 *   description: 'Headlines of a day',
 *   inputSchema: z.object({ day: z.string() }),
 *   annotations: { readOnlyHint: true },
 *   handler: async ({ day }, { signal }) => {
 *     const response = await fetch(`https://news.example/${day}`, { signal });
 *     return { content: [{ type: 'text', text: await response.text() }] };
 *   },
 * });
 * const pipeline = createPipeline('news-api', presets['public-api']);
 * const tool = protectTool(headlines, { pipeline, fallback: ({ day }) => ({
 *   content: [{ type: 'text', text: `No headlines of ${day} at the moment.` }],
 * }) });
 * ```
 */
export const protectTool = <T extends Tool>(
  tool: T,
  options: Omit<
    ProtectOptions<Parameters<T['handler']>[0], Parameters<T['handler']>[1]>,
    'name' | 'annotations'
  >,
): T => ({
  ...tool,
  handler: protect(
    { ...options, name: tool.name, ...(tool.annotations && { annotations: tool.annotations }) },
    tool.handler as (...args: Parameters<T['handler']>) => ToolResult | Promise<ToolResult>,
  ) as T['handler'],
});

/** The context of one attempt: its own signal, and progress that renews its time limit. */
const contextOf = (context: ProtectedContext, call: CallContext): ProtectedContext => {
  const { progress, sendNotification } = context;
  const inner = {
    ...context,
    attempt: call.attempt,
    deadline: call.deadline,
    ...(progress && {
      progress: (...args: Parameters<typeof progress>) => {
        call.renew();
        progress(...args);
      },
    }),
    ...(sendNotification && {
      sendNotification: (notification: { method: string }) => {
        if (notification.method === 'notifications/progress') call.renew();
        return sendNotification(notification);
      },
    }),
  };
  // The signal is made when the handler reads it, not before.
  return Object.defineProperty(inner, 'signal', { enumerable: true, get: () => call.signal });
};

/** Undefined for arguments that have no identity, such as a cycle: such a call is not cached. */
const identityOf = (
  dependency: string,
  operation: string,
  args: unknown,
  principal: string | undefined,
): string | undefined => {
  try {
    return cacheKey({ dependency, operation, args, ...(principal !== undefined && { principal }) });
  } catch {
    return undefined;
  }
};

/** The failure that a result with `isError` is: the tool speaking, not the dependency failing. */
const failureOfResult = (result: ToolResult): Failure | undefined =>
  result.isError === true ? createFailure('TOOL_ERROR') : undefined;
