/**
 * @module
 * Answers the requests for resources and prompts (2025-11-25, server/resources and
 * server/prompts). Everything is on the first page of its list.
 */
import { createFailure, failureToJSON } from '../resilience/failure.ts';
import { CODE, JsonRpcError } from './jsonrpc.ts';
import { META_FAILURE } from './meta.ts';
import type { Prompt, Resource } from './prompt.ts';

/** -32002, "Resource not found" (2025-11-25, server/resources, "Error Handling"). */
const RESOURCE_NOT_FOUND = -32_002;

type Params = Readonly<Record<string, unknown>>;

/** What a server offers beside its tools. */
export interface Offer {
  /** What `initialize` says of it. */
  readonly capabilities: { readonly resources?: object; readonly prompts?: object };
  readonly prompts: ReadonlyMap<string, Prompt>;
  /** The result of a request; undefined for methods that are none of these. */
  answer(method: string, params: Params): object | Promise<object> | undefined;
}

/** An error whose data holds the structured failure, as everywhere. */
const refusal = (
  code: 'INVALID_INPUT' | 'NOT_FOUND',
  message: string,
  suggestion: string,
): JsonRpcError =>
  new JsonRpcError(code === 'NOT_FOUND' ? RESOURCE_NOT_FOUND : CODE.invalidParams, message, {
    [META_FAILURE]: failureToJSON(createFailure(code, { message, suggestion })),
  });

/** Of what a peer sent, no more than anybody needs to see. */
const quoted = (text: unknown): string =>
  typeof text === 'string' ? `"${text.length > 128 ? `${text.slice(0, 128)}…` : text}"` : 'none';

const onePage = (params: Params, method: string): void => {
  if (params.cursor === undefined) return;
  throw refusal(
    'INVALID_INPUT',
    `Invalid cursor: everything is on the first page; call ${method} without a cursor`,
    `Call ${method} without a cursor.`,
  );
};

const byKey = <T>(items: readonly T[], what: string, keyOf: (item: T) => string) => {
  const map = new Map<string, T>();
  for (const item of items) {
    if (map.has(keyOf(item))) throw new TypeError(`two ${what} are called "${keyOf(item)}"`);
    map.set(keyOf(item), item);
  }
  return map;
};

const readResource = async (resource: Resource): Promise<object> => {
  const { uri, mimeType } = resource;
  return { contents: [{ uri, mimeType, text: await resource.read() }] };
};

const getPrompt = (prompt: Prompt, given: unknown): object => {
  const values: Params = typeof given === 'object' && given !== null ? (given as Params) : {};
  const args: Record<string, string> = {};
  const problems: string[] = [];
  for (const { name, required = false } of prompt.arguments ?? []) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (typeof value === 'string') args[name] = value;
    else if (value !== undefined) problems.push(`${name} must be a string`);
    else if (required) problems.push(`${name} is missing`);
  }
  try {
    if (problems.length > 0) throw new Error(problems.join('; '));
    const text = prompt.text(args);
    const { description } = prompt;
    return { description, messages: [{ role: 'user', content: { type: 'text', text } }] };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw refusal(
      'INVALID_INPUT',
      `invalid arguments for the prompt ${prompt.name}: ${why}`,
      'prompts/list tells the arguments of each prompt.',
    );
  }
};

/**
 * Prepares what is offered.
 *
 * @throws TypeError for a URI or a name that appears twice
 */
export const createOffer = (
  resourceList: readonly Resource[],
  promptList: readonly Prompt[],
): Offer => {
  const resources = byKey(resourceList, 'resources', ({ uri }) => uri);
  const prompts = byKey(promptList, 'prompts', ({ name }) => name);
  const resourceMethod = (method: string, params: Params) => {
    switch (method) {
      case 'resources/list':
        onePage(params, method);
        return { resources: resourceList.map(({ read: _, ...listed }) => listed) };
      case 'resources/templates/list':
        onePage(params, method);
        return { resourceTemplates: [] };
      case 'resources/read': {
        const resource = typeof params.uri === 'string' ? resources.get(params.uri) : undefined;
        if (resource) return readResource(resource);
        throw refusal(
          'NOT_FOUND',
          `Resource not found: ${quoted(params.uri)}; resources/list tells those that exist`,
          'Use a URI that resources/list gives.',
        );
      }
      default:
        return undefined;
    }
  };
  const promptMethod = (method: string, params: Params) => {
    switch (method) {
      case 'prompts/list':
        onePage(params, method);
        return { prompts: promptList.map(({ text: _, ...listed }) => listed) };
      case 'prompts/get': {
        const prompt = typeof params.name === 'string' ? prompts.get(params.name) : undefined;
        if (prompt) return getPrompt(prompt, params.arguments);
        throw refusal(
          'INVALID_INPUT',
          `Unknown prompt: ${quoted(params.name)}; prompts/list tells the names that exist`,
          'Use a name that prompts/list gives.',
        );
      }
      default:
        return undefined;
    }
  };
  return {
    capabilities: {
      ...(resources.size > 0 && { resources: {} }),
      ...(prompts.size > 0 && { prompts: {} }),
    },
    prompts,
    answer: (method, params) =>
      (resources.size > 0 ? resourceMethod(method, params) : undefined) ??
      (prompts.size > 0 ? promptMethod(method, params) : undefined),
  };
};
