/**
 * @module
 * The server of the drill `slow-shard`, a process of its own: two tools over one pool of
 * connections, without anything of ours, or with policies.
 */
import { z } from 'zod';
import { servePlain } from '../../mcp/plain-server.ts';
import { protectTool } from '../../mcp/protect.ts';
import { createServer } from '../../mcp/server.ts';
import { defineTool, type Tool, type ToolResult } from '../../mcp/tool.ts';
import { serveHttp } from '../../mcp/transports/http.ts';
import { systemClock, type Timer } from '../../resilience/clock.ts';
import { PipelineRegistry } from '../../resilience/registry.ts';
import { VERSION } from '../../version.ts';
import { KNOWLEDGE_POLICY } from './knowledge-policy.ts';
import { openPool } from './knowledge-pool.ts';

/** The shard that stalls, and one that does not. */
export const SHARDS = { search_knowledge: 1, get_document: 0 } as const;

/** Names of the two tools. */
export type KnowledgeTool = keyof typeof SHARDS;

/** What the server tells its parent, several times a second. */
export interface KnowledgeReport {
  /** Requests that had no answer yet at one time, at most. */
  readonly pending: number;
  /** Milliseconds that a request has been without an answer, at most. */
  readonly oldest: number;
}

/** What to serve. */
export interface KnowledgeOptions {
  /** URL of the store. */
  readonly store: string;
  /** With policies, and the signal of a call handed on to the store. */
  readonly isProtected: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly say: (line: string) => void;
}

const REPORT_INTERVAL = 100;

/** Counts requests without an answer, outside of every policy. */
class Ledger {
  readonly #since = new Set<{ readonly at: number }>();
  #pending = 0;
  #oldest = 0;

  /** The tool with each of its calls counted from beginning to end. */
  count(tool: Tool): Tool {
    const handler: Tool['handler'] = async (input, context) => {
      const call = { at: systemClock.now() };
      this.#since.add(call);
      this.#pending = Math.max(this.#pending, this.#since.size);
      try {
        return await tool.handler(input, context);
      } finally {
        this.#look();
        this.#since.delete(call);
      }
    };
    return { ...tool, handler };
  }

  report(): KnowledgeReport {
    this.#look();
    return { pending: this.#pending, oldest: this.#oldest };
  }

  #look(): void {
    // Sets keep their order: the first is the oldest.
    for (const { at } of this.#since) {
      this.#oldest = Math.max(this.#oldest, systemClock.now() - at);
      return;
    }
  }
}

const result = (text: string): ToolResult => ({ content: [{ type: 'text', text }] });

/** A server that runs until it is closed, or its parent has gone. */
export const serveKnowledge = async (
  options: KnowledgeOptions,
): Promise<{ readonly ended: Promise<void>; close(): Promise<void> }> => {
  const { store, isProtected, env, say } = options;
  const pool = openPool(store);
  const ledger = new Ledger();
  const tool = (name: KnowledgeTool, description: string): Tool =>
    defineTool({
      name,
      description,
      inputSchema: z.object({ query: z.string() }),
      annotations: { readOnlyHint: true },
      // In the founding incident nobody looks at a signal; here that is part of protection.
      handler: async ({ query }, { signal }) =>
        result(await pool.query(SHARDS[name], query, isProtected ? signal : undefined)),
    });
  const tools = [
    tool('search_knowledge', 'Passages on a question'),
    tool('get_document', 'One document'),
  ];

  const ends: (() => unknown)[] = [() => pool.close()];
  let url: string;
  if (isProtected) {
    // Loaded only here: the other server is to have nothing of ours in it.
    const { startTelemetry } = await import('../../telemetry/start.ts');
    const telemetry = startTelemetry({ env });
    const registry = new PipelineRegistry();
    const guarded = tools.map((one) =>
      protectTool(one, {
        pipeline: registry.create(one.name, KNOWLEDGE_POLICY[one.name as KnowledgeTool]),
      }),
    );
    const door = await serveHttp({
      createServer: createServer({
        name: 'knowledge',
        version: VERSION,
        tools: guarded.map((one) => ledger.count(one)),
      }),
      port: 0,
      rateLimit: false,
      maxConnections: 1_000,
    });
    url = door.url;
    ends.unshift(
      () => door.close(),
      () => registry.destroy(),
      () => telemetry.shutdown(),
    );
  } else {
    const plain = await servePlain({
      name: 'knowledge',
      tools: tools.map((one) => ledger.count(one)),
    });
    url = plain.url;
    ends.unshift(() => plain.close());
  }

  let timer: Timer | undefined;
  const report = (): void => {
    process.send?.(ledger.report());
    timer = systemClock.setTimer(REPORT_INTERVAL, report);
  };
  report();
  say(`knowledge serves MCP at ${url}`);
  return {
    ended: new Promise((resolve) => process.once('disconnect', () => resolve())),
    close: async () => {
      timer?.cancel();
      for (const end of ends) await end();
    },
  };
};
