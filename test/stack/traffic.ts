/**
 * @module
 * A real client's calls, in a fixed order, against upstreams that do what they are told: each
 * policy is met a known number of times, so that what telemetry says can be counted.
 */
import {
  answer,
  type Behaviour,
  hang,
  json,
  startUpstream,
  type Upstream,
} from '../fixtures/upstream.ts';
import { pages, report } from '../tools/support.ts';
import { until } from './processes.ts';
import { type Caller, type ClientTrace, clientTrace, type ToolAnswer } from './server.ts';

const SCENES = [
  'success',
  'retried',
  'retryAfter',
  'timeout',
  'opening',
  'refused',
  'fallback',
  'stale',
  'recovery',
  'limited',
] as const;

export type Scene = (typeof SCENES)[number];

/** The trace of each scene. */
export type Traces = Readonly<Record<Scene, ClientTrace>>;

/** Policies whose times fit a test. Without a budget, retries do not depend on what went before. */
export const POLICIES = {
  http: { rateLimit: false },
  tools: {
    get_weather: {
      timeout: 400,
      retry: { maxRetries: 2, baseDelay: 20, budget: false },
      breaker: { threshold: 3, openDuration: 2_000 },
      rateLimit: { limit: 10_000 },
      cache: { ttl: 1_000, staleIfError: 60_000 },
    },
    search: {
      bulkhead: { limit: 1, queue: 1, maxWait: 5_000 },
      rateLimit: { limit: 12, interval: 60_000 },
    },
  },
};

/** What `drive` leaves in Prometheus: expression and value. */
export const COUNTED: readonly (readonly [string, number])[] = [
  ['resilience_retry_attempts_total{resilience_dependency="weather-api",outcome="success"}', 2],
  ['resilience_retry_attempts_total{resilience_dependency="weather-api",outcome="failure"}', 9],
  ['resilience_timeouts_total{resilience_dependency="weather-api",reason="attempt"}', 3],
  ['resilience_fallbacks_total{resilience_dependency="weather-api",reason="CIRCUIT_OPEN"}', 1],
  ['resilience_cache_requests_total{resilience_dependency="weather-api",outcome="hit"}', 3],
  ['resilience_cache_requests_total{resilience_dependency="weather-api",outcome="stale"}', 1],
  ['resilience_circuit_breaker_transitions_total{from="closed",to="open"}', 1],
  ['resilience_circuit_breaker_transitions_total{from="open",to="half-open"}', 1],
  ['resilience_circuit_breaker_transitions_total{from="half-open",to="closed"}', 1],
  ['resilience_circuit_breaker_recovery_duration_seconds_count', 1],
  [
    'resilience_circuit_breaker_calls_total{resilience_dependency="weather-api",outcome="failure"}',
    4,
  ],
  [
    'resilience_circuit_breaker_calls_total{resilience_dependency="weather-api",outcome="rejected"}',
    3,
  ],
  [
    'resilience_rate_limiter_decisions_total{resilience_dependency="search-api",outcome="accepted"}',
    12,
  ],
  [
    'resilience_rate_limiter_decisions_total{resilience_dependency="search-api",outcome="rejected"}',
    1,
  ],
  ['resilience_bulkhead_decisions_total{resilience_dependency="search-api",outcome="rejected"}', 2],
  ['resilience_circuit_breaker_state{resilience_dependency="weather-api",state="closed"}', 1],
  ['resilience_circuit_breaker_state{resilience_dependency="weather-api",state="open"}', 0],
  ['tool_duration_seconds_count{gen_ai_tool_name="get_weather",tool_outcome="cached"}', 3],
  ['tool_duration_seconds_count{gen_ai_tool_name="get_weather",tool_outcome="degraded"}', 2],
  ['sum(tool_duration_seconds_count{gen_ai_tool_name="search",tool_outcome="rejected"})', 3],
];

/** Two upstreams that answer: a weather service and a wiki. */
export const startUpstreams = async (): Promise<{ weather: Upstream; wiki: Upstream }> => {
  const weather = await startUpstream();
  const wiki = await startUpstream();
  weather.on('*', json(report()));
  weather.on('/Nowhere', answer(404, 'Unknown location'));
  wiki.on('*', json(pages({ title: 'Circuit breaker' })));
  return { weather, wiki };
};

/** Where a server finds them. */
export const environmentOf = ({ weather, wiki }: { weather: Upstream; wiki: Upstream }) => ({
  WEATHER_API_URL: weather.url,
  SEARCH_API_URL: wiki.url,
});

/** Asks for the weather, whatever the cache holds. */
export const weatherOf = (caller: Caller, city: string, trace?: ClientTrace): Promise<ToolAnswer> =>
  caller.call('get_weather', { city, use_cache: false }, trace);

/** Searches, whatever the cache holds. */
export const searchOf = (caller: Caller, query: string): Promise<ToolAnswer> =>
  caller.call('search', { query, use_cache: false });

/** Search results, after a while. */
export const slowly =
  (ms: number): Behaviour =>
  (request, response) => {
    setTimeout(() => json(pages({ title: 'Bulkhead' }))(request, response), ms).unref();
  };

/** Makes the calls; resolves when all of them have been answered. */
export const drive = async (
  caller: Caller,
  { weather, wiki }: { weather: Upstream; wiki: Upstream },
): Promise<Traces> => {
  const traces = Object.fromEntries(SCENES.map((name) => [name, clientTrace(name)])) as Traces;
  const city = (name: string, scene?: Scene, use_cache = false): Promise<ToolAnswer> =>
    caller.call('get_weather', { city: name, use_cache }, scene && traces[scene]);
  const search = (query: string, scene?: Scene) =>
    caller.call('search', { query, use_cache: false }, scene && traces[scene]);

  await city('Tokyo', 'success');
  for (let hit = 0; hit < 3; hit += 1) await city('Tokyo', undefined, true);

  weather.on('/Utopia', answer(503), answer(503), json(report()));
  await city('Utopia', 'retried');
  weather.on('/Lima', answer(429, '', { 'retry-after': '1' }), json(report()));
  await city('Lima', 'retryAfter');
  weather.on('/Erewhon', hang());
  await city('Erewhon', 'timeout');

  // A success in between, so that three failures in a row begin here.
  await city('Oslo');
  weather.on('/Atlantis', answer(503));
  await city('Atlantis');
  await city('Atlantis');
  await city('Atlantis', 'opening');
  await city('Atlantis', 'refused');
  await city('Berlin', 'fallback', true);
  await city('Tokyo', 'stale', true);
  await until('the breaker to let a probe through', async () => {
    const { structuredContent } = await caller.call('health_check');
    const { dependencies } = structuredContent as {
      dependencies: { name: string; breaker?: { state: string } }[];
    };
    const found = dependencies.find(({ name }) => name === 'weather-api')?.breaker?.state;
    return found === 'half-open';
  });
  await city('Tokyo', 'recovery');

  // One place, one in the queue, two that find neither.
  wiki.on('/w/api.php', slowly(500));
  await Promise.all(['a', 'b', 'c', 'd'].map((query) => search(query)));
  wiki.on('/w/api.php', json(pages({ title: 'Circuit breaker' })));
  // The four have taken a token each.
  for (let index = 4; index < 12; index += 1) await search(`query ${index}`);
  await search('one too many', 'limited');
  return traces;
};
