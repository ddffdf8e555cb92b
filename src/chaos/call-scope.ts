/**
 * @module
 * What fault injection must know of the call that runs: which tool and session it belongs to, and
 * which fault holds for it. Known by its async context.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Injection } from './fault-registry.ts';

/** The call that runs. */
export interface CallScope {
  readonly tool?: string | undefined;
  readonly session?: string | undefined;
  /** The fault that holds for the attempt that runs. */
  readonly injection?: Injection;
}

const scopes = new AsyncLocalStorage<CallScope>();

export const currentScope = (): CallScope | undefined => scopes.getStore();

export const inScope = <T>(scope: CallScope, run: () => T): T => scopes.run(scope, run);
