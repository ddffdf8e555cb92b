import { DiagLogLevel } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { createDiagLogger, diagLevel } from '../../src/telemetry/diagnostics.ts';

describe('diagnostics', () => {
  let now = 0;
  const lines: string[] = [];
  const logger = createDiagLogger(
    (line) => lines.push(line),
    () => now,
  );

  test('the same complaint is written once a minute, with the number held back', () => {
    for (let port = 1; port <= 1000; port++) logger.error(`connect ECONNREFUSED ::1:${port}`);
    logger.error('something else');
    now += 60_001;
    logger.error('connect ECONNREFUSED ::1:1');
    expect(lines).toEqual([
      'mcp-resilience: telemetry error: connect ECONNREFUSED ::1:1',
      'mcp-resilience: telemetry error: something else',
      'mcp-resilience: telemetry error: connect ECONNREFUSED ::1:1 (and 999 like it)',
    ]);
  });

  test('what is remembered stays bounded', () => {
    const before = lines.length;
    const letters = 'abcdefghijklmnopqrstuvwxyz';
    for (const a of letters) for (const b of letters) logger.warn(`odd: ${a}${b}`);
    expect(lines.length - before).toBe(letters.length ** 2);
  });

  test('an error that the SDK flattened is told in one line', () => {
    logger.error(JSON.stringify({ stack: 'Error: no\n  at x', message: 'no', name: 'Error' }));
    logger.error(
      JSON.stringify({ stack: 'AggregateError\n  at x', code: 'E1', name: 'AggregateError' }),
    );
    expect(lines.slice(-2)).toEqual([
      'mcp-resilience: telemetry error: Error: no',
      'mcp-resilience: telemetry error: AggregateError: E1',
    ]);
  });

  test('debug output is not held back, but cut', () => {
    logger.debug('items', { all: 'x'.repeat(10_000) });
    logger.debug('items', { all: 'x'.repeat(10_000) });
    expect(lines.at(-1)).toEqual(lines.at(-2));
    expect(lines.at(-1)?.length).toBeLessThan(2_100);
  });

  test('OTEL_LOG_LEVEL is read in any case; unknown means errors only', () => {
    expect(diagLevel('debug')).toBe(DiagLogLevel.DEBUG);
    expect(diagLevel(' Warn ')).toBe(DiagLogLevel.WARN);
    expect(diagLevel('none')).toBe(DiagLogLevel.NONE);
    expect(diagLevel('30')).toBe(DiagLogLevel.ERROR);
    expect(diagLevel('loud')).toBe(DiagLogLevel.ERROR);
    expect(diagLevel(undefined)).toBe(DiagLogLevel.ERROR);
  });
});
