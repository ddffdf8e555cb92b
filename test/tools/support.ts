import { expect, onTestFinished } from 'vitest';
import type { ToolContext, ToolResult } from '../../src/mcp/tool.ts';
import { checkResult, invalidInput } from '../../src/mcp/tool-failure.ts';
import type { Clock } from '../../src/resilience/clock.ts';
import { PipelineRegistry } from '../../src/resilience/registry.ts';
import { type CreateToolsOptions, createTools } from '../../src/tools/index.ts';
import { startUpstream, type Upstream } from '../fixtures/upstream.ts';

/** A scripted upstream that lives until the test ends. */
export const upstreamForTest = async (): Promise<Upstream> => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  return upstream;
};

/** The tools against two scripted upstreams, called as the server calls them. */
export const openTools = async (options: Partial<CreateToolsOptions> & { clock?: Clock } = {}) => {
  const weather = await upstreamForTest();
  const wiki = await upstreamForTest();
  const { clock } = options;
  const registry = new PipelineRegistry(clock ? { clock } : {});
  onTestFinished(() => registry.destroy());
  const tools = createTools({
    registry,
    env: { WEATHER_API_URL: weather.url, SEARCH_API_URL: wiki.url },
    ...options,
  });
  const call = async (
    name: string,
    args: Readonly<Record<string, unknown>> = {},
    context: Partial<ToolContext> = {},
  ): Promise<ToolResult> => {
    const tool = tools.find((candidate) => candidate.name === name);
    if (tool === undefined) throw new Error(`no tool ${name}`);
    const input = await tool.inputSchema.safeParseAsync(args);
    if (!input.success) return invalidInput(name, input.error);
    const { signal = new AbortController().signal, ...rest } = context;
    return checkResult(tool, await tool.handler(input.data, { signal, progress() {}, ...rest }));
  };
  return { weather, wiki, registry, tools, call };
};

/** All text of a result. */
export const textOf = ({ content }: ToolResult): string =>
  content.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n');

/** Code of the failure in an error result. */
export const codeOf = ({ isError, _meta }: ToolResult): unknown => {
  expect(isError).toBe(true);
  return (_meta?.['mcp-resilience/failure'] as { code?: unknown } | undefined)?.code;
};

/** A report as wttr.in gives it. */
export const report = (overrides: object = {}) => ({
  current_condition: [
    {
      temp_C: '18',
      FeelsLikeC: '17',
      humidity: '62',
      windspeedKmph: '13',
      weatherDesc: [{ value: 'Partly cloudy ' }],
      localObsDateTime: '2026-04-20 01:28 PM',
      observation_time: '04:28 AM',
      ...overrides,
    },
  ],
  nearest_area: [{ areaName: [{ value: 'Tokyo' }], country: [{ value: 'Japan' }] }],
  request: [{ query: 'Tokyo', type: 'City' }],
  weather: [],
});

/** Results as MediaWiki gives them. */
export const pages = (...found: { title: string; snippet?: string }[]) => ({
  batchcomplete: '',
  query: { searchinfo: { totalhits: 40 + found.length }, search: found },
});
