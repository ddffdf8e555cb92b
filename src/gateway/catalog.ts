/**
 * @module
 * What the upstreams of one client session offer together, and the way back from a name or a URI
 * to the upstream that has it. An upstream that does not answer hides what is its own, nothing
 * else.
 */
import { declares, isJson, LISTS, type ListKind } from './catalog-kinds.ts';
import type { Listing, UpstreamLists } from './catalog-list.ts';
import { OwnEntries } from './catalog-own.ts';
import { whoHas } from './catalog-uris.ts';
import { type NameTable, type NamingOptions, nameTable } from './naming.ts';
import type { OwnLists } from './own-offer.ts';
import type { Json, UpstreamSession } from './types.ts';

/** One upstream of a client session. */
export interface Source {
  /** Name of the upstream. */
  readonly name: string;
  readonly session: UpstreamSession;
  readonly lists: UpstreamLists;
  /** Other clients use the session too. */
  readonly shared: boolean;
}

/** Kinds of things that clients call by name. */
export type NamedKind = 'tools' | 'prompts';

/** What a name that a client uses stands for. */
export interface Target {
  readonly source: Source;
  /** The upstream's own name for it. */
  readonly name: string;
  /** Its entry in the upstream's list, where that is known. */
  readonly item: Json | undefined;
}

/** A list of all upstreams. */
export interface CatalogList {
  /** The result to answer with. */
  readonly result: Json;
  /** Who did not answer, and why. */
  readonly missing: readonly { readonly source: Source; readonly error: unknown }[];
}

/** What a catalogue is made of. */
export interface CatalogOptions {
  /** The upstreams of the session, in the order of the configuration. May be alive. */
  readonly sources: () => readonly Source[];
  /** There is one upstream, and it is shown as it is. */
  readonly transparent: boolean;
  /** May be alive. */
  readonly naming?: () => NamingOptions;
  /** What the gateway itself offers, listed after all others. */
  readonly own?: OwnLists | undefined;
  /** Told of the name under which something of it is listed. */
  readonly onOwnName?: (kind: NamedKind, name: string) => void;
  /** Told of the names that clients see, and of those that are not the upstream's own. */
  readonly onNames?: (kind: NamedKind, table: NameTable) => void;
}

const nameIndexes = new WeakMap<Listing, ReadonlyMap<string, Json>>();

/** The entries of a list by name, the first of each; made once for each list. */
const byName = (listing: Listing): ReadonlyMap<string, Json> => {
  let index = nameIndexes.get(listing);
  if (!index) {
    const made = new Map<string, Json>();
    for (const item of listing.items) {
      if (typeof item.name === 'string' && !made.has(item.name)) made.set(item.name, item);
    }
    nameIndexes.set(listing, made);
    index = made;
  }
  return index;
};

/** Entries without repetitions of what tells them apart; the first one stays. */
const unique = (items: readonly Json[], key: string): Json[] => {
  const seen = new Set<unknown>();
  return items.filter((item) => {
    const id = item[key];
    if (seen.has(id)) return false;
    seen.add(id);
    return true;
  });
};

/** The catalogue of one client session. */
export class Catalog {
  /** What the gateway itself offers. */
  readonly own: OwnEntries;
  readonly #options: CatalogOptions;
  /** Lists that were asked for because somebody called without having looked. */
  readonly #looked = new Set<NamedKind>();
  readonly #tables = new Map<NamedKind, { readonly basis: readonly unknown[]; table: NameTable }>();

  constructor(options: CatalogOptions) {
    this.#options = options;
    this.own = new OwnEntries(options.own, (kind) => this.#table(kind), options.onOwnName);
  }

  /**
   * A list of what all upstreams offer, on one page.
   *
   * @throws what the upstream answered or asking it failed with, where there is only one that
   * is shown as it is
   */
  async list(kind: ListKind): Promise<CatalogList> {
    const { transparent, sources: alive } = this.#options;
    const sources = alive();
    const { key } = LISTS[kind];
    if (transparent) {
      const listing = await this.#verbatim(kind, sources[0]);
      if (kind === 'tools' || kind === 'prompts') this.#table(kind);
      const items = listing?.items ?? [];
      const own = this.own.after(kind, items);
      const all = own.length > 0 ? [...items, ...own] : items;
      return { result: { ...listing?.rest, [key]: all }, missing: [] };
    }
    const settled = await Promise.allSettled(sources.map(({ lists }) => lists[kind].get()));
    const present: { source: Source; listing: Listing }[] = [];
    const missing: { source: Source; error: unknown }[] = [];
    for (const [index, source] of sources.entries()) {
      const outcome = settled[index];
      if (outcome?.status === 'fulfilled') present.push({ source, listing: outcome.value });
      else missing.push({ source, error: outcome?.reason });
    }
    return { result: { [key]: this.#merge(kind, present) }, missing };
  }

  #merge(kind: ListKind, present: readonly { source: Source; listing: Listing }[]): Json[] {
    if (kind === 'resources' || kind === 'templates') {
      const items = present.flatMap(({ listing }) => listing.items);
      const once = unique(items, kind === 'resources' ? 'uri' : 'uriTemplate');
      return [...once, ...this.own.after(kind, once)];
    }
    const table = this.#table(kind);
    const items = present.flatMap(({ source, listing }) =>
      [...byName(listing)].flatMap(([own, item]) => {
        const name = table.shown(source.name, own);
        if (name === undefined) return [];
        return [name === own ? item : { ...item, name }];
      }),
    );
    return [...items, ...this.own.after(kind, items)];
  }

  /** That of the only one. What it does not have is not asked for, if the gateway has some. */
  async #verbatim(kind: ListKind, only: Source | undefined): Promise<Listing | undefined> {
    const { capability } = LISTS[kind];
    const offered = only?.session.initializeResult;
    if (this.own.has(capability) && offered && !declares(offered, capability)) return undefined;
    return only?.lists[kind].get();
  }

  /** Whether it is a resource of the gateway's own, that no upstream has listed. */
  isOwnResource(uri: string): boolean {
    if (!this.own.hasResource(uri)) return false;
    const known = this.#options.sources().map(({ lists }) => lists.resources.known?.items ?? []);
    return !known.flat().some((item) => item.uri === uri);
  }

  /** What a name stands for; undefined when nobody has it. */
  async named(kind: NamedKind, shown: string): Promise<Target | undefined> {
    const sources = this.#options.sources();
    const [only] = sources;
    if (this.#options.transparent) {
      if (!only) return undefined;
      const { known } = only.lists[kind];
      // Not waited for: whoever calls without having looked pays nothing for it.
      if (!known && !this.#looked.has(kind)) {
        this.#looked.add(kind);
        const told = () => void this.#table(kind);
        only.lists[kind].get().then(told, () => {});
      }
      return { source: only, name: shown, item: known && byName(known).get(shown) };
    }
    const known = this.#find(kind, shown, sources);
    if (known) return known;
    await Promise.allSettled(sources.map(({ lists }) => lists[kind].get()));
    return this.#find(kind, shown, sources);
  }

  #find(kind: NamedKind, shown: string, sources: readonly Source[]): Target | undefined {
    const entry = this.#table(kind).find(shown);
    const source = entry && sources.find(({ name }) => name === entry.upstream);
    if (!source) return undefined;
    const { known } = source.lists[kind];
    return { source, name: entry.name, item: known && byName(known).get(entry.name) };
  }

  /** Names that clients could have meant by one that is (no longer) there. */
  similar(kind: NamedKind, name: string): string[] {
    return this.#table(kind)
      .entries.filter((entry) => entry.name === name)
      .map(({ shown }) => shown);
  }

  /** Whom to ask for a resource, in this order. */
  async resource(uri: string): Promise<readonly Source[]> {
    const sources = this.#options.sources();
    if (this.#options.transparent) return sources.slice(0, 1);
    await Promise.allSettled(
      sources.flatMap(({ lists }) => [lists.resources.last(), lists.templates.last()]),
    );
    return whoHas(
      uri,
      sources.map((source) => ({
        source,
        resources: source.lists.resources.known,
        templates: source.lists.templates.known,
      })),
    );
  }

  /** Whose template it is, for the completion of its arguments; undefined when nobody's. */
  async template(uriTemplate: string): Promise<Source | undefined> {
    const sources = this.#options.sources();
    if (this.#options.transparent) return sources[0];
    await Promise.allSettled(sources.map(({ lists }) => lists.templates.last()));
    return sources.find(({ lists }) =>
      lists.templates.known?.items.some((item) => isJson(item) && item.uriTemplate === uriTemplate),
    );
  }

  /** Made out of the lists last known, so that the name of what is there depends on no moment. */
  #table(kind: NamedKind): NameTable {
    const { sources, transparent, naming, onNames } = this.#options;
    const lists = sources().map(({ name, lists: { [kind]: list } }) => ({
      name,
      known: list.known,
    }));
    const options = transparent ? { prefix: 'never' as const, safe: false } : (naming?.() ?? {});
    const { prefix, separator } = options;
    const basis = [prefix, separator, ...lists.flatMap(({ name, known }) => [name, known])];
    const made = this.#tables.get(kind);
    if (made?.basis.length === basis.length && made.basis.every((part, n) => part === basis[n])) {
      return made.table;
    }
    const table = nameTable(
      lists.map(({ name, known }) => ({
        upstream: name,
        names: known ? [...byName(known).keys()] : [],
      })),
      options,
    );
    this.#tables.set(kind, { basis, table });
    onNames?.(kind, table);
    return table;
  }
}
