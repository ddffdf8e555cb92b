/**
 * @module
 * Which traces are kept, what is counted of those that are not, and what is taken out of them.
 */
import { expect } from 'vitest';
import { until } from '../processes.ts';
import { clientTrace, sendSpan } from '../server.ts';
import type { Stack } from '../stack.ts';

const ORDINARY = 400;

const attribute = (key: string, value: object) => ({ key, value });
const milliseconds = (time: number): string => `${time}000000`;

/** Traces that must be kept, by what makes them so. */
const KEPT: Readonly<Record<string, () => object>> = {
  error: () => ({ status: { code: 2, message: 'it broke' } }),
  slow: () => ({
    startTimeUnixNano: milliseconds(Date.now() - 2_000),
    endTimeUnixNano: milliseconds(Date.now()),
  }),
  fault: () => ({ attributes: [attribute('fault.injected', { boolValue: true })] }),
  degraded: () => ({ attributes: [attribute('tool.outcome', { stringValue: 'degraded' })] }),
  rejected: () => ({ attributes: [attribute('tool.outcome', { stringValue: 'rejected' })] }),
  retried: () => ({
    events: [{ name: 'resilience.retry.scheduled', timeUnixNano: milliseconds(Date.now()) }],
  }),
};

/** Sends them and many ordinary ones; asks for all of them in Jaeger and in the span metrics. */
export const tailSampling = async (stack: Stack): Promise<void> => {
  const kept = Object.entries(KEPT).map(([name, span]) => ({ trace: clientTrace(name), span }));
  const ordinary = Array.from({ length: ORDINARY }, () => clientTrace('ordinary'));
  for (const { trace, span } of kept) await sendSpan(stack.otlp, trace, span());
  await Promise.all(ordinary.map((trace) => sendSpan(stack.otlp, trace)));

  for (const { trace } of kept) {
    await until(`the ${trace.name} trace`, async () => {
      return (await stack.jaeger.trace(trace.traceId)).length === 1;
    });
  }
  const count = async (): Promise<number> =>
    (await stack.jaeger.find('stack-test-client', { operation: 'ordinary' })).length;
  // The ordinary ones came after the others and were judged after them: it has settled once
  // nothing changes any more.
  let before = -1;
  const found = await until('sampling to settle', async () => {
    const now = await count();
    const settled = now === before && now > 0;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    return settled && now;
  });
  // 25 % of 400, give or take five standard deviations.
  expect(found).toBeGreaterThan(100 - 44);
  expect(found).toBeLessThan(100 + 44);
  const counted = 'sum(traces_span_metrics_calls_total{span_name="ordinary"})';
  await until(
    `${counted} to be ${ORDINARY}`,
    async () => (await stack.prometheus.value(counted)) === ORDINARY,
  );
};

const SECRET = 'eyJhbGciOiJIUzI1NiJ9.c2VjcmV0.c2lnbmF0dXJl';

/** Whatever shape a secret has, it does not reach Jaeger; what only sounds like one does. */
export const redaction = async (stack: Stack): Promise<void> => {
  const trace = clientTrace('redaction');
  const text = (key: string, stringValue: string) => attribute(key, { stringValue });
  await sendSpan(stack.otlp, trace, {
    status: { code: 2, message: `401 for Bearer ${SECRET}` },
    attributes: [
      text('http.request.header.authorization', 'Basic dXNlcjpwYXNz'),
      text('access_token', 'opaque-value'),
      text('db.password', 'hunter2'),
      text('x-api-key', 'k-123'),
      text('note', `sent ${SECRET} along`),
      text('url.full', 'https://me:hunter2@api.example/v1?api_key=k-123'),
      attribute('gen_ai.usage.input_tokens', { intValue: 17 }),
    ],
    events: [
      {
        name: 'exception',
        timeUnixNano: milliseconds(Date.now()),
        attributes: [text('exception.message', 'token=opaque-value was refused')],
      },
    ],
  });
  const [span] = await until('the redacted trace', async () => {
    const spans = await stack.jaeger.trace(trace.traceId);
    return spans.length > 0 && spans;
  });
  const shown = JSON.stringify(span);
  for (const secret of [SECRET, 'dXNlcjpwYXNz', 'opaque-value', 'hunter2', 'k-123']) {
    expect(shown).not.toContain(secret);
  }
  expect(span?.tags).toMatchObject({
    'gen_ai.usage.input_tokens': 17,
    'http.request.header.authorization': '****',
    'otel.status_description': '401 for ****',
  });
};
