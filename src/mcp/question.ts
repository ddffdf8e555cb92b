/**
 * @module
 * Span and metrics of what a server asks its client (sampling, elicitation, roots), after the
 * OpenTelemetry MCP conventions: whoever asks is the CLIENT. Never its params, never the answer.
 */
import type { TransportSendOptions } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { classify } from '../resilience/failure.ts';
import { TransientMap } from '../resilience/transient.ts';
import { faultMarks, instruments, tracer } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from './jsonrpc.ts';
import { cut, termsOf } from './operation-terms.ts';
import { sentCode } from './tool-duration.ts';
import { traced } from './trace-meta.ts';

/** How a server sends a question to its client. */
export interface AskOptions extends TransportSendOptions {
  /** It is sent again if it cannot be sent now. Default false: then that is its end. */
  readonly again?: boolean;
}

/** What is known of the connection to the client. */
export interface QuestionFacts {
  readonly network: Attributes;
  readonly sessionId: string | undefined;
  readonly protocolVersion: string | undefined;
  /** The request during which it is asked, where no span is active. */
  readonly during: Context | undefined;
}

/** How the SDK (1.32.2) begins the reason of its cancellation when nobody answered in time. */
const OUT_OF_TIME = /^McpError: MCP error -32001: /;

interface Ending {
  readonly errorType?: string | undefined;
  /** JSON-RPC code of an error response. */
  readonly status?: string;
  readonly message?: string;
}

/** One question. Ends once. */
class Question {
  readonly context: Context;
  readonly #span: Span;
  readonly #metric: Attributes;
  readonly #marks = faultMarks();
  readonly #started = performance.now();

  constructor({ id, method }: JSONRPCRequest, facts: QuestionFacts) {
    const { network, sessionId, protocolVersion, during } = facts;
    const { spanName, attributes } = termsOf({ method }, {}, network, protocolVersion);
    this.#metric = attributes;
    const active = context.active();
    const parent = trace.getSpan(active) ? active : (during ?? active);
    this.#span = tracer().startSpan(
      spanName,
      {
        kind: SpanKind.CLIENT,
        attributes: {
          ...attributes,
          ...this.#marks,
          [semconv.ATTR_JSONRPC_REQUEST_ID]: String(id),
          ...(sessionId && { [semconv.ATTR_MCP_SESSION_ID]: sessionId }),
        },
      },
      parent,
    );
    this.context = trace.setSpan(parent, this.#span);
  }

  end({ errorType, status, message }: Ending): void {
    const seconds = (performance.now() - this.#started) / 1_000;
    const result: Attributes = {
      ...this.#marks,
      ...(errorType && { [semconv.ATTR_ERROR_TYPE]: errorType }),
      ...(status && { [semconv.ATTR_RPC_RESPONSE_STATUS_CODE]: status }),
    };
    const meters = instruments();
    if (meters.enabled) {
      const attributes = { ...this.#metric, ...result };
      meters.clientOperationDuration.record(seconds, attributes, this.context);
    }
    this.#span.setAttributes(result);
    if (errorType) {
      const text = message && { message: cut(message) };
      this.#span.setStatus({ code: SpanStatusCode.ERROR, ...text });
    }
    this.#span.end();
  }
}

/** The questions of one session that have no answer yet. */
export class Questions {
  /** By the id as text: some clients give it back as one. */
  readonly #asked = new TransientMap<string, Question>();

  /** A question is about to be sent, for the first time or again. Returns what to send. */
  ask<M extends JSONRPCRequest>(request: M, facts: () => QuestionFacts): M {
    const key = String(request.id);
    const question = this.#asked.get(key) ?? new Question(request, facts());
    this.#asked.set(key, question);
    return traced(request, question.context);
  }

  /** An answer of the client has come. */
  answered(message: JSONRPCMessage): void {
    if ('error' in message) {
      const { code, message: text } = message.error;
      const status = String(code);
      this.#end(message.id, { errorType: status, status, message: text });
    } else if ('result' in message) this.#end(message.id, {});
  }

  /** Whoever asked no longer wants to know, or has waited long enough. Returns its context. */
  cancelled(id: RequestId, reason: unknown): Context | undefined {
    const isLate = typeof reason === 'string' && OUT_OF_TIME.test(reason);
    return this.#end(id, isLate ? { errorType: 'TIMEOUT', message: reason } : {});
  }

  /** It could not be sent, and will not be sent again. */
  failed(id: RequestId, error: unknown): void {
    const { code, message } = classify(error);
    this.#end(id, { errorType: sentCode(code), message });
  }

  /** The client has gone: nobody's error, as with its own calls. */
  close(): void {
    for (const id of this.#asked.keys()) this.#end(id, {});
  }

  #end(id: RequestId | undefined, ending: Ending): Context | undefined {
    const key = String(id);
    const question = this.#asked.take(key);
    question?.end(ending);
    return question?.context;
  }
}
