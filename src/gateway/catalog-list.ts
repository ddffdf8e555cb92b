/**
 * @module
 * One list of one upstream session: its tools, resources, templates or prompts, all pages of it.
 * Asked for when somebody needs it, once for all who wait, and kept as long as it holds.
 */
import { CODE, JsonRpcError } from '../mcp/jsonrpc.ts';
import { type Clock, systemClock } from '../resilience/clock.ts';
import { declares, isJson, LISTS, type ListKind, tellsOfChanges } from './catalog-kinds.ts';
import type { Json, UpstreamSession } from './types.ts';

/** All pages of a list. */
export interface Listing {
  readonly items: readonly Json[];
  /** What else the first page had in it: `_meta`, and whatever nobody knew yet. */
  readonly rest: Json;
}

const NOTHING: Listing = { items: [], rest: {} };

/** Pages followed at most: a server that never comes to an end must not hold us for ever. */
const MAX_PAGES = 1_000;

/** Follows the pages to the end, or to a cursor that leads in a circle. */
const readAll = async (session: UpstreamSession, kind: ListKind): Promise<Listing> => {
  const { method, key } = LISTS[kind];
  const seen = new Set<unknown>();
  const items: Json[] = [];
  let rest: Json = {};
  let cursor: unknown;
  do {
    seen.add(cursor);
    const result = await session.request({
      method,
      ...(cursor !== undefined && { params: { cursor } }),
    });
    const { [key]: page, nextCursor, ...others } = result;
    if (seen.size === 1) rest = others;
    if (Array.isArray(page)) for (const item of page) if (isJson(item)) items.push(item);
    cursor = nextCursor;
  } while (typeof cursor === 'string' && !seen.has(cursor) && seen.size < MAX_PAGES);
  return { items, rest };
};

/** Settings of a list. */
export interface ListOptions {
  /** Milliseconds that somebody waits for it at most. */
  readonly discoveryTimeout: number;
  readonly clock?: Clock | undefined;
  /** Whatever the upstream answers is the answer, also when it declares no such list. */
  readonly verbatim?: boolean | undefined;
  /** Called when the list comes that somebody has gone on without. */
  readonly onLate?: (() => void) | undefined;
}

/** The list did not come in time. It is still asked for, and shown once it comes. */
export class ListOverdueError extends Error {
  override readonly name = 'ListOverdueError';
}

const isSame = (one: Listing | undefined, other: Listing): boolean =>
  one !== undefined && JSON.stringify(one) === JSON.stringify(other);

/** Milliseconds that one waits for a list that did not come in time before. */
const SECOND_CHANCE = 500;

/** One list of one upstream session. */
export class UpstreamList {
  readonly kind: ListKind;
  readonly #session: UpstreamSession;
  readonly #options: ListOptions;
  #known: Listing | undefined;
  /** Which of the lists that were asked for is the known one. */
  #knownTurn = 0;
  #turns = 0;
  #fresh = false;
  #running: Promise<Listing> | undefined;
  /** Somebody went on without it, or with an older one. */
  #missed = false;
  #slow = false;

  constructor(kind: ListKind, session: UpstreamSession, options: ListOptions) {
    this.kind = kind;
    this.#session = session;
    this.#options = options;
  }

  /** The last one that came, whether or not it still holds: names stay where they were. */
  get known(): Listing | undefined {
    return this.#known;
  }

  /** It may have changed. */
  invalidate(): void {
    this.#fresh = false;
    // Whoever asks from now on wants what holds from now on.
    this.#running = undefined;
  }

  /**
   * The list, asked for if need be. One whose server does not promise to tell of changes is asked
   * for every time, as its clients would without us.
   *
   * @throws ListOverdueError when it takes too long, and whatever asking for it fails with
   */
  async get(): Promise<Listing> {
    if (this.#fresh && this.#known) return this.#known;
    this.#running ??= this.#start();
    return this.#wait(this.#running);
  }

  /** The last one that came, or the one that comes. */
  async last(): Promise<Listing> {
    return this.#known ?? this.get();
  }

  #start(): Promise<Listing> {
    this.#turns += 1;
    const turn = this.#turns;
    const running = this.#read().then(
      (listing) => {
        if (this.#running === running) {
          this.#running = undefined;
          this.#fresh = tellsOfChanges(this.#session.initializeResult, this.kind);
        }
        // One that was asked for earlier may come later.
        if (turn < this.#knownTurn) return listing;
        const missed = this.#missed && !isSame(this.#known, listing);
        this.#missed = false;
        this.#known = listing;
        this.#knownTurn = turn;
        if (missed) this.#options.onLate?.();
        return listing;
      },
      (error: unknown) => {
        if (this.#running === running) this.#running = undefined;
        throw error;
      },
    );
    return running;
  }

  async #read(): Promise<Listing> {
    const { capability } = LISTS[this.kind];
    const session = this.#session;
    const { verbatim = false } = this.#options;
    const offered = session.initializeResult ?? (await session.ready());
    if (!verbatim && !declares(offered, capability)) return NOTHING;
    try {
      return await readAll(session, this.kind);
    } catch (error) {
      // Many servers with resources know nothing of templates.
      const unknown = error instanceof JsonRpcError && error.code === CODE.methodNotFound;
      if (unknown && !verbatim && this.kind === 'templates') return NOTHING;
      throw error;
    }
  }

  /** Waits no longer than it may, and hardly at all for one that did not come in time before. */
  #wait(running: Promise<Listing>): Promise<Listing> {
    const { discoveryTimeout, clock = systemClock } = this.#options;
    const limit = this.#slow ? Math.min(SECOND_CHANCE, discoveryTimeout) : discoveryTimeout;
    return new Promise((resolve, reject) => {
      let inTime = true;
      const onTime = () => {
        inTime = false;
        this.#missed = true;
        this.#slow = true;
        const method = LISTS[this.kind].method;
        // An old one is better than none, and than one that comes and goes.
        if (this.#known) resolve(this.#known);
        else reject(new ListOverdueError(`${method} took longer than ${limit} ms`));
      };
      const timer = clock.setTimer(limit, onTime, true);
      running.then(
        (listing) => {
          timer.cancel();
          if (inTime) this.#slow = false;
          resolve(listing);
        },
        (error: unknown) => {
          timer.cancel();
          this.#missed = true;
          reject(error);
        },
      );
    });
  }
}

/** All lists of one upstream session. */
export type UpstreamLists = Readonly<Record<ListKind, UpstreamList>>;

/** Makes the lists of a session; none is asked for yet. */
export const createLists = (
  session: UpstreamSession,
  options: Omit<ListOptions, 'onLate'> & { readonly onLate?: (kind: ListKind) => void },
): UpstreamLists => {
  const make = (kind: ListKind): UpstreamList =>
    new UpstreamList(kind, session, { ...options, onLate: () => options.onLate?.(kind) });
  return {
    tools: make('tools'),
    resources: make('resources'),
    templates: make('templates'),
    prompts: make('prompts'),
  };
};

/** What a session listed may have changed, all of it. */
export const invalidateAll = (lists: UpstreamLists): void => {
  for (const list of Object.values(lists)) list.invalidate();
};
