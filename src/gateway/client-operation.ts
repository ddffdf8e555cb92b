/**
 * @module
 * Span and metrics of one request to an upstream, after the OpenTelemetry MCP conventions
 * (semantic-conventions-genai, docs/gen-ai/mcp.md): the CLIENT twin of `mcp/operation.ts`. One for
 * each call, with everything that the policies did about it. Never its arguments or its result.
 */
import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { JsonRpcError } from '../mcp/jsonrpc.ts';
import { META_FAILURE } from '../mcp/meta.ts';
import {
  cut,
  type KnownNames,
  rename,
  type Terms,
  termsAtEnd,
  termsOf,
} from '../mcp/operation-terms.ts';
import { sentCode } from '../mcp/tool-duration.ts';
import { classify } from '../resilience/failure.ts';
import { faultMarks, instruments, tracer } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import { ATTR } from '../telemetry/signals.ts';
import { hostOf, portOf } from './origin.ts';
import type { Json, UpstreamAddress } from './types.ts';

/** What telemetry says of every request to one upstream. */
export interface UpstreamIdentity {
  readonly name: string;
  /** network.*, server.*: on spans and metrics. */
  readonly network: Attributes;
}

/** The attributes that follow from how an upstream is reached. */
export const identityOf = (name: string, address: UpstreamAddress): UpstreamIdentity => {
  if (address.kind === 'stdio') {
    return { name, network: { [semconv.ATTR_NETWORK_TRANSPORT]: 'pipe' } };
  }
  const url = new URL(address.url);
  return {
    name,
    network: {
      [semconv.ATTR_NETWORK_TRANSPORT]: 'tcp',
      [semconv.ATTR_NETWORK_PROTOCOL_NAME]: 'http',
      [semconv.ATTR_SERVER_ADDRESS]: hostOf(url),
      [semconv.ATTR_SERVER_PORT]: portOf(url),
    },
  };
};

/** Who gave the answer: the upstream itself, or one of our policies. */
export type AnsweredBy =
  | 'upstream'
  | 'cache'
  | 'stale_cache'
  | 'circuit_breaker'
  | 'rate_limiter'
  | 'bulkhead'
  | 'timeout'
  | 'deadline'
  | 'tool_guard'
  | 'tool_breaker'
  | 'connection';

const POLICIES: Readonly<Record<string, AnsweredBy>> = {
  CIRCUIT_OPEN: 'circuit_breaker',
  RATE_LIMIT_EXCEEDED: 'rate_limiter',
  BULKHEAD_FULL: 'bulkhead',
  TIMEOUT: 'timeout',
  DEADLINE_EXCEEDED: 'deadline',
};

interface Asked {
  readonly method: string;
  readonly params?: Json | undefined;
}

/** What is known of how a request ended. */
interface Details {
  readonly failureCode?: string | undefined;
  /** JSON-RPC code of an error response. */
  readonly status?: string;
  readonly message?: string;
}

/** One request to an upstream. Ends once. */
export class ClientOperation {
  /** Context in which the request is to be made: its span is the active one. */
  readonly context: Context;
  readonly #span: Span;
  readonly #known: KnownNames;
  readonly #terms: Terms;
  readonly #marks: Attributes | undefined;
  readonly #started = performance.now();

  /**
   * @param known names that the upstream has listed or answered to; any other one is `_other`
   * @param marks of the injected fault because of which it is made. Default: those of the call
   */
  constructor(
    asked: Asked,
    { name, network }: UpstreamIdentity,
    known: KnownNames,
    protocolVersion: string | undefined,
    parent: Context = context.active(),
    marks = faultMarks(),
  ) {
    this.#marks = marks;
    const terms = termsOf(asked, known, network, protocolVersion);
    this.#known = known;
    this.#terms = terms;
    const attributes: Attributes = { ...terms.attributes, ...marks, [ATTR.upstreamName]: name };
    if (terms.uri !== undefined) attributes[semconv.ATTR_MCP_RESOURCE_URI] = terms.uri;
    const options = { kind: SpanKind.CLIENT, attributes };
    this.#span = tracer().startSpan(terms.spanName, options, parent);
    this.context = trace.setSpan(parent, this.#span);
  }

  /** It has been handed to a link. With several attempts the last one counts. */
  sent(id: number, sessionId: string | undefined): void {
    if (!this.#span.isRecording()) return;
    this.#span.setAttributes({
      [semconv.ATTR_JSONRPC_REQUEST_ID]: String(id),
      ...(sessionId && { [semconv.ATTR_MCP_SESSION_ID]: sessionId }),
    });
  }

  /** The version that `initialize` agreed on. */
  negotiated(version: string): void {
    this.#terms.attributes[semconv.ATTR_MCP_PROTOCOL_VERSION] = version;
    this.#span.setAttribute(semconv.ATTR_MCP_PROTOCOL_VERSION, version);
  }

  /** There is a result, from the upstream or out of a cache. */
  answered(result: Json, by: AnsweredBy = 'upstream'): void {
    const meta = result._meta as Json | undefined;
    const told = (meta?.[META_FAILURE] as Json | undefined)?.code;
    const errorType = result.isError === true ? semconv.ERROR_TYPE_TOOL_ERROR : undefined;
    this.#end(by, errorType, { failureCode: sentCode(told) });
  }

  /** There is no result: an error response, a refusal of ours, or a lost connection. */
  failed(error: unknown, by?: AnsweredBy): void {
    if (error instanceof JsonRpcError) {
      const status = String(error.code);
      this.#end(by ?? 'upstream', status, { status, message: error.message });
      return;
    }
    const { code, message, cause } = classify(error);
    const inner = code === 'OUTCOME_UNKNOWN' ? classify(cause).code : code;
    const failureCode = sentCode(code);
    this.#end(by ?? POLICIES[inner] ?? 'connection', failureCode, { failureCode, message });
  }

  /** The client cancelled or has gone. Not an error of anybody's. */
  cancelled(): void {
    this.#end(undefined, undefined, {});
  }

  #end(by: AnsweredBy | undefined, errorType: string | undefined, details: Details): void {
    const seconds = (performance.now() - this.#started) / 1_000;
    const terms = termsAtEnd(this.#terms, this.#known, by === 'upstream' && !errorType);
    rename(this.#span, this.#terms, terms);
    const result: Attributes = {
      // A fault may have struck meanwhile.
      ...(faultMarks() ?? this.#marks),
      ...(errorType && { [semconv.ATTR_ERROR_TYPE]: errorType }),
      ...(details.status && { [semconv.ATTR_RPC_RESPONSE_STATUS_CODE]: details.status }),
    };
    const meters = instruments();
    if (meters.enabled) {
      const attributes = { ...terms.attributes, ...result };
      meters.clientOperationDuration.record(seconds, attributes, this.context);
    }
    if (this.#span.isRecording()) {
      this.#span.setAttributes({ ...result, ...(by && { [ATTR.answeredBy]: by }) });
      this.#tell(errorType, details);
    }
    this.#span.end();
  }

  /** Has the span say what went wrong, if anything did. */
  #tell(errorType: string | undefined, { failureCode, message }: Details): void {
    if (failureCode) this.#span.setAttribute(ATTR.failureCode, failureCode);
    if (!errorType) return;
    const status = { code: SpanStatusCode.ERROR, ...(message && { message: cut(message) }) };
    this.#span.setStatus(status);
  }
}
