/**
 * @module
 * Counters of what happens at every call. At each `add` an SDK makes a text of the attributes to
 * find their series, once for every reader: for a call through four policies that costs four
 * times what the policies cost. Here it is paid once per series and collection.
 */
import type { Attributes, Counter } from '@opentelemetry/api';

/** Series kept apart between two collections; beyond that they are handed on early. */
const MAX_SERIES = 1_000;

const NO_ATTRIBUTES: Attributes = {};

/**
 * Adds up until `flush`, which must be called when a collection begins. Tells series apart by
 * the identity of their attributes, so callers keep the object they pass, and never change it.
 *
 * The first `add` after a flush goes through at once: with it the SDK learns when the interval
 * of the series began.
 */
export class Tally implements Counter {
  readonly #counter: Counter;
  readonly #pending = new Map<Attributes, number>();

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  add(value: number, attributes: Attributes = NO_ATTRIBUTES): void {
    const sum = this.#pending.get(attributes);
    if (sum !== undefined) this.#pending.set(attributes, sum + value);
    else {
      if (this.#pending.size >= MAX_SERIES) this.flush();
      this.#pending.set(attributes, 0);
      this.#counter.add(value, attributes);
    }
  }

  flush(): void {
    for (const [attributes, sum] of this.#pending) {
      if (sum > 0) this.#counter.add(sum, attributes);
    }
    this.#pending.clear();
  }
}
