/**
 * @module
 * Names under which clients see what several upstreams offer. Two servers may both have a
 * `search`, and models take names of at most 64 characters of `[A-Za-z0-9_.-]`: so a name may
 * have to change on its way to the client. The way back is a look-up in the table made here,
 * never the parsing of a name: `a__b` may as well be what a server itself calls its tool.
 */
import { createHash } from 'node:crypto';

/** Longest name that clients and model APIs take. */
export const MAX_NAME_LENGTH = 64;

/** When names get their upstream's name in front: where they collide, all of them, or none. */
export type PrefixMode = 'auto' | 'always' | 'never';

/** What one upstream offers, by its own names. */
export interface UpstreamNames {
  /** Name of the upstream. */
  readonly upstream: string;
  /**
   * Names of its tools or prompts; one that is given twice counts once. Those last known of an
   * upstream that is down belong here too: then its return changes no other name.
   */
  readonly names: readonly string[];
}

/** How names are made. */
export interface NamingOptions {
  /** Default `auto`. */
  readonly prefix?: PrefixMode;
  /** Stands between the upstream's name and the tool's. Default `__`. */
  readonly separator?: string;
  /**
   * False keeps names that are too long or have other characters as they are: for a single
   * upstream whose clients know them. Default true.
   */
  readonly safe?: boolean;
}

/** Why a name is not the upstream's own. */
type RenameReason = 'asked' | 'collision' | 'characters' | 'length';

/** A name as clients see it, and where it comes from. */
export interface NameEntry {
  readonly shown: string;
  readonly upstream: string;
  /** The upstream's own name. */
  readonly name: string;
  /** Absent when the name is the upstream's own. */
  readonly reason?: RenameReason;
}

/** The names of all upstreams, in both directions. */
export interface NameTable {
  /** In the order in which upstreams and names were given. */
  readonly entries: readonly NameEntry[];
  /** Where a name that a client sees comes from; undefined when there is none of that name. */
  find(shown: string): NameEntry | undefined;
  /** What clients see for the upstream's own name. */
  shown(upstream: string, name: string): string | undefined;
}

/** Prefix first, then hashes of growing length; with the whole one no two are the same. */
const PREFIXED = 1;
const HASH_LENGTHS = [8, 16, MAX_NAME_LENGTH] as const;
const LAST_LEVEL = PREFIXED + HASH_LENGTHS.length;

interface Draft {
  readonly upstream: string;
  readonly name: string;
  /** 0: its own name. 1: with the prefix. From 2 on: with a hash, longer each time. */
  level: number;
  shown: string;
}

const UNSAFE = /[^A-Za-z0-9_.-]+/g;

const hashOf = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length);

/** A safe beginning, and a hash that keeps apart what the beginning no longer does. */
const hashed = (text: string, identity: string, length: number): string => {
  const room = Math.max(0, MAX_NAME_LENGTH - length - 1);
  const head = text.replace(UNSAFE, '_').slice(0, room);
  return room === 0 ? hashOf(identity, length) : `${head}_${hashOf(identity, length)}`;
};

const flawOf = (text: string): 'characters' | 'length' | undefined => {
  // As the key of an object it would set the prototype, in whatever client makes one of names.
  if (text === '' || text === '__proto__' || text.search(UNSAFE) >= 0) return 'characters';
  return text.length > MAX_NAME_LENGTH ? 'length' : undefined;
};

const draw = (draft: Draft, { prefix, separator, safe }: Required<NamingOptions>): string => {
  const { upstream, name, level } = draft;
  const text = level === 0 || prefix === 'never' ? name : `${upstream}${separator}${name}`;
  if (level <= PREFIXED) {
    return safe && flawOf(text) ? hashed(text, text, HASH_LENGTHS[0]) : text;
  }
  const length = HASH_LENGTHS[level - PREFIXED - 1] ?? MAX_NAME_LENGTH;
  return hashed(text, JSON.stringify([upstream, name]), length);
};

type Groups = Map<string, Set<Draft>>;

const put = (groups: Groups, draft: Draft): void => {
  const group = groups.get(draft.shown);
  if (group) group.add(draft);
  else groups.set(draft.shown, new Set([draft]));
};

/**
 * Raises those of a group that are nearest to their own names. Who had to change already keeps
 * what it has; of equals all change, so that no order of arrival decides.
 */
const raise = (group: ReadonlySet<Draft>, prefix: PrefixMode): readonly Draft[] => {
  const drafts = [...group];
  const lowest = drafts.reduce((least, { level }) => Math.min(least, level), LAST_LEVEL);
  const raised = drafts.filter(({ level }) => level === lowest);
  for (const draft of raised) {
    const step = prefix === 'never' && draft.level === 0 ? 2 : 1;
    draft.level = Math.min(draft.level + step, LAST_LEVEL);
  }
  return raised;
};

/** Gives names until no two are the same. A round looks only at those that the last one touched. */
const settle = (drafts: readonly Draft[], prefix: PrefixMode, name: (draft: Draft) => string) => {
  const groups: Groups = new Map();
  for (const draft of drafts) put(groups, draft);
  let touched = new Set(groups.keys());
  // Ends: every round raises a level, and at the last one no two names are the same.
  while (touched.size > 0) {
    const crowded = [...touched].flatMap((shown) => {
      const group = groups.get(shown);
      return group && group.size > 1 ? [group] : [];
    });
    touched = new Set();
    const raised = crowded.flatMap((group) => raise(group, prefix));
    for (const draft of raised) {
      groups.get(draft.shown)?.delete(draft);
      touched.add(draft.shown);
      draft.shown = name(draft);
    }
    for (const draft of raised) {
      put(groups, draft);
      touched.add(draft.shown);
    }
  }
};

const reasonOf = (draft: Draft, start: number, separator: string): RenameReason | undefined => {
  const { upstream, name, level, shown } = draft;
  if (shown === name) return undefined;
  if (level > start) return 'collision';
  const text = level === 0 ? name : `${upstream}${separator}${name}`;
  return flawOf(text) && shown !== text ? flawOf(text) : 'asked';
};

/**
 * Gives every name of every upstream the name that clients see: no two the same, each of at
 * most 64 characters of `[A-Za-z0-9_.-]`.
 *
 * - A name that nobody else has stays as it is. One that several upstreams have gets its
 *   upstream's name in front, in all of them: `github__search` and `jira__search`.
 * - A name that is too long or has other characters keeps its beginning and gets a hash of
 *   itself at its end.
 * - A name depends on no order, and on no other upstream than those it collides with: who comes
 *   or goes without a collision changes no name. With `always` there is hardly a collision left.
 * - With `never` names that collide get a hash instead of the prefix, so that all can be called.
 *
 * @example
 * ```ts
 * const table = nameTable([
 *   { upstream: 'github', names: ['search', 'get_issue'] },
 *   { upstream: 'jira', names: ['search'] },
 * ]);
 * table.shown('github', 'search'); // 'github__search'
 * table.shown('github', 'get_issue'); // 'get_issue'
 * table.find('jira__search')?.upstream; // 'jira'
 * ```
 */
export const nameTable = (
  upstreams: readonly UpstreamNames[],
  options: NamingOptions = {},
): NameTable => {
  const { prefix = 'auto', separator = '__', safe = true } = options;
  const rules = { prefix, separator, safe };
  const start = prefix === 'always' ? PREFIXED : 0;
  const byOrigin = new Map<string, Map<string, Draft>>();
  for (const { upstream, names } of upstreams) {
    const own = byOrigin.get(upstream) ?? new Map<string, Draft>();
    byOrigin.set(upstream, own);
    for (const name of names) {
      if (own.has(name)) continue;
      const draft: Draft = { upstream, name, level: start, shown: '' };
      draft.shown = draw(draft, rules);
      own.set(name, draft);
    }
  }
  const drafts = [...byOrigin.values()].flatMap((own) => [...own.values()]);
  settle(drafts, prefix, (draft) => draw(draft, rules));
  const entries = drafts.map((draft): NameEntry => {
    const { shown, upstream, name } = draft;
    const reason = reasonOf(draft, start, separator);
    return { shown, upstream, name, ...(reason && { reason }) };
  });
  const byShown = new Map(entries.map((entry) => [entry.shown, entry]));
  return {
    entries,
    find: (shown) => byShown.get(shown),
    shown: (upstream, name) => byOrigin.get(upstream)?.get(name)?.shown,
  };
};
