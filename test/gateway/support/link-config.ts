import type { UpstreamAddress, UpstreamConfig } from '../../../src/gateway/types.ts';
import { stdioUpstream } from './upstream-server.ts';

/** A configuration with every default that a link looks at. */
export const upstreamConfig = (
  address: UpstreamAddress,
  more: Partial<UpstreamConfig> = {},
): UpstreamConfig => ({
  name: 'u',
  address,
  policy: {},
  tools: {},
  toolBreaker: false,
  toolGuard: false,
  connectTimeout: 10_000,
  discoveryTimeout: 10_000,
  shared: false,
  restart: { initialDelay: 100, maxDelay: 1_000 },
  maxMessageBytes: 64 * 1024 * 1024,
  secrets: [],
  ...more,
});

/** Address of U as a child with these settings. */
export const child = (
  settings: Parameters<typeof stdioUpstream>[0] = {},
  env: Readonly<Record<string, string>> = {},
): UpstreamAddress => ({ kind: 'stdio', ...stdioUpstream(settings), env });
