import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createServer } from '../../src/mcp/server.ts';
import { describeTool } from '../../src/mcp/tool-schema.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { PipelineRegistry } from '../../src/resilience/registry.ts';
import { createTools, describePolicies } from '../../src/tools/index.ts';
import { answer, json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { openTools, pages, report } from './support.ts';

const make = (options: Partial<Parameters<typeof createTools>[0]> = {}) =>
  createTools({ registry: new PipelineRegistry(), ...options });

verifies('tools.listed', () => {
  const tools = make();
  expect(createServer({ name: 't', version: '1', tools })).toBeTypeOf('function');
  const listed = tools.map(describeTool);
  expect(listed.map(({ name }) => name)).toEqual(['get_weather', 'search', 'health_check']);
  for (const { title, annotations, outputSchema, inputSchema } of listed) {
    expect(title).toBe(annotations?.title);
    expect(annotations).toMatchObject({ readOnlyHint: true, idempotentHint: true });
    expect(outputSchema?.type).toBe('object');
    // Clients whose regular expressions know no \p{L} must be able to read it.
    expect(JSON.stringify(inputSchema)).not.toContain('"pattern"');
  }
  expect(listed.map(({ annotations }) => annotations?.openWorldHint)).toEqual([true, true, false]);
  expect(listed[0]?.inputSchema.required).toEqual(['city']);
  expect(listed[1]?.inputSchema.required).toEqual(['query']);
});

verifies('tools.policies', () => {
  const registry = new PipelineRegistry();
  make({ registry, policies: { search: { timeout: 3_000, cache: { ttl: 5 }, bulkhead: false } } });
  expect(registry.get('search-api')?.settings).toMatchObject({
    timeout: 3_000,
    cache: { ttl: 5, staleIfError: 3_600_000 },
    bulkhead: false,
    breaker: { threshold: 3, openDuration: 60_000 },
    rateLimit: { limit: 30, interval: 60_000 },
  });
  expect(registry.get('weather-api')?.settings).toMatchObject({
    timeout: 10_000,
    deadline: 45_000,
    breaker: { threshold: 3, openDuration: 60_000 },
    retry: { maxRetries: 2, baseDelay: 2_000 },
    rateLimit: { limit: 10, interval: 60_000 },
    cache: { ttl: 300_000, staleIfError: 3_600_000 },
  });
  expect(() => make({ policies: { get_wether: {} } })).toThrow(
    'no tool with policies is called "get_wether": there are get_weather, search',
  );
  expect(() => make({ policies: { toString: {} } })).toThrow(/get_weather, search/);
  expect(() => make({ policies: { search: { timeout: -1, retry: { maxRetries: 99 } } } })).toThrow(
    /policies of "search": timeout must be .*; retry\.maxRetries must be/,
  );
  for (const wrong of [null, 7, 'x', []]) {
    const policies = { search: wrong as unknown as PolicySettings };
    expect(() => make({ policies })).toThrow(/policies of "search": settings must be an object/);
  }
});

test('a strict client accepts every kind of answer', async () => {
  const { tools, weather, wiki } = await openTools({
    policies: { get_weather: { retry: false }, search: { retry: false } },
  });
  const server = createServer({ name: 't', version: '1', tools })();
  const client = new Client({ name: 'c', version: '1' });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  await client.connect(near);
  onTestFinished(() => client.close());
  // From now on it checks structuredContent against the schemas that were listed.
  await client.listTools();
  const call = (name: string, args = {}) => client.callTool({ name, arguments: args });

  weather.on('/Oslo', json(report()));
  weather.on('*', answer(503));
  wiki.on('*', json(pages({ title: 'A' })));
  expect((await call('get_weather', { city: 'Oslo' })).structuredContent).toHaveProperty('source');
  expect((await call('get_weather', { city: 'Oslo' }))._meta).toHaveProperty('from_cache', true);
  expect((await call('get_weather', { city: 'Tokyo' })).structuredContent).toHaveProperty('reason');
  expect((await call('get_weather', { city: 'Nowhere' })).isError).toBe(true);
  expect((await call('get_weather', { city: '../' })).isError).toBe(true);
  expect((await call('search', { query: 'a' })).structuredContent).toHaveProperty('total');
  expect((await call('health_check')).structuredContent).toHaveProperty('status', 'ok');
});

describe('describePolicies', () => {
  test('spells out what the live pipelines use', () => {
    const described = describePolicies({ get_weather: { retry: { maxRetries: 1 }, hedge: {} } });
    expect(described.map(({ tool, dependency }) => [tool, dependency])).toEqual([
      ['get_weather', 'weather-api'],
      ['search', 'search-api'],
    ]);
    const registry = new PipelineRegistry();
    make({ registry, policies: { get_weather: { retry: { maxRetries: 1 }, hedge: {} } } });
    for (const { dependency, policy } of described) {
      const live = registry.get(dependency);
      expect(policy.breaker).toEqual(live?.breaker?.settings);
    }
    expect(described[0]?.policy).toMatchObject({
      retry: {
        maxRetries: 1,
        jitter: 'full',
        maxDelay: 30_000,
        budget: { ratio: 0.2, floor: 3, interval: 10_000 },
      },
      rateLimit: { burst: 10, maxWait: 0 },
      hedge: { delay: 2_000 },
      cache: { maxEntries: 1_000, staleWhileRevalidate: 0 },
    });
  });
});

test('a base URL that is none stops the start', () => {
  expect(() => make({ env: { WEATHER_API_URL: 'wttr.in' } })).toThrow(
    /^WEATHER_API_URL is not a URL/,
  );
  expect(() => make({ env: { SEARCH_API_URL: 'ftp://x' } })).toThrow(/^SEARCH_API_URL begins with/);
});
