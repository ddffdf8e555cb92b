/**
 * @module
 * Clients that go on calling until they are told to stop.
 */

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

/** Calls that repeat, and whose ends are to be waited for when it is over. */
export class Loops {
  #stopped = false;
  readonly #running: Promise<void>[] = [];

  /** Repeats until it is stopped. What a call ends with is not of interest here. */
  start(work: () => Promise<unknown>, everyMs: number): void {
    const run = async (): Promise<void> => {
      while (!this.#stopped) {
        await work().catch(() => {});
        await pause(everyMs);
      }
    };
    this.#running.push(run());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }
}
