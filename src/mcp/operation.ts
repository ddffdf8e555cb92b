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
import { markServed, recordToolDuration, sentCode } from './tool-duration.ts';

/** Names that exist on this side; any other one that a client sends is recorded as `_other`. */
export interface KnownNames {
  readonly tools?: { has(name: string): boolean };
  readonly prompts?: { has(name: string): boolean };
}

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

// mcp.md, "mcp.method.name"; the methods that a server is asked for.
const METHODS = new Set(
  (
    'completion/complete initialize logging/setLevel ping prompts/get prompts/list ' +
    'resources/list resources/read resources/subscribe resources/templates/list ' +
    'resources/unsubscribe tools/call tools/list tasks/get tasks/list tasks/result tasks/cancel'
  ).split(' '),
);

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

/** Longest text of a client's that a span holds: the SDK itself sets no limit. */
const MAX_TEXT = 1_000;

const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

const bounded = (name: unknown, names: { has(name: string): boolean } | undefined): string =>
  typeof name === 'string' && names?.has(name) ? name : semconv.VALUE_OTHER;

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
  readonly #metric: Attributes;
  readonly #tool: string | undefined;
  readonly #started = performance.now();
  #ended = false;

  constructor(request: JSONRPCRequest, facts: OperationFacts) {
    const method = METHODS.has(request.method) ? request.method : semconv.VALUE_OTHER;
    const name = request.params?.name;
    this.#tool = method === 'tools/call' ? bounded(name, facts.known.tools) : undefined;
    const prompt = method === 'prompts/get' ? bounded(name, facts.known.prompts) : undefined;
    const target = this.#tool ?? prompt;
    this.#metric = {
      [semconv.ATTR_MCP_METHOD_NAME]: method,
      [semconv.ATTR_NETWORK_TRANSPORT]: facts.network,
      ...(facts.network === 'tcp' && { [semconv.ATTR_NETWORK_PROTOCOL_NAME]: 'http' }),
      ...(facts.protocolVersion && { [semconv.ATTR_MCP_PROTOCOL_VERSION]: facts.protocolVersion }),
      ...(prompt && { [semconv.ATTR_GEN_AI_PROMPT_NAME]: prompt }),
      ...(this.#tool && {
        [semconv.ATTR_GEN_AI_TOOL_NAME]: this.#tool,
        [semconv.ATTR_GEN_AI_OPERATION_NAME]: semconv.GEN_AI_OPERATION_EXECUTE_TOOL,
      }),
    };
    const uri = method.startsWith('resources/') ? request.params?.uri : undefined;
    const { client } = facts;
    this.#span = tracer().startSpan(
      target ? `${method} ${target}` : method,
      {
        kind: SpanKind.SERVER,
        links: facts.links,
        attributes: {
          ...this.#metric,
          [semconv.ATTR_JSONRPC_REQUEST_ID]: cut(String(request.id)),
          ...(facts.sessionId && { [semconv.ATTR_MCP_SESSION_ID]: facts.sessionId }),
          ...(client && { [semconv.ATTR_CLIENT_ADDRESS]: client.address }),
          ...(client?.port && { [semconv.ATTR_CLIENT_PORT]: client.port }),
          ...(typeof uri === 'string' && { [semconv.ATTR_MCP_RESOURCE_URI]: cut(uri) }),
        },
      },
      facts.parent,
    );
    this.context = trace.setSpan(markServed(facts.parent), this.#span);
  }

  /** The version that `initialize` agreed on is known only with its answer. */
  negotiated(version: string): void {
    this.#metric[semconv.ATTR_MCP_PROTOCOL_VERSION] = version;
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
    const { outcome, errorType, status, failureCode } = ending;
    // A client that cancels does so from outside of the call.
    const marks = faultMarks(this);
    const result: Attributes = {
      ...marks,
      ...(errorType && { [semconv.ATTR_ERROR_TYPE]: errorType }),
      ...(status && { [semconv.ATTR_RPC_RESPONSE_STATUS_CODE]: status }),
    };
    const meters = instruments();
    if (meters.enabled) {
      meters.serverOperationDuration.record(seconds, { ...this.#metric, ...result }, this.context);
      if (this.#tool) {
        const failure = ending.failureCode ?? status ?? semconv.ERROR_TYPE_TOOL_ERROR;
        recordToolDuration(this.#tool, seconds, outcome, failure, this.context, marks);
      }
    }
    this.#span.setAttributes({
      ...result,
      ...(this.#tool && { [ATTR.toolOutcome]: outcome }),
      ...(failureCode && { [ATTR.failureCode]: failureCode }),
    });
    if (errorType) {
      // The text of a JSON-RPC error is its status description; a tool's own text is its result.
      const { message } = ending;
      this.#span.setStatus({
        code: SpanStatusCode.ERROR,
        ...(message && { message: cut(message) }),
      });
    }
    this.#span.end();
  }
}
