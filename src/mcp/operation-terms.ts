/**
 * @module
 * How telemetry names a request, whether we serve it or make it (OpenTelemetry MCP conventions,
 * semantic-conventions-genai, docs/gen-ai/mcp.md): only with names that are known to exist.
 */
import type { Attributes, Span } from '@opentelemetry/api';
import * as semconv from '../telemetry/semconv.ts';

/** Notifications that have a span of their own (`notice.ts`). */
export const NOTABLE: ReadonlySet<string> = new Set(
  'cancelled elicitation/complete prompts/list_changed resources/list_changed roots/list_changed tools/list_changed'
    .split(' ')
    .map((name) => `notifications/${name}`),
);

// mcp.md, "mcp.method.name": what clients ask servers for, and servers clients.
const METHODS: ReadonlySet<string> = new Set([
  ...(
    'completion/complete elicitation/create initialize logging/setLevel ping prompts/get ' +
    'prompts/list resources/list resources/read resources/subscribe resources/templates/list ' +
    'resources/unsubscribe roots/list sampling/createMessage tools/call tools/list tasks/get ' +
    'tasks/list tasks/result tasks/cancel'
  ).split(' '),
  ...NOTABLE,
]);

/** Longest foreign text that a span holds: the protocol sets no limit. */
const MAX_TEXT = 1_000;

/** A text of the other side as a span may hold it. */
export const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;

/** Kinds of things that are called by name. */
export type NameKind = 'tools' | 'prompts';

/** Names that exist; any other one is recorded as `_other`. */
export interface KnownNames {
  readonly tools?: { has(name: string): boolean };
  readonly prompts?: { has(name: string): boolean };
  /** Told of a name that is not known and that was answered without an error. */
  answered?(kind: NameKind, name: string): void;
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
  /** The name that is `_other` because it is not known (yet). */
  readonly unknown?: { readonly kind: NameKind; readonly name: string } | undefined;
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
  let unknown: Terms['unknown'];
  const named = (kind: NameKind): string => {
    const name = params?.name;
    if (typeof name !== 'string') return semconv.VALUE_OTHER;
    if (known[kind]?.has(name)) return name;
    unknown = { kind, name };
    return semconv.VALUE_OTHER;
  };
  const tool = method === 'tools/call' ? named('tools') : undefined;
  const prompt = method === 'prompts/get' ? named('prompts') : undefined;
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
    unknown,
  };
};

const NAME_ATTRIBUTES = {
  tools: semconv.ATTR_GEN_AI_TOOL_NAME,
  prompts: semconv.ATTR_GEN_AI_PROMPT_NAME,
} as const;

/**
 * The terms for a request that has ended: clients may call without having asked for a list, so
 * that a name which was unknown at the start may be known by now.
 *
 * @param known as at the start
 * @param isGood it was answered, and not with an error
 */
export const termsAtEnd = (terms: Terms, known: KnownNames, isGood: boolean): Terms => {
  const { unknown, attributes } = terms;
  if (!unknown) return terms;
  const { kind, name } = unknown;
  if (isGood && !known[kind]?.has(name)) known.answered?.(kind, name);
  if (!known[kind]?.has(name)) return terms;
  return {
    ...terms,
    spanName: `${attributes[semconv.ATTR_MCP_METHOD_NAME]} ${name}`,
    tool: kind === 'tools' ? name : undefined,
    attributes: { ...attributes, [NAME_ATTRIBUTES[kind]]: name },
    unknown: undefined,
  };
};

/** Has a span say what it was about, where that is known only now. */
export const rename = (span: Span, before: Terms, after: Terms): void => {
  if (after === before) return;
  span.updateName(after.spanName);
  span.setAttributes(after.attributes);
};
