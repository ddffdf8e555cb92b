/**
 * @module
 * A map that never grows beyond its bound. Internal.
 *
 * The order of use is a linked list through the entries rather than the insertion order of a
 * Map: moving an entry by delete and set leaves holes that make the Map rehash itself, while
 * here a hit moves pointers only and allocates nothing.
 */

interface Entry<K, V> {
  readonly key: K;
  /** Undefined once it has gone. */
  value: V | undefined;
  newer: Entry<K, V> | undefined;
  older: Entry<K, V> | undefined;
}

/** Turns of second chance that an insertion gives before it evicts regardless. */
const CHANCES = 8;

/** Bounded map; the least recently used entry makes room for a new one. */
export class LruMap<K, V> {
  readonly #entries = new Map<K, Entry<K, V>>();
  readonly #max: number;
  readonly #pinned: ((value: V) => boolean) | undefined;
  #newest: Entry<K, V> | undefined;
  #oldest: Entry<K, V> | undefined;

  /**
   * @param max Entries kept at most.
   * @param pinned Entries that should survive another round, when enough others can go.
   */
  constructor(max: number, pinned?: (value: V) => boolean) {
    this.#max = max;
    this.#pinned = pinned;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The entry that goes next. */
  get oldest(): { readonly key: K; readonly value: V } | undefined {
    return this.#oldest as { readonly key: K; readonly value: V } | undefined;
  }

  /** The value of `key`, which becomes the most recently used. */
  get(key: K): V | undefined {
    // The same key again is the common case, and needs no look-up.
    if (this.#newest?.key === key) return this.#newest.value;
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#unlink(entry);
    this.#link(entry);
    return entry.value;
  }

  /** The value of `key`, without counting as a use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  set(key: K, value: V): void {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.value = value;
      this.#unlink(known);
      this.#link(known);
      return;
    }
    if (this.#entries.size >= this.#max) this.#evict();
    const entry: Entry<K, V> = { key, value, newer: undefined, older: undefined };
    this.#entries.set(key, entry);
    this.#link(entry);
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.#unlink(entry);
    // Tables of the Map that are dead may hold it, and it must keep nothing alive (`transient.ts`).
    entry.value = undefined;
    entry.newer = undefined;
    entry.older = undefined;
    return true;
  }

  clear(): void {
    for (const entry of this.#entries.values()) entry.value = undefined;
    this.#entries.clear();
    this.#newest = undefined;
    this.#oldest = undefined;
  }

  #evict(): void {
    for (let chance = 0; chance < CHANCES; chance += 1) {
      const entry = this.#oldest;
      if (entry === undefined || this.#pinned?.(entry.value as V) !== true) break;
      this.#unlink(entry);
      this.#link(entry);
    }
    if (this.#oldest !== undefined) this.delete(this.#oldest.key);
  }

  #link(entry: Entry<K, V>): void {
    entry.newer = undefined;
    entry.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #unlink(entry: Entry<K, V>): void {
    if (entry.newer === undefined) this.#newest = entry.older;
    else entry.newer.older = entry.older;
    if (entry.older === undefined) this.#oldest = entry.newer;
    else entry.older.newer = entry.newer;
  }
}
