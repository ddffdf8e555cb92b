/**
 * @module
 * What one line of the benchmark is.
 */

/** One call, made again and again. */
export type Operation = () => unknown;

/** One thing that is measured, in a process of its own. */
export interface Variant {
  /** `library: what`; the key in the results. */
  readonly name: string;
  /** What exactly is done in one call, for the table. */
  readonly about: string;
  /** The calls are refused or fail: they are made in a `try`. Default false. */
  readonly fails?: boolean;
  /** Imports what it needs, so that a process loads no library but its own. */
  readonly make: () => Promise<Operation>;
}

/** The protected work of every variant: an async function that has its answer at once. */
export const work = async (): Promise<number> => 1;

/** Made once: what is measured is the policies, not the stack trace of an error. */
const RESET = Object.assign(new Error('reset by peer'), { code: 'ECONNRESET' });

/** Work that fails as a broken connection does. */
export const failingWork = async (): Promise<number> => {
  throw RESET;
};

/** No time limit of any variant is ever reached. */
export const TIMEOUT = 10_000;
