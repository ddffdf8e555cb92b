/**
 * @module
 * The upstream of a drill: answers as wttr.in and as a MediaWiki do, always well and after a set
 * time. What goes wrong in a drill is what is injected.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../resilience/clock.ts';

/** A request that came in. */
export interface RequestRecord {
  readonly upstream: 'weather' | 'search';
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

/** An upstream that runs. */
export interface DrillUpstream {
  /** The variables that make the reference server call it. */
  readonly env: Readonly<Record<string, string>>;
  readonly requests: readonly RequestRecord[];
  close(): Promise<void>;
}

const WEATHER = {
  current_condition: [
    {
      temp_C: '18',
      FeelsLikeC: '17',
      humidity: '62',
      windspeedKmph: '13',
      weatherDesc: [{ value: 'Partly cloudy' }],
      localObsDateTime: '2026-04-20 01:28 PM',
    },
  ],
  nearest_area: [{ areaName: [{ value: 'Tokyo' }], country: [{ value: 'Japan' }] }],
};

const PAGES = {
  batchcomplete: '',
  query: {
    searchinfo: { totalhits: 1 },
    search: [{ title: 'Circuit breaker', snippet: 'A switch that protects.' }],
  },
};

const BODIES = { weather: JSON.stringify(WEATHER), search: JSON.stringify(PAGES) };

/** @param delay milliseconds until it answers */
export const startUpstream = async (clock: Clock, delay: number): Promise<DrillUpstream> => {
  const requests: RequestRecord[] = [];
  const answer = (response: ServerResponse, body: string): void => {
    response.setHeader('content-type', 'application/json').end(body);
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const upstream = request.url?.startsWith('/wiki/') ? 'search' : 'weather';
    requests.push({ upstream, at: clock.wallTime() });
    clock.setTimer(delay, () => answer(response, BODIES[upstream]), true);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    env: { WEATHER_API_URL: `${url}/weather`, SEARCH_API_URL: `${url}/wiki` },
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
