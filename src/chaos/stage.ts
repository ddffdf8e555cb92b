/**
 * @module
 * The innermost stage of a pipeline: gives an attempt to the fault that strikes it. It stands
 * inside the attempt's time limit, so that a delay counts against it.
 */

import { CODE, JsonRpcError } from '../mcp/jsonrpc.ts';
import type { ToolResult } from '../mcp/tool.ts';
import type { CallContext } from '../resilience/attempt.ts';
import type { Clock } from '../resilience/clock.ts';
import type { ActiveFault } from './active-fault.ts';
import { currentScope, inScope } from './call-scope.ts';
import { isHttpKind } from './fault.ts';
import type { FaultRegistry, Injection } from './fault-registry.ts';
import type { RecentCalls } from './recent-calls.ts';

type Work<T> = () => T | PromiseLike<T>;

/** What the stage works with. */
export interface StageOptions {
  readonly faults: FaultRegistry;
  readonly calls: RecentCalls;
  /** What the pipelines of this stage protect, and are called after. Default: dependencies. */
  readonly protects?: 'dependency' | 'upstream';
}

/** `inject` of a pipeline; for a tool without one there is no dependency to name. */
export type Stage = <T>(
  name: string | undefined,
  context: Pick<CallContext, 'signal' | 'attempt'>,
  work: Work<T>,
) => T | PromiseLike<T>;

/**
 * Waits until the time is over or the fault lets go, whichever is first.
 *
 * @throws the reason of the signal, as soon as it aborts
 */
const hold = (clock: Clock, delay: number, fault: ActiveFault, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const leave = () => {
      timer.cancel();
      release();
      signal.removeEventListener('abort', onAbort);
    };
    const onAbort = () => {
      leave();
      reject(signal.reason);
    };
    const goOn = () => {
      leave();
      resolve();
    };
    const release = fault.onRelease(goOn);
    const timer = clock.setTimer(delay, goOn, true);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });

/** Gives the answer of a tool as the pipelines of a stage have it, or ends the call with its error. */
type Answering = <T>(
  answer: { readonly result: ToolResult } | { readonly error: JsonRpcError },
) => T;

/** Tools give their result, or throw. */
const asTool: Answering = <T>(answer: Parameters<Answering>[0]): T => {
  if ('error' in answer) throw answer.error;
  return answer.result as T;
};

/** Pipelines of upstreams carry answers as the protocol has them: an error is one too. */
const asUpstream: Answering = <T>(answer: Parameters<Answering>[0]): T => answer as T;

/** What a tool answers that could not do it. It does not say that it was made to. */
const TOOL_ERROR: ToolResult = {
  isError: true,
  content: [{ type: 'text', text: 'The tool could not do this.' }],
};

const throughHttp = async <T>(injection: Injection, work: Work<T>): Promise<T> => {
  let struck = false;
  let ended = false;
  const observed: Injection = {
    fault: injection.fault,
    strike: () => {
      // What the attempt has left behind, such as a timer, is not it any more.
      const strikes = !ended && injection.strike();
      struck ||= strikes;
      return strikes;
    },
  };
  try {
    return await inScope({ ...currentScope(), injection: observed }, work);
  } finally {
    ended = true;
    // It made no request that faults reach, or answered without one.
    if (!struck) injection.fault.missed += 1;
  }
};

const strike = async <T>(
  injection: Injection,
  { faults, protects }: StageOptions,
  signal: AbortSignal,
  work: Work<T>,
): Promise<T> => {
  const { fault } = injection;
  const { kind, target } = fault.spec;
  if (isHttpKind(kind)) return throughHttp(injection, work);
  // An answer in the place of a tool's can stand only where a tool is called.
  const answers = kind === 'tool_error' || kind === 'protocol_error';
  if (answers && currentScope()?.tool === undefined) {
    fault.missed += 1;
    return work();
  }
  const delay = kind === 'latency' || kind === 'hang' ? fault.delay() : 0;
  if (!injection.strike()) return work();
  const answering = protects === 'upstream' ? asUpstream : asTool;
  if (kind === 'tool_error') return answering({ result: TOOL_ERROR });
  if (kind === 'protocol_error') {
    return answering({ error: new JsonRpcError(CODE.internalError, 'Internal error') });
  }
  if (kind === 'upstream_exit' || kind === 'session_loss')
    faults.targets.act(kind, target.upstream);
  else {
    await hold(faults.clock, delay, fault, signal);
    // Given up in the very moment that it went on: the work must not begin.
    signal.throwIfAborted();
  }
  return inScope({ ...currentScope(), injection }, work);
};

/** Makes the stage; pass it to pipelines as `inject`. */
export const createStage = (options: StageOptions): Stage => {
  const { faults, calls, protects = 'dependency' } = options;
  return (name, context, work) => {
    const scope = currentScope();
    const site = { tool: scope?.tool, session: scope?.session, [protects]: name };
    if (context.attempt === 1) calls.record(site);
    const injection = faults.decide({ ...site, attempt: context.attempt }, scope?.injection);
    return injection ? strike(injection, options, context.signal, work) : work();
  };
};
