/**
 * @module
 * The load of a drill: agents that call a tool at a set pace, and repeat what failed as agents
 * do, at once and without asking anybody.
 */
import type { HttpClient } from '../mcp/client.ts';
import { isToolOutcome, META_FAILURE, META_OUTCOME } from '../mcp/meta.ts';
import type { ToolResult } from '../mcp/tool.ts';
import { type Clock, sleep } from '../resilience/clock.ts';
import { classify } from '../resilience/failure.ts';
import { type Load, nameOf } from './drill-schema.ts';

/** One call as an agent saw it. */
export interface CallRecord {
  readonly load: string;
  readonly tool: string;
  /** When it began, in milliseconds since the Unix epoch. */
  readonly at: number;
  readonly seconds: number;
  /** `tool.outcome` as the answer tells it, or `lost`: there was no answer. */
  readonly outcome: string;
  /** Code of the failure. */
  readonly code?: string;
  /** Seconds after which it may be tried again, where the answer said so. */
  readonly retryAfter?: number;
  /** 0 for the first try of an agent, counting up for its repetitions. */
  readonly repetition: number;
}

/** Agents at work. */
export interface RunningLoad {
  /** Lets no further call begin; calls that run have 3 s to end. Never rejects. */
  stop(): Promise<void>;
}

/** What agents need. */
export interface LoadOptions {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly onCall: (call: CallRecord) => void;
}

const LAST_CALLS = 3_000;

/** `{agent}` and `{call}` in texts are replaced. */
const fill = (value: unknown, agent: number, call: number): unknown => {
  if (typeof value === 'string') {
    return value.replaceAll('{agent}', String(agent)).replaceAll('{call}', String(call));
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, agent, call));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, fill(item, agent, call)]),
  );
};

/** The arguments of one call of one agent. */
export const inputOf = (load: Load, agent: number, call: number): Record<string, unknown> =>
  fill(load.arguments, agent, call) as Record<string, unknown>;

/** What an answer says of how it came about. */
const told = ({
  isError,
  _meta,
}: ToolResult): Pick<CallRecord, 'outcome' | 'code' | 'retryAfter'> => {
  const said = _meta?.[META_OUTCOME];
  const failure = (_meta?.[META_FAILURE] ?? {}) as { code?: unknown; retryAfter?: unknown };
  const outcome = isToolOutcome(said) ? said : isError === true ? 'error' : 'success';
  return {
    outcome,
    ...(typeof failure.code === 'string' && { code: failure.code }),
    ...(typeof failure.retryAfter === 'number' && { retryAfter: failure.retryAfter }),
  };
};

/** True for an outcome that an agent takes for a failure. */
export const isFailed = (outcome: string): boolean =>
  outcome === 'error' || outcome === 'rejected' || outcome === 'lost';

/** Sets the agents of one load to work, spread over their pace so that they do not march in step. */
export const startLoad = (load: Load, { client, clock, onCall }: LoadOptions): RunningLoad => {
  const stopped = new AbortController();
  const givenUp = new AbortController();
  let calls = 0;

  const callOnce = async (agent: number, repetition: number): Promise<string> => {
    calls += 1;
    const input = inputOf(load, agent, calls);
    const at = clock.wallTime();
    const started = clock.now();
    const about = { load: nameOf(load), tool: load.tool, at, repetition };
    let ending: Pick<CallRecord, 'outcome' | 'code' | 'retryAfter'>;
    try {
      const options = { timeout: load.timeoutMs, signal: givenUp.signal };
      ending = told(await client.call(load.tool, input, options));
    } catch (error) {
      ending = { outcome: 'lost', code: classify(error).code };
    }
    onCall({ ...about, seconds: (clock.now() - started) / 1_000, ...ending });
    return ending.outcome;
  };

  const work = async (agent: number): Promise<void> => {
    await sleep(clock, (load.everyMs * agent) / load.agents, stopped.signal);
    for (;;) {
      const started = clock.now();
      for (let repetition = 0; repetition <= load.retries; repetition += 1) {
        const outcome = await callOnce(agent, repetition);
        if (!isFailed(outcome) || stopped.signal.aborted) break;
      }
      const rest = load.everyMs - (clock.now() - started);
      await sleep(clock, Math.max(0, rest), stopped.signal);
    }
  };

  const agents = Array.from({ length: load.agents }, (_, agent) =>
    // The sleep that is ended by `stop` is how an agent ends.
    work(agent).catch(() => {}),
  );
  return {
    stop: async () => {
      stopped.abort();
      const timer = clock.setTimer(LAST_CALLS, () => givenUp.abort(), true);
      await Promise.all(agents);
      timer.cancel();
    },
  };
};
