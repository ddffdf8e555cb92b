import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { citySchema } from '../../src/tools/place.ts';
import { reportUrl } from '../../src/tools/wttr.ts';
import { verifies } from '../fixtures/verifies.ts';
import { codeOf, openTools, textOf } from './support.ts';

describe('input', () => {
  verifies('weather.input-validated', async () => {
    const { call, weather } = await openTools();
    const wrong: [unknown, RegExp][] = [
      ['', /city: is empty; give/],
      [' \t ', /city: is empty; give/],
      ['x'.repeat(10_000), /city: is 10000 characters long; give .* at most 100/],
      ['Lon\ndon', /city: contains a line break/],
      ['Lon\u0000don', /city: contains a line break or control character/],
      ['../etc/passwd', /city: must not contain "\/"/],
      ['..', /city: must not contain/],
      ['a\\b', /city: must not contain/],
      ['Oslo?format=3', /city: must not contain/],
      ['Oslo#x', /city: must not contain/],
      ['~Eiffel Tower', /city: must not begin with "~"/],
      ['@github.com', /city: must not begin with "@"/],
      [':help', /city: must not begin with ":"/],
      ['.', /city: contains no letter/],
      ['Oslo.png', /city: looks like the name of a file/],
      ['moon', /city: names the moon/],
      ['Oslo%2e%2e', /city: may contain only/],
      ['O\u202eslo', /city: may contain only/],
      ['O\ud800slo', /city: may contain only/],
      [42, /city: .*expected string/],
      [undefined, /city: .*expected string/],
    ];
    for (const [city, message] of wrong) {
      const result = await call('get_weather', { city });
      expect(codeOf(result)).toBe('INVALID_INPUT');
      expect(textOf(result)).toMatch(message);
      expect(textOf(result).length).toBeLessThan(600);
    }
    expect(codeOf(await call('get_weather', { city: 'Oslo', use_cache: 'no' }))).toBe(
      'INVALID_INPUT',
    );
    expect(weather.count()).toBe(0);
  });

  test('names of real places are accepted', () => {
    const names = [
      'Tokyo',
      '東京',
      'São Paulo',
      "N'Djamena",
      'N’Djamena',
      'Saint-Étienne',
      'St. John’s, Canada',
      'Москва',
      'القاهرة',
      'मुंबई',
      'Frankfurt (Oder)',
      '10115 Berlin',
      'Y',
      'Moon Township',
      'Å',
    ];
    for (const name of names) expect(citySchema.safeParse(name).error?.message).toBeUndefined();
    expect(citySchema.parse('  New \u00a0 York ')).toBe('New York');
    expect(citySchema.parse('Zu\u0308rich')).toBe('Zürich');
  });

  verifies('weather.one-segment', () => {
    const alphabet = [
      ...'aZ0éß東ि /\\.?#%&+~@:\'’-,()"<>\n\r\t\u0000\u200d\u202e',
      '..',
      '%2e',
      '\ud800',
      '😀',
    ];
    const city = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 120 }),
      fc.array(fc.constantFrom(...alphabet), { maxLength: 30 }).map((parts) => parts.join('')),
    );
    const base = fc.constantFrom('https://wttr.in', 'http://127.0.0.1:81/a/b');
    let accepted = 0;
    fc.assert(
      fc.property(city, base, (name, under) => {
        const parsed = citySchema.safeParse(name);
        if (!parsed.success) return;
        accepted += 1;
        const url = new URL(reportUrl(under, parsed.data));
        expect(url.origin).toBe(new URL(under).origin);
        const prefix = new URL(under).pathname.replace(/\/$/, '');
        expect(url.pathname.startsWith(`${prefix}/`)).toBe(true);
        const segment = url.pathname.slice(prefix.length + 1);
        expect(segment).not.toMatch(/\/|^$/);
        expect(decodeURIComponent(segment)).toBe(parsed.data);
        expect(url.search).toBe('?format=j1');
        expect(url.hash).toBe('');
      }),
      { numRuns: 3_000 },
    );
    expect(accepted).toBeGreaterThan(50);
  });
});
