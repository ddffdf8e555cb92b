import { describe, expect, test } from 'vitest';
import { parseRetryAfter } from '../../src/resilience/retry-after.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const seconds = (date: string) => (Date.parse(date) - NOW) / 1_000;

describe('Retry-After', () => {
  test('knows the twelve months, in all three forms of a date', () => {
    for (const [index, month] of MONTHS.entries()) {
      const due = seconds(`2027-${String(index + 1).padStart(2, '0')}-15T12:34:56Z`);
      expect(parseRetryAfter(`Fri, 15 ${month} 2027 12:34:56 GMT`, NOW)).toBe(due);
      expect(parseRetryAfter(`Friday, 15-${month}-27 12:34:56 GMT`, NOW)).toBe(due);
      expect(parseRetryAfter(`Fri ${month} 15 12:34:56 2027`, NOW)).toBe(due);
    }
    expect(parseRetryAfter('Fri Jan  1 00:00:00 2027', NOW)).toBe(seconds('2027-01-01T00:00:00Z'));
  });

  test('a year of two digits lies at most 50 years ahead', () => {
    const year = (digits: string) => parseRetryAfter(`Friday, 01-Jan-${digits} 00:00:00 GMT`, NOW);
    expect(year('76')).toBe(seconds('2076-01-01T00:00:00Z'));
    expect(year('77')).toBe(0);
    expect(year('26')).toBe(0);
    expect(year('27')).toBe(seconds('2027-01-01T00:00:00Z'));
    const then = Date.parse('1999-06-01T00:00:00Z');
    expect(parseRetryAfter('Friday, 01-Jan-99 00:00:00 GMT', then)).toBe(0);
  });

  test.each([
    'x Fri, 15 Jan 2027 12:34:56 GMT',
    'Fri, 15 Jan 2027 12:34:56 GMT x',
    'Fri, 15 Jan 2027 12:34:56',
    'Fri, 15 Jan 2027 12:34:5x GMT',
    'Fri, 5 Jan 2027 12:34:56 GMT',
    'Fri, 15 jan 2027 12:34:56 GMT',
    'Fri, 15 Jan 27 12:34:56 GMT',
    'F, 15 Jan 2027 12:34:56 GMT',
    'fri, 15 Jan 2027 12:34:56 GMT',
    'x Friday, 15-Jan-27 12:34:56 GMT',
    'Friday, 15-Jan-27 12:34:56 GMT x',
    'Friday, 15-Jan-2027 12:34:56 GMT',
    'Fri, 15-Jan-27 12:34:56 GMT',
    'friday, 15-Jan-27 12:34:56 GMT',
    'x Fri Jan 15 12:34:56 2027',
    'Fri Jan 15 12:34:56 2027 x',
    'Fri Jan 1 12:34:56 2027',
    'fri Jan 15 12:34:56 2027',
    'Fri Jan xx 12:34:56 2027',
    'Fri Foo 15 12:34:56 2027',
    '1 2',
    '1.',
    '.5',
    '1.5.2',
    'x5',
    '5x',
    '1x5',
  ])('takes "%s" for no time at all', (text) => {
    expect(parseRetryAfter(text, NOW)).toBeUndefined();
  });

  test('needs no clock for seconds, and has no date without one', () => {
    expect(parseRetryAfter('7', Number.NaN)).toBe(7);
    expect(parseRetryAfter('12.25', NOW)).toBe(12.25);
    expect(parseRetryAfter('Fri, 15 Jan 2027 12:34:56 GMT', Number.NaN)).toBeUndefined();
    expect(
      parseRetryAfter('Friday, 15-Jan-27 12:34:56 GMT', Number.POSITIVE_INFINITY),
    ).toBeUndefined();
  });
});
