/**
 * @module
 * Makes the link that an upstream's address asks for.
 */
import { type Clock, type Random, systemClock, systemRandom } from '../resilience/clock.ts';
import type { Divert } from './gateway-chaos.ts';
import { HttpLink } from './http-link.ts';
import { proxyFor } from './http-proxy.ts';
import type { Report } from './link-message.ts';
import { SseLink } from './sse-link.ts';
import { StdioLink } from './stdio-link.ts';
import type { Link, UpstreamConfig } from './types.ts';

/** What a link needs from outside. */
export interface LinkEnvironment {
  readonly clock?: Clock;
  readonly random?: Random;
  /** Takes lines for people, without a newline. Default: stderr. */
  readonly log?: (line: string) => void;
  /** Has HTTP requests go elsewhere. Default: none. */
  readonly divert?: Divert | undefined;
  /** Says through which proxy an upstream is called. Default: none. */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

const toStderr = (line: string): void => void process.stderr.write(`${line}\n`);

/** What has been reported of an upstream, for all links to it. */
const reported = new WeakMap<UpstreamConfig, Set<string>>();

/** Reports what an upstream does wrong over and over, once for each kind. */
const reporter = (config: UpstreamConfig, log: (line: string) => void): Report => {
  const kinds = reported.get(config) ?? new Set();
  reported.set(config, kinds);
  return (kind, text) => {
    if (kinds.has(kind)) return;
    kinds.add(kind);
    log(`${config.name}: ${text}; such messages are left out, and this is said once`);
  };
};

/** A link that is not open yet. It is used once: after its end another one is made. */
export const createLink = (
  config: UpstreamConfig,
  {
    clock = systemClock,
    random = systemRandom,
    log = toStderr,
    divert,
    env = {},
  }: LinkEnvironment = {},
): Link => {
  const { name, address, maxMessageBytes, secrets } = config;
  const common = { maxMessageBytes, clock, report: reporter(config, log) };
  const called = (url: string) => ({ divert, ...proxyFor(new URL(url), env) });
  switch (address.kind) {
    case 'stdio':
      return new StdioLink({ ...common, ...address, name, secrets, log });
    case 'http':
      return new HttpLink({ ...common, ...address, ...called(address.url), random });
    case 'sse':
      return new SseLink({ ...common, ...address, ...called(address.url) });
  }
};
