/**
 * @module
 * Span and metric of one HTTP request to an upstream, after the HTTP conventions of OpenTelemetry
 * (docs/http/http-spans.md, "HTTP client span"; stable). The instrumentation of `node:http` does
 * not see our requests, so they say themselves what it would say of them.
 */
import {
  type Attributes,
  context,
  isSpanContextValid,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { classify } from '../resilience/failure.ts';
import { redactUrl } from '../telemetry/http-privacy.ts';
import { faultMarks, instruments, tracer } from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';

/** What is said of every request to one origin. */
export interface HttpTarget {
  readonly address: string;
  readonly port: number;
  /** `http` or `https`. */
  readonly scheme: string;
}

/** One request. Ends once. */
export interface HttpOperation {
  responded(status: number): void;
  /** @param error what ended it before its answer was complete; none where we gave it up */
  end(error?: unknown): void;
}

/** The URL without what may be secret: user, password, and the values in the query. */
const shown = ({ origin, pathname, search }: URL): string =>
  redactUrl(`${origin}${pathname}${search}`);

const codeOf = (error: unknown): string => {
  const { code, cause } = classify(error);
  const given = (cause as { readonly code?: unknown } | undefined)?.code;
  return typeof given === 'string' ? given : code;
};

class Measured implements HttpOperation {
  readonly #metric: Attributes;
  readonly #span: Span | undefined;
  readonly #started = performance.now();
  readonly #context = context.active();
  #over = false;

  constructor(metric: Attributes, span: Span | undefined) {
    this.#metric = metric;
    this.#span = span;
  }

  responded(status: number): void {
    this.#metric[semconv.ATTR_HTTP_RESPONSE_STATUS_CODE] = status;
    this.#span?.setAttribute(semconv.ATTR_HTTP_RESPONSE_STATUS_CODE, status);
    if (status >= 400) this.#fail(String(status));
  }

  end(error?: unknown): void {
    if (this.#over) return;
    this.#over = true;
    if (error !== undefined) this.#fail(codeOf(error));
    const meters = instruments();
    if (meters.enabled) {
      const seconds = (performance.now() - this.#started) / 1_000;
      meters.httpClientDuration.record(seconds, this.#metric, this.#context);
    }
    this.#span?.end();
  }

  #fail(errorType: string): void {
    this.#metric[semconv.ATTR_ERROR_TYPE] = errorType;
    this.#span?.setAttribute(semconv.ATTR_ERROR_TYPE, errorType);
    this.#span?.setStatus({ code: SpanStatusCode.ERROR });
  }
}

/**
 * Begins to measure a request, and puts the trace context into its headers. Within a call it has
 * a span; what belongs to none, such as a stream that stays open for hours, is only counted.
 * Undefined where nobody listens.
 */
export const startHttpOperation = (
  method: string,
  url: URL,
  { address, port, scheme }: HttpTarget,
  headers: Record<string, string>,
): HttpOperation | undefined => {
  const parent = context.active();
  const around = trace.getSpanContext(parent);
  const within = around !== undefined && isSpanContextValid(around);
  if (!within && !instruments().enabled) return undefined;
  const metric: Attributes = {
    [semconv.ATTR_HTTP_REQUEST_METHOD]: method,
    [semconv.ATTR_SERVER_ADDRESS]: address,
    [semconv.ATTR_SERVER_PORT]: port,
    [semconv.ATTR_URL_SCHEME]: scheme,
  };
  let span: Span | undefined;
  if (within) {
    const attributes = { ...metric, ...faultMarks(), [semconv.ATTR_URL_FULL]: shown(url) };
    span = tracer().startSpan(method, { kind: SpanKind.CLIENT, attributes }, parent);
    propagation.inject(trace.setSpan(parent, span), headers);
    if (!span.isRecording()) span = undefined;
  }
  return new Measured(metric, span);
};
