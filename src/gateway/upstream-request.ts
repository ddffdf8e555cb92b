/**
 * @module
 * What becomes of one request to an upstream: through the policies, out of a cache or over the
 * connection, and into telemetry.
 */
import { context } from '@opentelemetry/api';
import { JsonRpcError } from '../mcp/jsonrpc.ts';
import { toResult } from '../mcp/protected-result.ts';
import type { ToolResult } from '../mcp/tool.ts';
import { cacheKey } from '../resilience/cache-key.ts';
import type { CallOptions } from '../resilience/call-options.ts';
import { createFailure, type Failure, ResilienceError } from '../resilience/failure.ts';
import type { Outcome } from '../resilience/pipeline.ts';
import { ClientOperation } from './client-operation.ts';
import type { Json, UpstreamRequest } from './types.ts';
import { type Answer, type Renewable, type RequestSite, UpstreamCall } from './upstream-call.ts';
import { lostAnswerError } from './upstream-failure.ts';
import { isReadOnly, toolOf } from './upstream-tools.ts';

/** The failure that an answer tells of, for the policies: such answers are never kept. */
const failureIn = (answer: Answer): Failure | undefined => {
  if ('error' in answer) return createFailure('TOOL_ERROR');
  return answer.result.isError === true ? createFailure('TOOL_ERROR') : undefined;
};

/** Undefined for arguments that have no identity: such a call is not cached. */
const keyOf = (upstream: string, tool: string, request: UpstreamRequest): string | undefined => {
  try {
    const { params, principal } = request;
    return cacheKey({ dependency: upstream, operation: tool, args: params?.arguments, principal });
  } catch {
    return undefined;
  }
};

/** How the pipelines are to treat the request. */
const optionsOf = <Origin extends Renewable>(
  { host }: RequestSite<Origin>,
  request: UpstreamRequest,
  tool: string | undefined,
  idempotent: boolean,
): CallOptions<Answer> => {
  const { signal, principal } = request;
  const { config, policies, classifyResult } = host;
  const cacheable = tool !== undefined && policies.caches(tool) && isReadOnly(config, request);
  const key = cacheable ? keyOf(config.name, tool, request) : undefined;
  const told = (answer: Answer) =>
    'result' in answer ? classifyResult?.(answer.result) : undefined;
  const judge = key === undefined ? told : (answer: Answer) => told(answer) ?? failureIn(answer);
  return {
    idempotent,
    ...(signal && { signal }),
    ...(principal !== undefined && { rateLimitKey: principal }),
    ...(key !== undefined && { cacheKey: key }),
    ...((classifyResult || key !== undefined) && { classifyResult: judge }),
  };
};

const ANSWERED_BY = { cache: 'cache', stale: 'stale_cache' } as const;

/** What the request comes to: the upstream's answer, or what `UpstreamSession.request` throws. */
const settle = (outcome: Outcome<Answer>, operation: ClientOperation): Json => {
  if (!outcome.ok) throw outcome.error;
  const { value, ...facts } = outcome;
  if ('error' in value) throw value.error;
  const { source } = outcome;
  const kept = source === 'cache' || source === 'stale';
  // Only what may be kept is marked: everything else passes as it came.
  const marked = kept || outcome.cachedUntil !== undefined;
  const result = marked
    ? (toResult({ ...facts, value: value.result as ToolResult }) as unknown as Json)
    : value.result;
  operation.answered(result, kept ? ANSWERED_BY[source] : 'upstream');
  return result;
};

/** Asks the policies of the tool, then those of the upstream. */
const ask = async <Origin extends Renewable>(
  site: RequestSite<Origin>,
  request: UpstreamRequest,
  operation: ClientOperation,
): Promise<Json> => {
  const { host, guard } = site;
  const { config, names, policies, toolBreakers } = host;
  const tool = toolOf(request);
  const args = request.params?.arguments;
  const asked = <T>(by: 'tool_guard' | 'tool_breaker', question: () => T): T => {
    try {
      return question();
    } catch (error) {
      operation.failed(error, by);
      throw error;
    }
  };
  if (tool !== undefined) asked('tool_guard', () => guard?.check(config.name, tool, args));
  const permit =
    tool === undefined
      ? undefined
      : asked('tool_breaker', () => toolBreakers.acquire(tool, names.tools.has(tool)));
  const call = new UpstreamCall(site, request, operation);
  let answer: Json | JsonRpcError | undefined;
  try {
    const options = optionsOf(site, request, tool, call.repeatable);
    const outcome = await policies.run(tool, call.attempt, options);
    // What was kept says nothing of how the tool is now.
    if (outcome.ok && outcome.source === 'call') {
      answer = 'error' in outcome.value ? outcome.value.error : outcome.value.result;
    }
    return settle(outcome, operation);
  } catch (error) {
    if (request.signal?.aborted) {
      operation.cancelled();
      throw request.signal.reason;
    }
    const what = tool === undefined ? request.method : `"${tool}"`;
    const told =
      error instanceof ResilienceError ? lostAnswerError(config, what, error, call.handed) : error;
    operation.failed(told);
    throw told;
  } finally {
    permit?.settle(answer);
    if (tool !== undefined && answer !== undefined) guard?.answered(tool, args, answer);
  }
};

/** Makes a protected request; see `UpstreamSession.request`. */
export const makeRequest = <Origin extends Renewable>(
  site: RequestSite<Origin>,
  request: UpstreamRequest,
): Promise<Json> => {
  const { host, channel } = site;
  const version = channel.connection?.protocolVersion;
  const operation = new ClientOperation(request, host.identity, host.names, version);
  const asked = context.with(operation.context, () => ask(site, request, operation));
  if (!/\/list$/.test(request.method)) return asked;
  return asked.then(
    (result) => {
      host.names.learn(request.method, result);
      host.discovered(undefined);
      return result;
    },
    (error: unknown) => {
      const told = error instanceof JsonRpcError || request.signal?.aborted;
      if (!told) host.discovered(`${request.method} failed`);
      throw error;
    },
  );
};
