import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import * as semconv from '../../src/telemetry/semconv.ts';
import {
  ATTR,
  attemptSpanName,
  EVENT,
  METRIC,
  type MetricSpec,
} from '../../src/telemetry/signals.ts';
import { verifies } from '../fixtures/verifies.ts';

const page = readFileSync(new URL('../../docs/telemetry.md', import.meta.url), 'utf8');

/** Rows of the first table under a heading, cells trimmed. */
const table = (heading: string): string[][] => {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
};
const code = (text: string): string => `\`${text}\``;
const codes = (names: readonly string[]): string => names.map(code).join(', ');
const namesIn = (cell: string | undefined): string[] =>
  [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');

const metrics: readonly MetricSpec[] = Object.values(METRIC);
const attributes = new Set<string>([
  ...Object.values(ATTR),
  ...Object.entries(semconv).flatMap(([key, value]) =>
    key.startsWith('ATTR_') && typeof value === 'string' ? [value] : [],
  ),
]);

describe('docs/telemetry.md', () => {
  verifies('telemetry.docs-match', () => {
    const promised = metrics.map(({ name, instrument, unit, attributes, description }) => [
      code(name),
      instrument,
      code(unit),
      codes(attributes),
      description,
    ]);
    expect(table('Metrics')).toEqual(promised);

    expect(table('Events').map(([name]) => name)).toEqual(Object.values(EVENT).map(code));
    expect(table('Attributes').map(([name]) => name)).toEqual([...attributes].map(code));

    const method = code(`{${semconv.ATTR_MCP_METHOD_NAME}} {target}`);
    expect(table('Spans').map(([name, kind]) => [name, kind])).toEqual([
      [method, 'SERVER'],
      [method, 'CLIENT'],
      [code('attempt {n}'), 'INTERNAL'],
    ]);
    expect(attemptSpanName(2)).toBe('attempt 2');
  });

  test('events carry attributes that are explained', () => {
    for (const [name, , cell] of table('Events')) {
      expect(namesIn(cell).length, name).toBeGreaterThan(0);
      for (const attribute of namesIn(cell)) expect(attributes).toContain(attribute);
    }
  });
});

describe('names and units', () => {
  verifies('telemetry.naming', () => {
    const all = [...metrics.map(({ name }) => name), ...Object.values(EVENT)];
    expect(new Set(all).size).toBe(all.length);
    for (const name of [...all, ...attributes]) expect(name).toMatch(/^[a-z]+([._][a-z]+)*$/);

    for (const { name, instrument, unit, attributes: own, buckets, description } of metrics) {
      // A name that carries its unit or type would show both twice in Prometheus.
      expect(name).not.toMatch(/[._](total|count|seconds?|ms|bytes|ratio|sum|bucket)$/);
      // UCUM: seconds, or an annotation in the singular, which adds nothing in Prometheus.
      expect(unit, name).toMatch(/^(s|\{[a-z]+[^s]\})$/);
      expect(description, name).toMatch(/^[A-Z].*\.$/);
      for (const attribute of own) expect(attributes).toContain(attribute);
      if (instrument === 'histogram') {
        expect(unit, name).toBe('s');
        expect(buckets, name).toEqual(buckets?.toSorted((a, b) => a - b));
        expect(buckets?.[0], name).toBeGreaterThan(0);
      } else {
        expect(buckets, name).toBeUndefined();
      }
    }
  });

  test('what a session or a request alone has stays out of metrics', () => {
    const unbounded = [
      semconv.ATTR_MCP_SESSION_ID,
      semconv.ATTR_JSONRPC_REQUEST_ID,
      semconv.ATTR_MCP_RESOURCE_URI,
      semconv.ATTR_CLIENT_ADDRESS,
      semconv.ATTR_CLIENT_PORT,
      ATTR.faultId,
    ];
    for (const { attributes: own } of metrics) {
      for (const name of unbounded) expect(own).not.toContain(name);
    }
  });
});
