/**
 * @module
 * How telemetry names a request, whether we serve it or make it (OpenTelemetry MCP conventions,
 * semantic-conventions-genai, docs/gen-ai/mcp.md): only with names that are known to exist.
 */
import type { Attributes } from '@opentelemetry/api';
import * as semconv from '../telemetry/semconv.ts';

// mcp.md, "mcp.method.name"; the methods that a client asks a server for.
const METHODS: ReadonlySet<string> = new Set(
  (
    'completion/complete initialize logging/setLevel ping prompts/get prompts/list ' +
    'resources/list resources/read resources/subscribe resources/templates/list ' +
    'resources/unsubscribe tools/call tools/list tasks/get tasks/list tasks/result tasks/cancel'
  ).split(' '),
);

/** Longest foreign text that a span holds: the protocol sets no limit. */
const MAX_TEXT = 1_000;

/** A text of the other side as a span may hold it. */
export const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;

/** Names that exist; any other one is recorded as `_other`. */
export interface KnownNames {
  readonly tools?: { has(name: string): boolean };
  readonly prompts?: { has(name: string): boolean };
}

/** A request, as far as telemetry looks at it. */
interface Asked {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

/** What telemetry says a request is about. */
export interface Terms {
  /** Name of its span. */
  readonly spanName: string;
  /** Tool that is called, by a name that exists, or `_other`; undefined for other methods. */
  readonly tool: string | undefined;
  /** For spans and metrics; a new object, which may be added to. */
  readonly attributes: Attributes;
  /** URI of a resource, for spans alone. */
  readonly uri: string | undefined;
}

/**
 * The terms for a request.
 *
 * @param known names that exist where it goes
 * @param network attributes of the connection, for spans and metrics
 * @param protocolVersion that was agreed on, where that is known
 */
export const termsOf = (
  { method, params }: Asked,
  known: KnownNames,
  network: Attributes,
  protocolVersion: string | undefined,
): Terms => {
  const bounded = METHODS.has(method) ? method : semconv.VALUE_OTHER;
  const named = (names: KnownNames['tools']): string => {
    const name = params?.name;
    return typeof name === 'string' && names?.has(name) ? name : semconv.VALUE_OTHER;
  };
  const tool = method === 'tools/call' ? named(known.tools) : undefined;
  const prompt = method === 'prompts/get' ? named(known.prompts) : undefined;
  const attributes: Attributes = { [semconv.ATTR_MCP_METHOD_NAME]: bounded, ...network };
  if (protocolVersion) attributes[semconv.ATTR_MCP_PROTOCOL_VERSION] = protocolVersion;
  if (prompt !== undefined) attributes[semconv.ATTR_GEN_AI_PROMPT_NAME] = prompt;
  if (tool !== undefined) {
    attributes[semconv.ATTR_GEN_AI_TOOL_NAME] = tool;
    attributes[semconv.ATTR_GEN_AI_OPERATION_NAME] = semconv.GEN_AI_OPERATION_EXECUTE_TOOL;
  }
  const target = tool ?? prompt;
  const uri = bounded.startsWith('resources/') ? params?.uri : undefined;
  return {
    spanName: target === undefined ? bounded : `${bounded} ${target}`,
    tool,
    attributes,
    uri: typeof uri === 'string' ? cut(uri) : undefined,
  };
};
