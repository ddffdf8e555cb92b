import { describe, expect, test } from 'vitest';
import { climateCities, typicalWeather } from '../../src/tools/climate.ts';

describe('climate table', () => {
  test('has plausible figures for every month of every city', () => {
    expect(climateCities.length).toBeGreaterThan(40);
    for (const city of climateCities) {
      for (let month = 0; month < 12; month += 1) {
        const typical = typicalWeather(city, Date.UTC(2026, month, 15));
        expect(typical?.city).toBe(city);
        const { low = NaN, high = NaN } = typical ?? {};
        expect(low).toBeGreaterThanOrEqual(-12);
        expect(high).toBeLessThanOrEqual(43);
        expect(high - low).toBeGreaterThanOrEqual(3);
        expect(high - low).toBeLessThanOrEqual(17);
      }
    }
  });

  test('finds cities by every spelling, and only in the right country', () => {
    const july = Date.UTC(2026, 6, 1);
    for (const name of ['TOKYO', '东京', 'Tokyo, Japan', 'tokyo ,  JAPAN']) {
      expect(typicalWeather(name, july)).toMatchObject({ city: 'Tokyo', month: 'July', high: 30 });
    }
    expect(typicalWeather('sao paulo', july)?.city).toBe('São Paulo');
    expect(typicalWeather('Zürich', july)?.city).toBe('Zurich');
    for (const name of ['Paris, Texas', 'London, Ontario', 'Atlantis', '', ',', 'constructor']) {
      expect(typicalWeather(name, july)).toBeUndefined();
    }
  });
});
