/**
 * @module
 * Our tools, resources and prompts on somebody's `McpServer` of the SDK, beside his own.
 */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { z } from 'zod';
import type { Prompt, Resource } from './prompt.ts';
import type { Tool } from './tool.ts';
import { contextFor, type Extra } from './tool-context.ts';
import { thrownToResult } from './tool-failure.ts';

/**
 * An `McpServer` of the MCP SDK, of whichever release: only what is needed of it.
 *
 * @example
 * ```ts
 * import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
 * import type { SdkServer } from 'mcp-resilience/chaos';
 * const server: SdkServer = new McpServer({ name: 'news', version: '1.0.0' });
 * ```
 */
export interface SdkServer {
  registerTool(name: string, config: never, handler: never): unknown;
  registerResource(name: string, uri: string, config: never, read: never): unknown;
  registerPrompt(name: string, config: never, text: never): unknown;
  /** The low-level server in it. */
  readonly server: { onclose?: (() => void) | undefined };
}

/** What is to be registered. */
export interface Registered {
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly prompts: readonly Prompt[];
}

const registerPrompt = (server: SdkServer, prompt: Prompt): void => {
  const { name, title, description, arguments: listed = [], text } = prompt;
  const argsSchema = Object.fromEntries(
    listed.map(({ name: argument, description: what, required }) => {
      const schema = z.string().describe(what);
      return [argument, required ? schema : schema.optional()];
    }),
  );
  const get = (args: Readonly<Record<string, string>>) => ({
    description,
    messages: [{ role: 'user', content: { type: 'text', text: text(args) } }],
  });
  server.registerPrompt(name, { title, description, argsSchema } as never, get as never);
};

/**
 * Registers them. Do it before the server is connected: then it declares what it has.
 *
 * @throws what the SDK throws, as for a name that is taken
 */
export const registerOn = (server: SdkServer, { tools, resources, prompts }: Registered): void => {
  let ended = new AbortController();
  const inner = server.server;
  const before = inner.onclose;
  inner.onclose = () => {
    before?.();
    ended.abort();
    // It can be connected again.
    ended = new AbortController();
  };
  for (const { name, handler, ...config } of tools) {
    const call = async (input: unknown, extra: Extra) => {
      let running = true;
      try {
        const context = contextFor(inner as Server, extra, ended.signal, () => running);
        return await handler(input, context);
      } catch (error) {
        return thrownToResult(error);
      } finally {
        running = false;
      }
    };
    server.registerTool(name, config as never, call as never);
  }
  for (const { name, uri, read, ...config } of resources) {
    const { mimeType } = config;
    const readIt = async () => ({ contents: [{ uri, mimeType, text: await read() }] });
    server.registerResource(name, uri, config as never, readIt as never);
  }
  for (const prompt of prompts) registerPrompt(server, prompt);
};
