/**
 * @module
 * One side of the drill `slow-shard`: a server in a process of its own, its store, and the agents
 * that call it, with everything that is measured on the way.
 */
import { connectHttp } from '../../mcp/client.ts';
import { type Cleanup, type DrillEnvironment, serverEnvironment } from '../drill-environment.ts';
import { type CallRecord, type RunningLoad, startLoad } from '../drill-load.ts';
import { startServer } from '../drill-process.ts';
import type { Load } from '../drill-schema.ts';
import type { KnowledgeReport, KnowledgeTool } from './knowledge-server.ts';
import { type KnowledgeStore, startStore } from './knowledge-store.ts';

/** One side. */
export interface Side {
  readonly store: KnowledgeStore;
  /** Every call of its agents so far. */
  readonly calls: readonly CallRecord[];
  /** What its server told last. */
  readonly report: () => KnowledgeReport;
  /** Sets the agents to work. */
  begin(): void;
  /** Has the agents stop; calls that run have 3 s to end. */
  halt(): Promise<void>;
  /** Ends agents and server. */
  end(): Promise<void>;
}

/** Calls a second, while agents have answers. */
export const RATE: Readonly<Record<KnowledgeTool, number>> = {
  search_knowledge: 30,
  get_document: 25,
};

/** Milliseconds that an agent waits for `search_knowledge` before it gives up and repeats it. */
export const PATIENCE = 1_500;

/** So many agents that one which is stuck does not take its calls out of the rate at once. */
const LOADS: Readonly<Record<KnowledgeTool, Load>> = {
  search_knowledge: {
    tool: 'search_knowledge',
    arguments: { query: 'refunds {call}' },
    agents: (RATE.search_knowledge * PATIENCE) / 1_000,
    everyMs: PATIENCE,
    retries: 2,
    timeoutMs: PATIENCE,
  },
  get_document: {
    tool: 'get_document',
    arguments: { query: 'terms {call}' },
    agents: RATE.get_document,
    everyMs: 1_000,
    retries: 0,
    timeoutMs: 30_000,
  },
};

/** Calls before anything is measured: code that runs for the first time is slow. */
const WARM_UP = 40;

/** Starts the server and the store of one side. */
export const startSide = async (
  options: {
    readonly isProtected: boolean;
    readonly tools: readonly KnowledgeTool[];
    readonly sinkUrl: string;
  },
  environment: DrillEnvironment,
  cleanup: Cleanup,
): Promise<Side> => {
  const { isProtected, tools, sinkUrl } = options;
  const { command, env, clock, signal } = environment;
  const store = await startStore(clock);
  cleanup.add(() => store.close());
  const server = await startServer({
    command: [
      ...command,
      'drill-knowledge',
      '--store',
      store.url,
      ...(isProtected ? ['--protected'] : []),
    ],
    // The spans of each query and each HTTP request would cost more than the calls themselves.
    env: serverEnvironment(env, sinkUrl, { OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'runtime-node' }),
    clock,
    signal,
  });
  cleanup.add(() => server.stop());
  let last: KnowledgeReport = { pending: 0, oldest: 0 };
  server.onMessage((message) => {
    last = message as KnowledgeReport;
  });

  const calls: CallRecord[] = [];
  const starts: (() => RunningLoad)[] = [];
  for (const tool of tools) {
    const client = await connectHttp(server.url, 'mcp-resilience-drill');
    cleanup.add(() => client.close());
    for (let count = 0; count < WARM_UP; count += 1) await client.call(tool, { query: 'warm-up' });
    const onCall = (call: CallRecord) => calls.push(call);
    starts.push(() => startLoad(LOADS[tool], { client, clock, onCall }));
  }
  let running: readonly RunningLoad[] = [];
  const halt = async (): Promise<void> => {
    await Promise.all(running.map((one) => one.stop()));
  };
  cleanup.add(halt);
  return {
    store,
    calls,
    report: () => last,
    begin: () => {
      running = starts.map((start) => start());
    },
    halt,
    end: async () => {
      await halt();
      await server.stop();
    },
  };
};
