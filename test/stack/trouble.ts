/**
 * @module
 * Everything that an alert is there for, brought about at the same time: servers with policies
 * that are too tight, dependencies that fail, and clients that go on asking. `calm` ends it.
 */
import { answer, hang, json } from '../fixtures/upstream.ts';
import { report } from '../tools/support.ts';
import { deserted } from './deserted.ts';
import { Loops, pause } from './loops.ts';
import { type ClientTrace, clientTrace, sendGauge, startServer } from './server.ts';
import type { Stack } from './stack.ts';
import { environmentOf, searchOf, slowly, startUpstreams, weatherOf } from './traffic.ts';

export interface Trouble {
  /** Of a call through the gateway, before its servers went away. */
  readonly gatewayTrace: ClientTrace;
  /** Ends all of it; resolves when everything answers again. */
  calm(): Promise<void>;
}

const PATIENT = { timeout: 30_000, deadline: 40_000, retry: false, breaker: false, cache: false };

/** Fails, is asked too often, retries too much; and a bulkhead that is full. */
const overloaded = async (stack: Stack, loops: Loops) => {
  const upstreams = await startUpstreams();
  const server = await startServer(stack, {
    name: 'overloaded',
    env: environmentOf(upstreams),
    config: {
      http: { rateLimit: false },
      tools: {
        get_weather: {
          timeout: 2_000,
          retry: { maxRetries: 2, baseDelay: 1, maxDelay: 5 },
          breaker: false,
          cache: false,
          // Fewer than one that is asked, however slow the machine.
          rateLimit: { limit: 2, interval: 1_000 },
        },
        search: { ...PATIENT, rateLimit: false, bulkhead: { limit: 2, queue: 2, maxWait: 20_000 } },
      },
    },
  });
  const caller = await server.connect();
  upstreams.weather.on('*', answer(503));
  upstreams.wiki.on('*', slowly(2_000));
  loops.start(() => weatherOf(caller, 'Atlantis'), 100);
  for (let index = 0; index < 5; index += 1) loops.start(() => searchOf(caller, `${index}`), 200);
};

/** Answers, but slowly; a hedge helps one call. */
const slow = async (stack: Stack, loops: Loops) => {
  const upstreams = await startUpstreams();
  const server = await startServer(stack, {
    name: 'slow',
    env: environmentOf(upstreams),
    config: {
      http: { rateLimit: false, maxConnections: 1_000 },
      tools: {
        search: { ...PATIENT, rateLimit: false, bulkhead: false },
        get_weather: { ...PATIENT, rateLimit: false, hedge: { delay: 200 } },
      },
    },
  });
  const caller = await server.connect();
  upstreams.wiki.on('*', slowly(11_000));
  upstreams.weather.on('/Lagos', hang(), json(report()));
  await weatherOf(caller, 'Lagos');
  for (let index = 0; index < 25; index += 1) loops.start(() => searchOf(caller, `${index}`), 0);
};

/** Its breaker of the weather opens and closes again and again; that of the search stays open. */
const flaky = async (stack: Stack, loops: Loops) => {
  const upstreams = await startUpstreams();
  const breaker = { threshold: 1, openDuration: 500 };
  const policy = { retry: false, rateLimit: false, cache: false, breaker };
  const server = await startServer(stack, {
    name: 'flaky',
    env: environmentOf(upstreams),
    config: { http: { rateLimit: false }, tools: { get_weather: policy, search: policy } },
  });
  const caller = await server.connect();
  upstreams.weather.on('/Atlantis', answer(503));
  upstreams.wiki.on('*', answer(503));
  loops.start(async () => {
    await weatherOf(caller, 'Atlantis');
    await pause(700);
    await weatherOf(caller, 'Tokyo');
  }, 700);
  loops.start(() => searchOf(caller, 'never'), 300);
  return async (): Promise<void> => {
    upstreams.wiki.on('*', json({ query: { search: [{ title: 'Phoenix', snippet: '' }] } }));
    await pause(700);
    await weatherOf(caller, 'Tokyo');
    await searchOf(caller, 'again');
  };
};

/** A fault that was armed and forgotten. */
const faulty = async (stack: Stack, loops: Loops) => {
  const upstreams = await startUpstreams();
  const server = await startServer(stack, {
    name: 'faulty',
    env: environmentOf(upstreams),
    flags: ['--chaos'],
    config: {
      http: { rateLimit: false },
      tools: {
        get_weather: {
          timeout: 500,
          retry: { maxRetries: 1, baseDelay: 10 },
          rateLimit: false,
          cache: false,
          breaker: { threshold: 3, openDuration: 1_000 },
        },
      },
    },
  });
  const caller = await server.connect();
  const armed = await caller.call('inject_fault', {
    kind: 'status',
    status: 503,
    target: { dependency: 'weather-api' },
    ttlSeconds: 300,
    percent: 60,
    seed: 1,
    reason: 'to be forgotten',
  });
  if (armed.isError) throw new Error(`no fault was armed: ${JSON.stringify(armed)}`);
  loops.start(() => weatherOf(caller, 'Tokyo'), 200);
  loops.start(() => searchOf(caller, 'beside it'), 500);
  return async (): Promise<void> => {
    await caller.call('clear_fault', { all: true });
    await pause(1_200);
    await weatherOf(caller, 'Tokyo');
  };
};

/** Values so old that Prometheus would refuse them: the Collector drops them. */
const outdated = async (stack: Stack, loops: Loops): Promise<undefined> => {
  const old = (): number => Date.now() - 6 * 60 * 60_000;
  loops.start(() => sendGauge(stack.otlp, 'outdated', 1, old()), 500);
  return undefined;
};

export const startTrouble = async (stack: Stack): Promise<Trouble> => {
  const loops = new Loops();
  const gatewayTrace = clientTrace('through the gateway');
  const ends = await Promise.all([
    overloaded(stack, loops),
    slow(stack, loops),
    flaky(stack, loops),
    faulty(stack, loops),
    deserted(stack, loops, gatewayTrace),
    outdated(stack, loops),
  ]);
  return {
    gatewayTrace,
    calm: async () => {
      await Promise.all([loops.stop(), ...ends.map((end) => end?.())]);
    },
  };
};
