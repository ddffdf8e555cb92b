import { expect, test } from 'vitest';
import type { Work } from '../../src/resilience/attempt.ts';
import type { CallOptions } from '../../src/resilience/call-options.ts';
import { createFailure, type Failure, ResilienceError } from '../../src/resilience/failure.ts';
import { createPipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

const reset = (text: string) => Object.assign(new Error(text), { code: 'ECONNRESET' });

const setUp = (settings: PolicySettings, classified?: (error: unknown) => Failure | undefined) => {
  const clock = new ManualClock();
  const asked: unknown[] = [];
  const classifier = (error: unknown) => {
    asked.push(error instanceof Error ? error.message : error);
    return classified?.(error);
  };
  const pipeline = createPipeline('up', settings, { clock, classifier, random: () => 0 });
  const outcome = async <T>(work: Work<T>, options?: CallOptions<T>) => {
    const promise = pipeline.outcome(work, options);
    await clock.advance(60_000);
    return promise;
  };
  return { clock, pipeline, asked, outcome };
};
const failing = ({ attempt }: { attempt: number }) => Promise.reject(reset(`attempt ${attempt}`));

verifies('failure.classified-once', async () => {
  const recording = startRecording();
  try {
    const ways: [PolicySettings, CallOptions<never>?][] = [
      [{}],
      [{ breaker: {} }],
      [{ breaker: { scope: 'attempt' } }],
      [{ breaker: { scope: 'attempt' }, timeout: 1_000, bulkhead: { limit: 1 } }],
      [{ hedge: { delay: 1_000 } }],
      [{ cache: { ttl: 1_000 } }, { cacheKey: 'k' }],
      [{}, { fallback: () => undefined }],
      [{}, { classifyResult: () => undefined }],
    ];
    for (const [settings, options] of ways) {
      const { asked, outcome } = setUp({ ...settings, retry: { maxRetries: 2 } });
      expect(await outcome(failing, options)).toMatchObject({
        ok: false,
        failure: { code: 'CONNECTION_RESET' },
        attempts: 3,
      });
      expect(asked).toEqual(['attempt 1', 'attempt 2', 'attempt 3']);
    }
  } finally {
    recording.stop();
  }
});

test('an error that is thrown twice is two failures', async () => {
  const { asked, outcome } = setUp({ retry: { maxRetries: 1 }, breaker: { scope: 'attempt' } });
  const same = reset('same');
  await outcome(() => Promise.reject(same));
  expect(asked).toEqual(['same', 'same']);
});

test('all who ask hear the one answer', async () => {
  const answers = [createFailure('UPSTREAM_ERROR'), createFailure('NOT_FOUND')];
  const { pipeline, outcome } = setUp(
    { retry: { maxRetries: 3 }, breaker: { scope: 'attempt', threshold: 2 } },
    () => answers.shift() ?? createFailure('INTERNAL_ERROR'),
  );
  expect(await outcome(failing)).toMatchObject({ failure: { code: 'NOT_FOUND' }, attempts: 2 });
  expect(pipeline.breaker?.state).toBe('closed');
});

test('racers are classified once each, and those that were given up not at all', async () => {
  const { asked, outcome } = setUp({ hedge: { delay: 10, maxHedges: 2 } });
  const work = ({ attempt }: { attempt: number }) =>
    attempt === 1 ? new Promise<never>(() => {}) : failing({ attempt });
  const end = outcome(({ attempt }) => (attempt === 3 ? 'up' : work({ attempt })));
  expect(await end).toMatchObject({ value: 'up' });
  expect(asked).toEqual(['attempt 2']);
});

test('a result that is a failure is classified once an attempt, and given in the end', async () => {
  const { asked, outcome } = setUp({ retry: { maxRetries: 1 }, breaker: { scope: 'attempt' } });
  const classifyResult = () => createFailure('RATE_LIMITED', { message: 'told in the result' });
  expect(await outcome(() => 'throttled', { classifyResult })).toMatchObject({
    ok: true,
    value: 'throttled',
    failure: { code: 'RATE_LIMITED' },
  });
  expect(asked).toEqual(['told in the result', 'told in the result']);
});

test('a breaker that opens between two attempts, and an outcome that nobody knows, ask no more', async () => {
  const { asked, outcome } = setUp({
    retry: { maxRetries: 3 },
    breaker: { scope: 'attempt', threshold: 1 },
  });
  expect(await outcome(failing)).toMatchObject({ failure: { code: 'CONNECTION_RESET' } });
  expect(asked).toEqual(['attempt 1']);
  const lost = setUp({});
  const unknown = await lost.outcome(failing, { idempotent: false });
  expect(unknown).toMatchObject({ ok: false, failure: { code: 'OUTCOME_UNKNOWN' } });
  expect(!unknown.ok && unknown.error).toBeInstanceOf(ResilienceError);
  expect(lost.asked).toEqual(['attempt 1']);
});
