/**
 * @module
 * Names of tools and prompts that are known to exist because a call of them was answered well: for
 * clients that call without having looked, before anybody has.
 */
import type { NameKind } from '../mcp/operation-terms.ts';

/** Names taken at most, of each kind: a server may answer to whatever name a client makes up. */
const MAX_NAMES = 100;

/** Longest one: twice what the protocol recommends (2025-11-25, server/tools, "Tool Names"). */
const MAX_LENGTH = 256;

/** Adds to the names that are known, until they have been listed. */
export class AnsweredNames {
  readonly #known: Readonly<Record<NameKind, Set<string>>>;
  readonly #left: Record<NameKind, number> = { tools: MAX_NAMES, prompts: MAX_NAMES };

  constructor(known: Readonly<Record<NameKind, Set<string>>>) {
    this.#known = known;
  }

  /** There is a list, and what is not in it does not exist. */
  listed(kind: NameKind): void {
    this.#left[kind] = 0;
  }

  /** Something of that name has given an answer which is no error. */
  add(kind: NameKind, name: string): void {
    if (this.#left[kind] === 0 || name.length > MAX_LENGTH) return;
    this.#left[kind] -= 1;
    this.#known[kind].add(name);
  }
}
