/**
 * @module
 * Telemetry of what an upstream asks and tells by itself, after the OpenTelemetry MCP conventions:
 * there we are the SERVER. And of notifications that it gets from us.
 */
import { type Attributes, context, SpanKind, trace } from '@opentelemetry/api';
import { JsonRpcError, type RequestId } from '../mcp/jsonrpc.ts';
import { withNotice } from '../mcp/notice.ts';
import { Operation } from '../mcp/operation.ts';
import { originsOf } from '../mcp/trace-meta.ts';
import { classify } from '../resilience/failure.ts';
import { faultHook } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import { ATTR } from '../telemetry/signals.ts';
import type { UpstreamIdentity } from './client-operation.ts';
import { serverError } from './peer-error.ts';
import type { Json } from './types.ts';

/** A question of an upstream. */
export interface UpstreamQuestion {
  readonly id: RequestId;
  readonly method: string;
  readonly params: Json | undefined;
  /** Aborted when nobody wants the answer any more. */
  readonly signal: AbortSignal;
}

/** The connection that it came by. */
export interface QuestionSite {
  readonly identity: UpstreamIdentity;
  readonly protocolVersion: string | undefined;
  readonly sessionId: string | undefined;
}

/**
 * Has a question answered, with its span active: a child of the upstream's own span where it names
 * one, else of the request of ours that we are in.
 *
 * @throws what `answer` throws
 */
export const answerQuestion = async (
  { id, method, params, signal }: UpstreamQuestion,
  { identity, protocolVersion, sessionId }: QuestionSite,
  answer: () => Promise<Json>,
): Promise<Json> => {
  const { name, network } = identity;
  const address = network[semconv.ATTR_SERVER_ADDRESS];
  const operation = new Operation(
    { jsonrpc: '2.0', id, method },
    {
      known: {},
      network: network[semconv.ATTR_NETWORK_TRANSPORT] === 'pipe' ? 'pipe' : 'tcp',
      sessionId,
      protocolVersion,
      client: typeof address === 'string' ? { address } : undefined,
      ...originsOf(params),
    },
  );
  const response = { jsonrpc: '2.0', id } as const;
  const onAbort = (): void => operation.cancelled();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const result = await context.with(operation.context, () => {
      trace.getActiveSpan()?.setAttribute(ATTR.upstreamName, name);
      return answer();
    });
    faultHook()?.carry(operation);
    operation.answered({ ...response, result });
    return result;
  } catch (error) {
    faultHook()?.carry(operation);
    // The client has given up the call during which it was asked.
    if (!(error instanceof JsonRpcError) && classify(error).code === 'CANCELLED') {
      operation.cancelled();
    }
    const { code, message, data } = serverError(error) as { code: number; message: string } & Json;
    operation.answered({ ...response, error: { code, message, data } });
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
};

const noticeOf = ({ name, network }: UpstreamIdentity): Attributes => ({
  ...network,
  [ATTR.upstreamName]: name,
});

/** Takes a notification of an upstream. */
export const hearNotice = (
  { identity, method, params }: { identity: UpstreamIdentity; method: string; params: unknown },
  take: () => void,
): void => {
  const {
    [semconv.ATTR_SERVER_ADDRESS]: address,
    [semconv.ATTR_SERVER_PORT]: _,
    ...attributes
  } = noticeOf(identity);
  if (address !== undefined) attributes[semconv.ATTR_CLIENT_ADDRESS] = address;
  const origins = () => originsOf(params);
  withNotice(method, { kind: SpanKind.SERVER, attributes, origins }, take);
};

/** Sends an upstream a notification. */
export const sendNotice = (identity: UpstreamIdentity, method: string, send: () => void): void => {
  const origins = () => ({ parent: context.active(), links: [] });
  const attributes = noticeOf(identity);
  withNotice(method, { kind: SpanKind.CLIENT, attributes, origins }, send);
};
