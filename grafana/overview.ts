/**
 * @module
 * The dashboard that is opened first: is anything broken, and what.
 */
import { breakers, retries } from './overview/breakers.ts';
import { cache, limits } from './overview/limits.ts';
import { now } from './overview/now.ts';
import { tools } from './overview/tools.ts';
import { upstreams } from './overview/upstreams.ts';
import type { Board } from './panel.ts';

export const overview: Board = {
  uid: 'mcp-resilience',
  title: 'MCP resilience',
  description:
    'What is broken now, then rate, errors and duration by tool, then each policy: breakers, retries, limits, cache, fallbacks, upstreams.',
  tags: [],
  from: 'now-1h',
  refresh: '30s',
  variables: ['datasource', 'jaeger', 'job', 'instance', 'tool', 'dependency', 'faults'],
  rows: [now, tools, breakers, retries, limits, cache, upstreams],
};
