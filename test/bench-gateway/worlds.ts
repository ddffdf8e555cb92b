/**
 * @module
 * The two worlds that everything is measured in: what stands at both ends of a proxy decides what
 * the throughput shows.
 */
import type { Load } from './load.ts';
import { ARRANGEMENTS, type Arrangement } from './subjects.ts';

/** The client and the server at the ends, and the loads. */
export interface World {
  readonly name: 'ordinary' | 'lean';
  /** What it has, and what its figures are, for the page. */
  readonly about: string;
  readonly arrangements: readonly Arrangement[];
  readonly loads: readonly Load[];
}

const LATENCY: Load = { name: 'one at a time', tool: 'echo', length: 100, concurrency: 1 };
const LARGE: Load = {
  name: '16 at a time, 64 KiB each way',
  tool: 'echo',
  length: 65_536,
  concurrency: 16,
};

/** The load that proxies are compared by: a tool that does nothing. */
export const IDLE: Load = { name: '16 at a time', tool: 'echo', length: 100, concurrency: 16 };

/** A tool that works. */
export const WORKING: Load = {
  name: '16 at a time, tool of 10 ms',
  tool: 'work',
  length: 100,
  concurrency: 16,
};

/**
 * Both have the two loads that promises are judged by. The ordinary one has no arrangement that
 * changes the transport: what that costs or saves at the ends is no proxy's doing. Latency is of interest where users are, large
 * messages where the proxy limits.
 */
export const WORLDS: readonly World[] = [
  {
    name: 'ordinary',
    about:
      'the client and the server of the official SDK, as users have them: what a user gains or loses',
    arrangements: ARRANGEMENTS.filter(({ upstream, front }) => upstream === front),
    loads: [LATENCY, IDLE, WORKING],
  },
  {
    name: 'lean',
    about:
      'a client and a server that cost as little as we could make them, so that what stands between them is what limits: what a proxy can do',
    arrangements: ARRANGEMENTS,
    loads: [IDLE, WORKING, LARGE],
  },
];
