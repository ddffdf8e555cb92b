import { describe, expect, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import { fileOf } from '../stack/compose.ts';
import { differences, relocate } from '../stack/configuration.ts';
import { moves, type Ports } from '../stack/moves.ts';
import { scaled, scaleRules } from '../stack/scaled-rules.ts';

const PORTS: Ports = {
  otlpGrpc: 1,
  otlpHttp: 2,
  collectorHealth: 3,
  collectorMetrics: 4,
  jaegerOtlp: 5,
  jaegerQuery: 6,
  jaegerQueryGrpc: 7,
  jaegerHealth: 8,
  jaegerMetrics: 9,
  prometheus: 10,
};

/** An address, a URL's address, a port or a path: a place, and the rest of the value beside it. */
const withoutPlace = (value: unknown): unknown =>
  typeof value === 'number'
    ? 'PORT'
    : String(value)
        .replace(/^(https?:\/\/)?[\w.-]+:\d+/, '$1ADDRESS')
        .replace(/^(0\.0\.0\.0|127\.0\.0\.1)$/, 'HOST')
        .replace(/^\/(?:var\/lib\/(?:otelcol|jaeger)|data)(?:\/collector|\/jaeger)?/, 'FOLDER')
        .replace(/^(?:\/data\/)?rules\.yaml$/, 'FOLDER/rules.yaml');

describe('the files of the stack test', () => {
  verifies('stack.only-places-change', () => {
    for (const [file, changes] of Object.entries(moves(PORTS, '/data'))) {
      const original = fileOf(`otel/${file}`);
      const changed = differences(original, relocate(original, changes));
      expect(changed.map(({ path }) => path).sort(), file).toEqual(Object.keys(changes).sort());
      for (const { path, before, after } of changed) {
        expect(withoutPlace(after), `${file}: ${path}`).toEqual(withoutPlace(before));
        expect(String(withoutPlace(before)), `${file}: ${path}`).toMatch(
          /ADDRESS|HOST|PORT|FOLDER/,
        );
      }
    }
  });

  test('every place is moved: nothing is left that listens on or calls another machine', () => {
    for (const [file, changes] of Object.entries(moves(PORTS, '/data'))) {
      const text = relocate(fileOf(`otel/${file}`), changes).replace(/#.*$/gm, '');
      expect(
        text.match(/0\.0\.0\.0|\/var\/lib|\b(?:jaeger|prometheus|otel-collector):\d+/g),
        file,
      ).toBeNull();
    }
  });

  test('a path that the file does not have is refused by name', () => {
    expect(() => relocate('a: {b: 1}', { 'a.c': 2 })).toThrow('there is no value to change at a.c');
  });

  verifies('stack.only-durations-change', () => {
    const original = fileOf('otel/rules.yaml');
    const changed = differences(original, scaleRules(original));
    const durations = (text: unknown): string =>
      String(text)
        .replace(/\[[^\]]+\]/g, '[RANGE]')
        .replace(/\boffset \S*?(?=\)|\s|$)/gm, 'offset DURATION')
        .replace(/^[\d.]+(ms|s|m|h)$/, 'DURATION');
    expect(changed.length).toBeGreaterThan(20);
    for (const { path, before, after } of changed) {
      if (/^groups\.\d+\.interval$/.test(path)) continue;
      expect(path).toMatch(/\.(expr|for|keep_firing_for)$/);
      expect(durations(after), path).toBe(durations(before));
    }
  });

  test('durations become a thirtieth', () => {
    expect(scaled('5m')).toBe('10000ms');
    expect(scaled('1h30m')).toBe('180000ms');
    expect(scaled('0s')).toBe('0ms');
    const rules = scaleRules(
      'groups: [{name: a, rules: [{alert: A, expr: "rate(x[5m]) offset 1h > rate(y[1h:1m])", for: 15m}]}]',
    );
    expect(rules).toContain('rate(x[10000ms]) offset 120000ms > rate(y[120000ms:2000ms])');
    expect(rules).toContain('for: 30000ms');
  });
});
