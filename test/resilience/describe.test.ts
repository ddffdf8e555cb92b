import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { describe } from '../../src/resilience/describe.ts';
import {
  classify,
  createFailure,
  type Failure,
  failureCodes,
  failureProfiles,
} from '../../src/resilience/failure.ts';
import { english } from '../../src/resilience/texts-en.ts';
import { chinese } from '../../src/resilience/texts-zh.ts';
import { verifies } from '../fixtures/verifies.ts';

const HAN = /\p{Script=Han}/u;

verifies('describe.every-code', () => {
  for (const code of failureCodes) {
    const failure = createFailure(code);
    const en = describe(failure, { lang: 'en' });
    const zh = describe(failure, { lang: 'zh' });
    expect(en.split('\n')[0]).toBe(`[${code}] ${english.codes[code].what}`);
    expect(zh.split('\n')[0]).toBe(`[${code}] ${chinese.codes[code].what}`);
    for (const text of [en, zh]) expect(text.split('\n').length).toBeGreaterThanOrEqual(3);
    expect(en).not.toMatch(HAN);
    // Nothing is left in English but the code and proper names.
    expect(zh.replaceAll(code, '').replace(/TLS|ID/g, '')).not.toMatch(/[a-z]/i);
    expect(Object.keys(chinese.codes[code])).toEqual(Object.keys(english.codes[code]));
  }
});

test('a code of a user’s speaks with its own texts in every language', () => {
  const failure: Failure = {
    ...createFailure('BULKHEAD_FULL'),
    code: 'NO_SEATS',
    message: 'The pool\nhas no seats.',
    suggestion: 'Book later.',
    fallbackHint: 'Take the train.',
  };
  const en = describe(failure, { lang: 'en' }).split('\n');
  expect(en[0]).toBe('[NO_SEATS] The pool has no seats.');
  expect(en.slice(2)).toEqual(['Book later.', 'Take the train.']);
  const zh = describe(failure, { lang: 'zh' }).split('\n');
  expect(zh[0]).toBe(en[0]);
  expect(zh[1]).toMatch(HAN);
  expect(zh.slice(2)).toEqual(en.slice(2));
});

test('the exact message leads in English and follows as a detail in Chinese', () => {
  const failure = classify(Object.assign(new Error('city is missing'), { status: 422 }));
  expect(describe(failure, { lang: 'en' })).toBe(
    [
      '[REQUEST_REJECTED] The upstream answered HTTP 422: city is missing.',
      'Do not repeat the same request: it will be rejected again.',
      'Read the reason, change the arguments accordingly, then call again.',
    ].join('\n'),
  );
  expect(describe(failure, { lang: 'zh' })).toBe(
    [
      '[REQUEST_REJECTED] 上游服务拒绝了这次请求。',
      '详情：The upstream answered HTTP 422: city is missing.',
      '不要原样重复请求，否则还会被拒绝。',
      '请阅读拒绝原因，相应修改参数后再调用。',
    ].join('\n'),
  );
});

test('advice of the failure’s own goes before that of the table', () => {
  const failure = createFailure('TIMEOUT', { suggestion: 'Ask for one day only.' });
  for (const lang of ['en', 'zh'] as const)
    expect(describe(failure, { lang })).toContain('Ask for one day only.');
});

verifies('describe.seconds', () => {
  const text = (retryAfter: number, code = 'RATE_LIMITED' as const, lang: 'en' | 'zh' = 'en') =>
    describe(createFailure(code, { retryAfter }), { lang }).split('\n')[1];
  expect(text(6.001)).toBe('Wait at least 7 seconds, then retry once.');
  expect(text(0.2)).toBe('Wait at least 1 second, then retry once.');
  expect(text(0)).toBe('You may retry once now.');
  expect(text(6.001, 'RATE_LIMITED', 'zh')).toBe('请至少等待 7 秒，然后重试一次。');
  expect(text(3600)).toContain('only after 3600 seconds. That is too long to wait for');
  expect(text(3600, 'RATE_LIMITED', 'zh')).toContain('3600 秒之后');

  const any = fc.record({
    code: fc.oneof(fc.constantFrom(...failureCodes), fc.constant('CUSTOM')),
    retryAfter: fc.double({ min: 0.001, max: 1e9, noNaN: true }),
    retryable: fc.boolean(),
    lang: fc.constantFrom('en' as const, 'zh' as const),
  });
  fc.assert(
    fc.property(any, ({ lang, ...fields }) => {
      const described = describe({ ...createFailure('UNKNOWN_ERROR'), ...fields }, { lang });
      expect(described).toContain(`[${fields.code}]`);
      expect(described).toMatch(new RegExp(`\\b${Math.ceil(fields.retryAfter)} (second|秒)`));
    }),
  );
  for (const code of failureCodes) {
    const described = describe(createFailure(code), { lang: 'en' });
    const { retryable } = failureProfiles[code];
    expect(/retry once/.test(described), code).toBe(retryable);
    if (!retryable) expect(described, code).toMatch(/Do not (?:retry|repeat)|Verify first/);
  }
  const absurd = { ...createFailure('RATE_LIMITED'), retryAfter: Number.NaN };
  expect(describe(absurd, { lang: 'en' })).not.toContain('NaN');
});

verifies('describe.outcome-unknown', () => {
  for (const retryable of [true, false]) {
    const failure = createFailure('OUTCOME_UNKNOWN', { message: 'No answer came.', retryable });
    const en = describe(failure, { lang: 'en' });
    expect(en).toContain('may have been executed. Verify first');
    expect(en).not.toContain('retry once');
    expect(describe(failure, { lang: 'zh' })).toMatch(/可能已经执行.*先核实/);
  }
});

verifies('describe.business-errors', () => {
  const result = { isError: true, content: [{ type: 'text', text: 'no such city' }] };
  const business = [
    classify(result),
    ...failureCodes
      .filter((code) => failureProfiles[code].weight === 'caller')
      .map((code) => createFailure(code)),
  ];
  for (const failure of business) {
    const en = describe(failure, { lang: 'en' });
    expect(en).not.toMatch(/unreachable|unavailable|not available|is down|not running/i);
    expect(describe(failure, { lang: 'zh' })).not.toMatch(/不可达|不可用|没有运行|网络/);
  }
  expect(describe(classify(result), { lang: 'en' })).toContain('no such city');
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.resetModules();
});

verifies('describe.languages', async () => {
  const timeout = createFailure('TIMEOUT');
  for (const [value, language] of [
    [undefined, english],
    ['en', english],
    ['zh', chinese],
    [' ZH ', chinese],
    ['klingon', english],
    ['', english],
  ] as const) {
    vi.resetModules();
    vi.stubEnv('MCP_RESILIENCE_LANG', value);
    const fresh = await import('../../src/resilience/describe.ts');
    const described = fresh.describe(timeout);
    expect(described, `MCP_RESILIENCE_LANG=${value}`).toContain(language.codes.TIMEOUT.what);
    // Read once: a process does not change its language between two calls.
    vi.stubEnv('MCP_RESILIENCE_LANG', language === english ? 'zh' : 'en');
    expect(fresh.describe(timeout)).toBe(described);
    expect(fresh.describe(timeout, { lang: 'zh' })).toContain(chinese.codes.TIMEOUT.what);
  }
  expect(describe(timeout, { lang: 'tlh' as 'en' })).toContain(english.codes.TIMEOUT.what);
});

verifies('failure.documented', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/failures.md'), 'utf8');
  // Formatters pad the cells.
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` +\|(.+)\|$/gm)].map((match) => ({
    code: match[1],
    cells: (match[2] ?? '').split('|').map((cell) => cell.trim()),
  }));
  expect(rows.map((row) => row.code)).toEqual([...failureCodes]);
  for (const { code, cells } of rows) {
    const { severity, source, weight, delivery, retryable } =
      failureProfiles[code as keyof typeof failureProfiles];
    const { what, suggestion } = english.codes[code as keyof typeof failureProfiles];
    expect(cells, code).toEqual([
      what,
      severity,
      source,
      weight,
      delivery,
      retryable ? 'yes' : 'no',
      suggestion,
    ]);
  }
});
