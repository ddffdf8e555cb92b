/**
 * @module
 * The kinds of things that servers list, how each list is asked for, and what a server says of it
 * in its answer to `initialize`.
 */
import type { Json } from './types.ts';

/** What servers list. `templates` are those of resources. */
export type ListKind = 'tools' | 'resources' | 'templates' | 'prompts';

interface ListSpec {
  readonly method: string;
  /** Where the result has the entries. */
  readonly key: string;
  /** The capability that a server declares if it has such a list. */
  readonly capability: string;
  /** The notification that it has changed. */
  readonly changed: string;
}

/** How each list is asked for (2025-11-25, server/tools, server/resources, server/prompts). */
export const LISTS: Readonly<Record<ListKind, ListSpec>> = {
  tools: {
    method: 'tools/list',
    key: 'tools',
    capability: 'tools',
    changed: 'notifications/tools/list_changed',
  },
  resources: {
    method: 'resources/list',
    key: 'resources',
    capability: 'resources',
    changed: 'notifications/resources/list_changed',
  },
  templates: {
    method: 'resources/templates/list',
    key: 'resourceTemplates',
    capability: 'resources',
    changed: 'notifications/resources/list_changed',
  },
  prompts: {
    method: 'prompts/list',
    key: 'prompts',
    capability: 'prompts',
    changed: 'notifications/prompts/list_changed',
  },
};

/** Every notification that a list has changed. */
export const LIST_CHANGES: ReadonlySet<string> = new Set(
  Object.values(LISTS).map(({ changed }) => changed),
);

/** The lists that have changed when this notification comes; none for any other. */
export const changedLists = (method: string): ListKind[] =>
  Object.entries(LISTS)
    .filter(([, { changed }]) => changed === method)
    .map(([kind]) => kind as ListKind);

/** An object of JSON, and no array. */
export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object under a key; an empty one where there is none. */
export const jsonAt = (value: unknown, key: string): Json => {
  const inner = isJson(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return isJson(inner) ? inner : {};
};

/** Whether the upstream has declared a capability. */
export const declares = (initializeResult: Json | undefined, capability: string): boolean => {
  const capabilities = jsonAt(initializeResult, 'capabilities');
  return Object.hasOwn(capabilities, capability) && isJson(capabilities[capability]);
};

/** Whether the upstream has promised to tell when the list changes. */
export const tellsOfChanges = (initializeResult: Json | undefined, kind: ListKind): boolean =>
  jsonAt(jsonAt(initializeResult, 'capabilities'), LISTS[kind].capability).listChanged === true;
