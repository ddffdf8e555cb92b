/**
 * @module
 * What the HTTP instrumentations must not record: the values in a query, which for a tool's
 * upstream are the arguments of the call or an API key; a path that holds an argument; and the
 * exports of telemetry itself.
 */
import { context, createContextKey, type Span } from '@opentelemetry/api';
import { faultMarks } from './instruments.ts';

const PRIVATE_PATH = createContextKey('mcp-resilience private path');

/** Runs what sends requests whose path holds an argument of the call: no span shows that path. */
export const withPrivatePath = <T>(run: () => T): T =>
  context.with(context.active().setValue(PRIVATE_PATH, true), run);

const redactQuery = (query: string): string =>
  query.replace(/([^?&=]+)(=[^&]*)?/g, (_, name: string, value?: string) =>
    value === undefined ? 'REDACTED' : `${name}=REDACTED`,
  );

/** Replaces the values in the query of a URL; the names stay, they tell requests apart. */
export const redactUrl = (url: string): string => url.replace(/\?[^#]*/, redactQuery);

/** Takes the path out of a URL. */
const redactPath = (url: string): string => url.replace(/^([^/]*\/\/[^/?#]*)[^?#]*/, '$1/REDACTED');

/**
 * Hook of the HTTP and undici instrumentations: rewrites the URL attributes of a new span, and
 * says which injected fault the request belongs to, if it does.
 */
const redactSpan = (span: Span): void => {
  const marks = faultMarks();
  if (marks) span.setAttributes(marks);
  const { attributes } = span as Span & { attributes?: Record<string, unknown> };
  const url = attributes?.['url.full'];
  const hidesPath = context.active().getValue(PRIVATE_PATH) === true;
  if (typeof url === 'string') {
    span.setAttribute('url.full', redactUrl(hidesPath ? redactPath(url) : url));
  }
  if (hidesPath) span.setAttribute('url.path', '/REDACTED');
  const query = attributes?.['url.query'];
  if (typeof query === 'string') span.setAttribute('url.query', redactQuery(query));
};

/**
 * Settings of the two HTTP instrumentations.
 *
 * @param isExport whether the request being made carries telemetry: it gets no span anyway,
 *   but would count in the metrics of the HTTP client
 */
export const httpConfiguration = (isExport: () => boolean) => ({
  '@opentelemetry/instrumentation-http': {
    ignoreOutgoingRequestHook: isExport,
    requestHook: redactSpan,
  },
  '@opentelemetry/instrumentation-undici': {
    ignoreRequestHook: isExport,
    requestHook: redactSpan,
  },
});
