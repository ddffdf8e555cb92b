/**
 * @module
 * A client of a server over Streamable HTTP, as thin as can be: the SDK's own client, with
 * results passed through whole. For drills, which judge a server by what a real client sees.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { z } from 'zod';
import { VERSION } from '../version.ts';
import type { ToolResult } from './tool.ts';

/** How one call is made. */
export interface ClientCallOptions {
  /** Milliseconds until the client gives up and cancels. Default 60 000, as in most clients. */
  readonly timeout?: number;
  /** Gives up earlier. */
  readonly signal?: AbortSignal;
}

/** One session with a server. */
export interface HttpClient {
  /**
   * Calls a tool.
   *
   * @throws what the protocol or the connection failed with; a failure that the tool tells is a
   * result with `isError`
   */
  call(
    tool: string,
    input: Readonly<Record<string, unknown>>,
    options?: ClientCallOptions,
  ): Promise<ToolResult>;
  /** Ends the session. Never rejects: a server that has gone has ended it already. */
  close(): Promise<void>;
}

// The SDK's typed calls drop, or refuse, what they do not know of a result.
const anyResult = z.looseObject({ content: z.array(z.looseObject({ type: z.string() })) });

const DEFAULT_TIMEOUT = 60_000;

/**
 * Opens a session.
 *
 * @param name what the client calls itself
 * @throws what the connection failed with
 */
export const connectHttp = async (
  url: string,
  name: string,
  { timeout = DEFAULT_TIMEOUT }: Pick<ClientCallOptions, 'timeout'> = {},
): Promise<HttpClient> => {
  const client = new Client({ name, version: VERSION });
  const transport = new StreamableHTTPClientTransport(new URL(url));
  // The SDK's own types do not fit each other under `exactOptionalPropertyTypes`.
  await client.connect(transport as never, { timeout });
  return {
    call: async (tool, input, options = {}) => {
      const params = { name: tool, arguments: { ...input } };
      // The SDK (1.32.2) never takes its listener off a signal, and cancels calls that have long
      // been answered when it aborts: each call has a signal of its own.
      const call = new AbortController();
      const giveUp = (): void => call.abort(options.signal?.reason);
      if (options.signal?.aborted) giveUp();
      options.signal?.addEventListener('abort', giveUp);
      try {
        const result = await client.request({ method: 'tools/call', params }, anyResult, {
          timeout: options.timeout ?? timeout,
          signal: call.signal,
        });
        return result as unknown as ToolResult;
      } finally {
        options.signal?.removeEventListener('abort', giveUp);
      }
    },
    close: async () => {
      await transport.terminateSession().catch(() => {});
      await client.close().catch(() => {});
    },
  };
};
