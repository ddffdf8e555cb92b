/**
 * @module
 * The tool `health_check` of a gateway: which servers behind it work, and why not. It asks nobody,
 * so that it answers when everything else is down.
 */
import { z } from 'zod';
import { defineTool, type Tool } from '../mcp/tool.ts';
import type { Json, UpstreamHealth, UpstreamManager } from './types.ts';

const inputSchema = z.object({});

const upstream = z.looseObject({
  name: z.string(),
  state: z.enum(['connecting', 'ready', 'degraded', 'down']),
  kind: z.enum(['stdio', 'http', 'sse']),
  reason: z.string().optional().describe('Why it is not ready.'),
  restarts: z.number().int().min(0),
  sessions: z.number().int().min(0),
  retry_after_seconds: z.number().optional().describe('Seconds until it is tried again.'),
});

const outputSchema = z.object({
  status: z.enum(['ok', 'degraded', 'down']).describe('Down: none of the servers can be used.'),
  upstreams: z.array(upstream),
  version: z.string(),
});

const isUsable = ({ state }: UpstreamHealth): boolean => state === 'ready' || state === 'degraded';

/** How the gateway is as a whole. One that has not been asked for yet is no fault. */
const statusOf = (upstreams: readonly UpstreamHealth[]): 'ok' | 'degraded' | 'down' => {
  if (upstreams.some(({ state }) => state === 'down' || state === 'degraded')) {
    return upstreams.some(isUsable) ? 'degraded' : 'down';
  }
  return 'ok';
};

const rounded = (seconds: number): number => Math.ceil(seconds * 10) / 10;

const reportOf = (health: UpstreamHealth): Json => {
  const { name, state, kind, reason, breaker, restarts, sessions, retryAfter, serverInfo } = health;
  return {
    name,
    state,
    kind,
    ...(reason !== undefined && { reason }),
    restarts,
    sessions,
    ...(retryAfter !== undefined && { retry_after_seconds: rounded(retryAfter) }),
    ...(breaker && { breaker }),
    ...(serverInfo && { server_info: serverInfo }),
  };
};

const lineOf = ({ name, state, reason, retryAfter, restarts }: UpstreamHealth): string => {
  const parts = [
    reason,
    retryAfter === undefined ? undefined : `tried again in ${rounded(retryAfter)} s`,
    restarts > 0 ? `restarted ${restarts} times` : undefined,
  ].filter((part) => part !== undefined);
  return `- ${name}: ${state}${parts.length > 0 ? ` (${parts.join('; ')})` : ''}`;
};

/** Name of the tool, unless an upstream has one of that name. */
export const HEALTH_CHECK = 'health_check';

/** Makes the tool. */
export const createHealthTool = (manager: Pick<UpstreamManager, 'health'>, version: string): Tool =>
  defineTool({
    name: HEALTH_CHECK,
    title: 'Health check',
    description:
      'State of each MCP server behind this gateway: whether it can be used now, why not, and when it is tried again. Asks nobody outside.',
    inputSchema,
    outputSchema,
    annotations: {
      title: 'Health check',
      readOnlyHint: true,
      idempotentHint: true,
      openWorldHint: false,
    },
    handler: () => {
      const upstreams = manager.health();
      const status = statusOf(upstreams);
      const text = [`Status: ${status}. Version ${version}.`, ...upstreams.map(lineOf)].join('\n');
      return {
        content: [{ type: 'text', text }],
        structuredContent: { status, upstreams: upstreams.map(reportOf), version },
      };
    },
  }) as unknown as Tool;
