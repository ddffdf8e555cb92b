import { expect, test } from 'vitest';
import { describe } from '../../src/resilience/describe.ts';
import { createFailure, type Failure, failureCodes } from '../../src/resilience/failure.ts';
import { chinese } from '../../src/resilience/texts-zh.ts';

const en = (failure: Failure) => describe(failure, { lang: 'en' }).split('\n');

test('ten minutes is the longest wait that a model is sent to', () => {
  const line = (retryAfter: number) => en(createFailure('RATE_LIMITED', { retryAfter }))[1];
  expect(line(600)).toBe('Wait at least 600 seconds, then retry once.');
  expect(line(600.5)).toContain('only after 601 seconds. That is too long to wait for');
  expect(line(-5)).toBe('You may retry once now.');
});

test('what is not to be repeated says when it would make sense at the earliest', () => {
  const refused = createFailure('AUTH_FAILED', { retryAfter: 30 });
  expect(en(refused)[1]).toMatch(/^Do not .* 30 seconds/);
  expect(en(createFailure('AUTH_FAILED', { retryAfter: 0 }))[1]).not.toContain('seconds');
  const endless = createFailure('RATE_LIMITED', { retryAfter: Number.POSITIVE_INFINITY });
  expect(en(endless)[1]).not.toMatch(/Infinity/);
});

test('what may pass is told apart from what never does', () => {
  const own = (severity: Failure['severity']): Failure => ({
    ...createFailure('UNKNOWN_ERROR'),
    code: 'MINE',
    severity,
    retryable: false,
  });
  expect(en(own('permanent'))[1]).not.toBe(en(own('transient'))[1]);
  expect(en(own('degradable'))[1]).toBe(en(own('transient'))[1]);
});

test('is one line for each thing that there is to say, and none for what is not', () => {
  for (const code of failureCodes) {
    for (const line of en(createFailure(code))) expect(line.trim()).not.toBe('');
  }
  const { suggestion: _, fallbackHint: __, ...bare } = createFailure('UNKNOWN_ERROR');
  expect(en({ ...bare, code: 'MINE', message: ' two\n\n lines ' })).toEqual([
    '[MINE] two lines',
    expect.any(String),
  ]);
  expect(en({ ...createFailure('TIMEOUT'), message: '  ' })[0]).toBe(
    en(createFailure('TIMEOUT'))[0],
  );
});

test('in Chinese, the English defaults are translated and what is the failure’s own is kept', () => {
  const failure = createFailure('TIMEOUT', { fallbackHint: 'Walk.' });
  const lines = describe(failure, { lang: 'zh' }).split('\n');
  expect(lines).toContain(chinese.codes.TIMEOUT.suggestion);
  expect(lines.at(-1)).toBe('Walk.');
  const { suggestion: _, ...bare } = failure;
  expect(describe(bare, { lang: 'zh' })).toContain(chinese.codes.TIMEOUT.suggestion);
});
