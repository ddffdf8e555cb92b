/**
 * @module
 * Collections of what comes and goes with every call.
 *
 * A `Map` or `Set` of V8 moves to a new table every few changes, and the table it leaves keeps its
 * entries and points to the new one, for iterators that are under way (V8,
 * `src/objects/ordered-hash-table.h`). Once one of them has grown old, each dead table keeps the
 * next alive until the next full collection, and with it whatever stood in it when it was left: no
 * minor collection frees any call that was ever registered. In a gateway that was everything a
 * call allocates, ten megabytes to copy and promote in each minor collection.
 */

interface Cell<V> {
  value: V | undefined;
}

/** A `Map` that lets go of what was deleted: what tables keep are empty cells. */
export class TransientMap<K extends string | number, V> {
  readonly #cells = new Map<K, Cell<V>>();

  get size(): number {
    return this.#cells.size;
  }

  get(key: K): V | undefined {
    return this.#cells.get(key)?.value;
  }

  has(key: K): boolean {
    return this.#cells.has(key);
  }

  /** A key that is set again keeps its place in the order, as in a `Map`. */
  set(key: K, value: V): void {
    const cell = this.#cells.get(key);
    if (cell) cell.value = value;
    else this.#cells.set(key, { value });
  }

  /** Takes a value out. */
  take(key: K): V | undefined {
    const cell = this.#cells.get(key);
    if (!cell) return undefined;
    const { value } = cell;
    cell.value = undefined;
    this.#cells.delete(key);
    return value;
  }

  /** Keys as they are now, in the order in which they came: a copy, as `values` is. */
  keys(): K[] {
    return [...this.#cells.keys()];
  }

  values(): V[] {
    return Array.from(this.#cells.values(), ({ value }) => value as V);
  }

  clear(): void {
    for (const cell of this.#cells.values()) cell.value = undefined;
    this.#cells.clear();
  }
}

interface Node<T> {
  value: T | undefined;
  before: Node<T> | undefined;
  after: Node<T> | undefined;
}

/** A place in a `TransientSet`; see `TransientSet.add`. */
export type Place<T> = Readonly<Node<T>>;

/** A set without a table, for those who remember their place in it. */
export class TransientSet<T> {
  #first: Node<T> | undefined;
  #last: Node<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @returns the place, to be handed to `leave` once */
  add(value: T): Place<T> {
    const node: Node<T> = { value, before: this.#last, after: undefined };
    if (this.#last) this.#last.after = node;
    else this.#first = node;
    this.#last = node;
    this.#size += 1;
    return node;
  }

  /** Does nothing when it was left before. */
  leave(place: Place<T>): void {
    const node = place as Node<T>;
    const { before, after } = node;
    if (!before && this.#first !== node) return;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    this.#size -= 1;
    // An old node that has gone must not keep alive what came after it.
    node.value = undefined;
    node.before = undefined;
    node.after = undefined;
  }

  /** As they are now, in the order in which they came: a copy. */
  values(): T[] {
    const values: T[] = [];
    for (let node = this.#first; node; node = node.after) values.push(node.value as T);
    return values;
  }
}
