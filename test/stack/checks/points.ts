/**
 * @module
 * Points that Prometheus would not take, in the same requests as those of others: they are
 * dropped and counted, and cost nobody else anything.
 */
import { expect } from 'vitest';
import { until } from '../processes.ts';
import { clientTrace, gaugeOf, sendMetrics, sendSpan } from '../server.ts';
import type { Stack } from '../stack.ts';

const TIMES = 40;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const time = (now: number): string => `${now}000000`;

const sum = (aggregationTemporality: number, now: number): object => ({
  name: 'wrong_kind',
  sum: {
    aggregationTemporality,
    isMonotonic: true,
    dataPoints: [{ timeUnixNano: time(now), asInt: '1' }],
  },
});

/** What must go no further, by the service that sends it, in every request beside the others. */
const REFUSED: Readonly<Record<string, (now: number) => readonly object[]>> = {
  behind: (now) => [gaugeOf('wrong_time', 1, now - 6 * HOUR)],
  'a-little-behind': (now) => [gaugeOf('wrong_time', 1, now - 31 * MINUTE)],
  ahead: (now) => [gaugeOf('wrong_time', 1, now + HOUR)],
  'a-little-ahead': (now) => [gaugeOf('wrong_time', 1, now + 6 * MINUTE)],
  'without-clock': () => [gaugeOf('wrong_time', 1, 0)],
  delta: (now) => [sum(1, now)],
  'of-no-kind': (now) => [sum(0, now), { name: 'wrong_kind' }],
  'without-name': (now) => [gaugeOf('', 1, now)],
  'attribute-without-name': (now) => {
    const attributes = [{ key: '', value: { stringValue: 'x' } }];
    const dataPoints = [{ timeUnixNano: time(now), asInt: '1', attributes }];
    return [{ name: 'wrong_kind', gauge: { dataPoints } }];
  },
  coarse: (now) => {
    const positive = { offset: 0, bucketCounts: ['1'] };
    const dataPoints = [{ timeUnixNano: time(now), count: '1', sum: 1, scale: -5, positive }];
    return [
      { name: 'wrong_kind', exponentialHistogram: { aggregationTemporality: 2, dataPoints } },
    ];
  },
};

/** Points of each filter in one request; a metric of no kind has none. */
const DROPPED = { 'filter/time': 5, 'filter/kind': 5 } as const;

/** Every point of a server whose clock is right is there; of the others there is none. */
export const othersPoints = async ({ otlp, prometheus, log }: Stack): Promise<void> => {
  // Its traces come through, whatever its clock says: by them it is found.
  await sendSpan(otlp, clientTrace('of a wrong clock'), { kind: 2 }, 'behind');
  let now = 0;
  for (let index = 0; index < TIMES; index += 1) {
    // Two points of one series in the same millisecond would be one too many for Prometheus.
    now = Math.max(now + 1, Date.now());
    const refused = Object.entries(REFUSED).map(([service, of]) => [service, of(now)] as const);
    await sendMetrics(otlp, {
      first: [gaugeOf('punctual', index, now)],
      ...Object.fromEntries(refused),
      late: [gaugeOf('punctual', index, now - 29 * MINUTE)],
      last: [gaugeOf('punctual', index, now)],
    });
  }
  // From six hours ago until an hour from now.
  const counted = (name: string) => `count_over_time(${name}[8h] offset -75m)`;
  for (const job of ['first', 'late', 'last']) {
    await until(
      `${TIMES} points of ${job}`,
      async () => (await prometheus.value(counted(`punctual{job="${job}"}`))) === TIMES,
    );
  }
  expect(await prometheus.query(counted('{__name__=~"wrong_(time|kind)"}'))).toEqual([]);
  for (const [filter, points] of Object.entries(DROPPED)) {
    const dropped = `otelcol_processor_filter_datapoints_filtered{filter="${filter}"}`;
    await until(
      `${dropped} to be ${points * TIMES} or more`,
      async () => ((await prometheus.value(dropped)) ?? 0) >= points * TIMES,
    );
  }
  expect(log('otel-collector')).not.toContain('Dropping data');
  // As the runbook finds them.
  await until('the server to be named', async () => {
    const silent = await prometheus.query(
      'group by (job) (traces_span_metrics_calls_total{span_kind="SPAN_KIND_SERVER"}) ' +
        'unless group by (job) (mcp_server_operation_duration_seconds_count)',
    );
    return silent.some(({ labels }) => labels.job === 'behind');
  });
};
