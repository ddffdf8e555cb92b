import { onTestFinished } from 'vitest';
import type {
  ClientFacts,
  Json,
  UpstreamConfig,
  UpstreamRequest,
  UpstreamSession,
} from '../../../src/gateway/types.ts';
import {
  createUpstreamManager,
  type GatewayUpstreams,
  type UpstreamManagerOptions,
} from '../../../src/gateway/upstream-manager.ts';
import type { ResilienceError } from '../../../src/resilience/failure.ts';

/** A client that declares nothing. */
export const client: ClientFacts = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'tester', version: '1' },
};

/** Upstreams that end with the test, and every line that they said. */
export const openManager = (
  configs: readonly UpstreamConfig[],
  options: UpstreamManagerOptions = {},
): { manager: GatewayUpstreams; lines: string[] } => {
  const lines: string[] = [];
  const manager = createUpstreamManager(configs, {
    log: (line) => void lines.push(line),
    ...options,
  });
  onTestFinished(() => manager.close());
  return { manager, lines };
};

/** Calls a tool. */
export const call = (
  session: UpstreamSession,
  name: string,
  args: Json = {},
  more: Partial<UpstreamRequest> = {},
): Promise<Json> =>
  session.request({ method: 'tools/call', params: { name, arguments: args }, ...more });

/** What a call is known of when its tool says that it only reads. */
export const reading = (name: string): Partial<UpstreamRequest> => ({
  tool: { name, annotations: { readOnlyHint: true } },
});

/** What the promise was rejected with, which must be an error of ours. */
export const failed = async (work: Promise<unknown>): Promise<ResilienceError> => {
  try {
    await work;
  } catch (error) {
    return error as ResilienceError;
  }
  throw new Error('expected a rejection');
};

/** The first text of a tool result. */
export const textOf = (result: Json): string =>
  (result.content as { text: string }[])[0]?.text ?? '';
