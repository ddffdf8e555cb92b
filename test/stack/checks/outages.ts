/**
 * @module
 * Parts of the stack that die and come back: nothing that was sent meanwhile is lost.
 */
import { expect } from 'vitest';
import { until } from '../processes.ts';
import { CLIENT_SERVICE, clientTrace, sendGauge, sendSpan, sendSpans } from '../server.ts';
import type { Stack } from '../stack.ts';

/** Thousands of spans: more than 80 % of the queue in otel/collector.yaml, and less than all of it. */
const FLOOD = 88;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Names of the spans of a service that Jaeger has, without those of other tests. */
const namesIn = async (stack: Stack, prefix: string): Promise<ReadonlySet<string>> => {
  const traces = await stack.jaeger.find(CLIENT_SERVICE, {
    tags: JSON.stringify({ outage: prefix }),
  });
  return new Set(traces.flatMap(({ spans }) => spans.map(({ name }) => name)));
};

const failed = (outage: string) => ({
  // Kept by its status, so that sampling takes none of them away.
  status: { code: 2 },
  attributes: [{ key: 'outage', value: { stringValue: outage } }],
});

/** So many spans that the queue to Jaeger is nearly full: traces of a thousand, each of an error. */
const flood = async (stack: Stack, outage: string): Promise<void> => {
  for (let trace = 0; trace < FLOOD; trace += 1) {
    const { traceId, spanId } = clientTrace(outage);
    const time = `${Date.now()}000000`;
    const root = { traceId, spanId, name: 'flood', kind: 3, status: { code: 2 } };
    const children = Array.from({ length: 999 }, () => ({
      ...root,
      spanId: clientTrace(outage).spanId,
      parentSpanId: spanId,
    }));
    const spans = [root, ...children].map((span) => ({
      ...span,
      startTimeUnixNano: time,
      endTimeUnixNano: time,
    }));
    await sendSpans(stack.otlp, spans);
  }
};

/**
 * Jaeger is killed for 30 s while spans go on to come. Meanwhile the Collector is killed too, when
 * what came before is in its queue on disk.
 */
export const jaegerAway = async (stack: Stack): Promise<void> => {
  const outage = 'jaeger';
  const sent: string[] = [];
  const send = async (): Promise<void> => {
    const name = `${outage} ${sent.length}`;
    await sendSpan(stack.otlp, clientTrace(name), failed(outage));
    sent.push(name);
  };
  const all = (what: string) =>
    until(`${what}: ${sent.length} spans in Jaeger`, async () => {
      const found = await namesIn(stack, outage);
      return sent.every((name) => found.has(name)) && found.size === sent.length;
    });

  for (let index = 0; index < 20; index += 1) await send();
  await all('before');
  await stack.end('jaeger', 'SIGKILL');
  const back = performance.now() + 30_000;
  for (let index = 0; index < 60; index += 1) await send();
  await flood(stack, 'flood');
  // Sampling takes 2 s to judge, and what it has not judged is in memory alone.
  await pause(6_000);
  await stack.end('otel-collector', 'SIGKILL');
  await stack.start('otel-collector');
  while (performance.now() < back) {
    await send();
    await pause(250);
  }
  await stack.start('jaeger');
  await all('after');
  expect(sent.length).toBeGreaterThan(100);
};

/** Prometheus is killed while values go on to come: it has each of them in the end. */
export const prometheusAway = async (stack: Stack): Promise<void> => {
  const name = 'outage_probe';
  let sent = 0;
  const send = async (times: number): Promise<void> => {
    for (let index = 0; index < times; index += 1) {
      sent += 1;
      await sendGauge(stack.otlp, name, sent);
      await pause(100);
    }
  };
  const have = (): Promise<number | undefined> =>
    stack.prometheus.value(`count_over_time(${name}[10m])`);
  await send(10);
  await until('values before', async () => (await have()) === sent);
  await stack.end('prometheus', 'SIGKILL');
  await send(60);
  await stack.start('prometheus');
  await send(10);
  await until(`${sent} values in Prometheus`, async () => (await have()) === sent);
};
