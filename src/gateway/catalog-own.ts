/**
 * @module
 * What the gateway itself offers, as a part of its catalogue: listed after everything else, under
 * names that give way to those of upstreams.
 */
import type { NamedKind } from './catalog.ts';
import type { ListKind } from './catalog-kinds.ts';
import type { NameTable } from './naming.ts';
import type { OwnLists } from './own-offer.ts';
import type { Json } from './types.ts';

const NOTHING: OwnLists = { tools: [], resources: [], prompts: [] };

/** The gateway's own entries of one catalogue. */
export class OwnEntries {
  readonly #lists: OwnLists;
  readonly #table: (kind: NamedKind) => NameTable;
  readonly #onName: ((kind: NamedKind, name: string) => void) | undefined;

  /**
   * @param table names of the upstreams
   * @param onName told of the name under which something is listed
   */
  constructor(
    lists: OwnLists = NOTHING,
    table: (kind: NamedKind) => NameTable,
    onName?: (kind: NamedKind, name: string) => void,
  ) {
    this.#lists = lists;
    this.#table = table;
    this.#onName = onName;
  }

  /** Whether there is anything of a kind for which a capability stands. */
  has(capability: string): boolean {
    const lists: Readonly<Record<string, readonly Json[]>> = { ...this.#lists };
    return Object.hasOwn(lists, capability) && lists[capability]?.length !== 0;
  }

  /** What is listed after `items`. */
  after(kind: ListKind, items: readonly Json[]): readonly Json[] {
    if (kind === 'templates') return [];
    if (kind === 'resources') {
      return this.#lists.resources.filter(({ uri }) => !items.some((item) => item.uri === uri));
    }
    return this.#lists[kind].map((entry) => {
      const name = this.shown(kind, String(entry.name));
      this.#onName?.(kind, name);
      return { ...entry, name };
    });
  }

  /** Name under which something is shown: another one where an upstream's has it already. */
  shown(kind: NamedKind, own: string): string {
    const table = this.#table(kind);
    const names = [own, `gateway_${own}`];
    for (let n = 2; ; n += 1) {
      const free = names.find((name) => table.find(name) === undefined);
      if (free !== undefined) return free;
      names.push(`gateway_${own}_${n}`);
    }
  }

  /** The own name of what is shown under a name; undefined for everything that is not ours. */
  named(kind: NamedKind, shown: unknown): string | undefined {
    if (typeof shown !== 'string') return undefined;
    const names = this.#lists[kind].map(({ name }) => String(name));
    // Whatever it is shown as has its name in it.
    return names.find((name) => shown.includes(name) && this.shown(kind, name) === shown);
  }

  /** Whether it is a resource of ours. */
  hasResource(uri: string): boolean {
    return this.#lists.resources.some((resource) => resource.uri === uri);
  }
}
