/**
 * @module
 * Time that moves when told, for libraries that cannot be handed a clock: it stands in for the
 * global timers, `Date` and `performance.now`, so all of them run on the very same time, ours
 * through its own system clock included.
 */

interface Entry {
  at: number;
  readonly order: number;
  readonly every: number | undefined;
  readonly fire: () => void;
}

const {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  Date: RealDate,
} = globalThis;

/** What Node's timers take at most; a longer delay becomes 1 ms, there as here. */
const MAX_DELAY = 2 ** 31 - 1;
const EPOCH = RealDate.parse('2026-01-01T00:00:00Z');
/** Not 0: code that takes 0 for "not set" must not get away with it. */
const ORIGIN = 100_000;

/** Lets every promise reaction that is ready run. Uses the real event loop. */
export const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class VirtualTime {
  #now = ORIGIN;
  #order = 0;
  readonly #handles = new Map<object, Entry>();

  /** Milliseconds since it was installed. */
  get elapsed(): number {
    return this.#now - ORIGIN;
  }

  /** Puts itself in place of the real time until `uninstall`. */
  install(): void {
    const wall = () => EPOCH + this.elapsed;
    const timer =
      (repeat: boolean) =>
      (callback: () => void, delay?: number, ...args: []) =>
        this.#add(() => callback(...args), delay, repeat);
    const clear = (handle: unknown) => {
      if (typeof handle === 'object' && handle !== null) this.#handles.delete(handle);
    };
    class VirtualDate extends RealDate {
      constructor(...args: []) {
        if (args.length === 0) super(wall());
        else super(...args);
      }
      static override now = wall;
    }
    Object.assign(globalThis, {
      setTimeout: timer(false),
      setInterval: timer(true),
      clearTimeout: clear,
      clearInterval: clear,
      Date: VirtualDate,
    });
    Object.defineProperty(performance, 'now', { configurable: true, value: () => this.#now });
  }

  /** Puts the real time back. What was waiting never happens. */
  uninstall(): void {
    this.#handles.clear();
    Object.assign(globalThis, {
      setTimeout,
      setInterval,
      clearTimeout,
      clearInterval,
      Date: RealDate,
    });
    // The real one stands on the prototype.
    Reflect.deleteProperty(performance, 'now');
  }

  /** Moves time, fires what is due in order, and lets promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await flush();
    for (let due = this.#next(end); due; due = this.#next(end)) {
      const [handle, entry] = due;
      this.#now = Math.max(this.#now, entry.at);
      if (entry.every === undefined) this.#handles.delete(handle);
      else entry.at += entry.every;
      entry.fire();
      await flush();
    }
    this.#now = end;
    await flush();
  }

  #add(fire: () => void, delay: number | undefined, repeat: boolean): object {
    const wait = delay !== undefined && delay >= 1 && delay <= MAX_DELAY ? Math.trunc(delay) : 1;
    const handle = { ref: () => handle, unref: () => handle, hasRef: () => false };
    const every = repeat ? wait : undefined;
    this.#handles.set(handle, { at: this.#now + wait, order: this.#order++, every, fire });
    return handle;
  }

  #next(end: number): [object, Entry] | undefined {
    let best: [object, Entry] | undefined;
    for (const pair of this.#handles) {
      const [, entry] = pair;
      if (entry.at > end) continue;
      const first = best?.[1];
      if (!first || entry.at < first.at || (entry.at === first.at && entry.order < first.order)) {
        best = pair;
      }
    }
    return best;
  }
}
