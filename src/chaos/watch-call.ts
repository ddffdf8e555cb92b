/**
 * @module
 * Puts one call of a tool under the eyes of fault injection: which tool and session it belongs to,
 * and whether calls fail that no fault is aimed at.
 */
import { inScope } from './call-scope.ts';
import { asCall } from './fault-marks.ts';
import type { FaultRegistry } from './fault-registry.ts';
import type { OutsideErrors } from './outside-errors.ts';

/** What watching needs. */
export interface WatchCallOptions {
  readonly faults: FaultRegistry;
  readonly outside: OutsideErrors;
}

/** A call of a tool. */
export interface WatchedCall {
  /** As clients name it; undefined for one that is no target. */
  readonly tool: string | undefined;
  readonly dependency?: string | undefined;
  readonly upstream?: string | undefined;
  readonly session?: string | undefined;
  /** Aborted when nobody waits for it any more. */
  readonly signal: AbortSignal;
}

/** What of a result is looked at. */
interface Judged {
  readonly isError?: unknown;
}

/** Makes the call. */
export const watchCall = <T extends Judged>(
  { tool, dependency, upstream, session, signal }: WatchedCall,
  { faults, outside }: WatchCallOptions,
  run: () => T | PromiseLike<T>,
): Promise<T> => {
  const judge = (failed: boolean): void => {
    if (!faults.active) {
      outside.reset();
      return;
    }
    if (signal.aborted || faults.aimsAt({ tool, dependency, upstream })) return;
    const problem = outside.record(failed);
    if (problem !== undefined) faults.halt(problem, 'error_rate');
  };
  const watched = async (): Promise<T> => {
    try {
      const result = await run();
      judge(result?.isError === true);
      return result;
    } catch (error) {
      judge(true);
      throw error;
    }
  };
  return asCall(() => inScope({ tool, session }, watched));
};
