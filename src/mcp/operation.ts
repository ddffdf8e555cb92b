/**
 * @module
 * Span and metrics of one request that we serve, after the OpenTelemetry MCP conventions
 * (semantic-conventions-genai, docs/gen-ai/mcp.md). Never its arguments, never its result.
 */
import type {
  JSONRPCErrorResponse,
  JSONRPCRequest,
  JSONRPCResultResponse,
} from '@modelcontextprotocol/sdk/types.js';
import {
  type Attributes,
  type Context,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { faultMarks, instruments, tracer } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import { ATTR } from '../telemetry/signals.ts';
import { CODE } from './jsonrpc.ts';
import { isToolOutcome, META_FAILURE, META_OUTCOME, type ToolOutcome } from './meta.ts';
import {
  cut,
  type KnownNames,
  rename,
  type Terms,
  termsAtEnd,
  termsOf,
} from './operation-terms.ts';
import { markServed, recordToolDuration, sentCode } from './tool-duration.ts';

export type { KnownNames } from './operation-terms.ts';

/** Attributes of the connection, by its kind. */
export const NETWORK: Readonly<Record<'pipe' | 'tcp', Attributes>> = {
  pipe: { [semconv.ATTR_NETWORK_TRANSPORT]: 'pipe' },
  tcp: {
    [semconv.ATTR_NETWORK_TRANSPORT]: 'tcp',
    [semconv.ATTR_NETWORK_PROTOCOL_NAME]: 'http',
  },
};

/** What is known of a request besides itself. */
export interface OperationFacts {
  readonly known: KnownNames;
  readonly network: 'pipe' | 'tcp';
  readonly sessionId?: string | undefined;
  readonly protocolVersion?: string | undefined;
  readonly client?: { readonly address: string; readonly port?: number } | undefined;
  /** Parent of the span. */
  readonly parent: Context;
  /** Ambient span, where it is not the parent. */
  readonly links: Link[];
}

/**
 * Codes that say that the caller was wrong, or that it has something to do first (-32042).
 * On the server's side they are answers, not errors (mcp.md, "error.type"): whoever sends
 * nonsense shall not turn our error rate red.
 */
const CALLER_FAULTS = new Set<number>([
  CODE.parseError,
  CODE.invalidRequest,
  CODE.methodNotFound,
  CODE.invalidParams,
  -32002,
  -32042,
]);

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** How a request ended, in the terms of the conventions. */
interface Ending {
  readonly outcome: ToolOutcome;
  /** `error.type` of the span and of the operation; absent when it is no error of ours. */
  readonly errorType?: string;
  /** JSON-RPC code of an error response. */
  readonly status?: string;
  readonly message?: string;
  readonly failureCode?: string;
}

const endingOf = (message: JSONRPCResultResponse | JSONRPCErrorResponse): Ending => {
  if ('error' in message) {
    const { code, message: text, data } = message.error;
    const failureCode = sentCode(record(record(data)[META_FAILURE]).code ?? record(data).code);
    return {
      outcome: 'error',
      status: String(code),
      ...(!CALLER_FAULTS.has(code) && { errorType: String(code), message: text }),
      ...(failureCode && { failureCode }),
    };
  }
  const result = record(message.result);
  const meta = record(result._meta);
  const said = meta[META_OUTCOME];
  const outcome = isToolOutcome(said) ? said : result.isError === true ? 'error' : 'success';
  const failureCode = sentCode(record(meta[META_FAILURE]).code);
  const isError = result.isError === true && (outcome === 'error' || outcome === 'rejected');
  return {
    outcome,
    ...(isError && { errorType: semconv.ERROR_TYPE_TOOL_ERROR }),
    ...(failureCode && { failureCode }),
  };
};

/** One request being served. Ends once; whatever comes later is ignored. */
export class Operation {
  /** Context in which the request is to be handled: its span is the active one. */
  readonly context: Context;
  readonly #span: Span;
  readonly #known: KnownNames;
  #terms: Terms;
  readonly #started = performance.now();
  #ended = false;

  constructor(request: JSONRPCRequest, facts: OperationFacts) {
    const { known, network, sessionId, protocolVersion, client, links, parent } = facts;
    const terms = termsOf(request, known, NETWORK[network], protocolVersion);
    this.#known = known;
    this.#terms = terms;
    const attributes: Attributes = {
      ...terms.attributes,
      [semconv.ATTR_JSONRPC_REQUEST_ID]: cut(String(request.id)),
    };
    if (sessionId) attributes[semconv.ATTR_MCP_SESSION_ID] = sessionId;
    if (client) attributes[semconv.ATTR_CLIENT_ADDRESS] = client.address;
    if (client?.port) attributes[semconv.ATTR_CLIENT_PORT] = client.port;
    if (terms.uri !== undefined) attributes[semconv.ATTR_MCP_RESOURCE_URI] = terms.uri;
    const options = { kind: SpanKind.SERVER, links, attributes };
    this.#span = tracer().startSpan(terms.spanName, options, parent);
    this.context = trace.setSpan(markServed(parent), this.#span);
  }

  /** The version that `initialize` agreed on is known only with its answer. */
  negotiated(version: string): void {
    this.#terms.attributes[semconv.ATTR_MCP_PROTOCOL_VERSION] = version;
    this.#span.setAttribute(semconv.ATTR_MCP_PROTOCOL_VERSION, version);
  }

  /** The answer has been sent. */
  answered(message: JSONRPCResultResponse | JSONRPCErrorResponse): void {
    this.#end(endingOf(message));
  }

  /** The client cancelled or has gone; there will be no answer. Not an error of anybody's. */
  cancelled(): void {
    this.#end({ outcome: 'cancelled' });
  }

  #end(ending: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    const seconds = (performance.now() - this.#started) / 1_000;
    const { outcome, errorType, status } = ending;
    const terms = termsAtEnd(this.#terms, this.#known, outcome === 'success');
    rename(this.#span, this.#terms, terms);
    this.#terms = terms;
    // A client that cancels does so from outside of the call.
    const marks = faultMarks(this);
    const result: Attributes = {
      ...marks,
      ...(errorType && { [semconv.ATTR_ERROR_TYPE]: errorType }),
      ...(status && { [semconv.ATTR_RPC_RESPONSE_STATUS_CODE]: status }),
    };
    const meters = instruments();
    if (meters.enabled) {
      const attributes = { ...terms.attributes, ...result };
      meters.serverOperationDuration.record(seconds, attributes, this.context);
      if (terms.tool) {
        const failure = ending.failureCode ?? status ?? semconv.ERROR_TYPE_TOOL_ERROR;
        recordToolDuration(terms.tool, seconds, outcome, failure, this.context, marks);
      }
    }
    if (this.#span.isRecording()) this.#tell(ending, result);
    this.#span.end();
  }

  /** Has the span say how the request ended. */
  #tell({ outcome, errorType, failureCode, message }: Ending, result: Attributes): void {
    this.#span.setAttributes({
      ...result,
      ...(this.#terms.tool && { [ATTR.toolOutcome]: outcome }),
      ...(failureCode && { [ATTR.failureCode]: failureCode }),
    });
    if (!errorType) return;
    // The text of a JSON-RPC error is its status description; a tool's own text is its result.
    const status = { code: SpanStatusCode.ERROR, ...(message && { message: cut(message) }) };
    this.#span.setStatus(status);
  }
}
