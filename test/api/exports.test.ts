/**
 * The public names: a list that changes only on purpose, each documented where it is declared.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import * as chaos from '../../src/chaos/index.ts';
import * as library from '../../src/index.ts';
import { ENTRIES, type Entry, publicNames, root } from './public.ts';

/** Taking one away is a breaking change. */
const VALUES = [
  'Bulkhead',
  'CircuitBreaker',
  'CircuitOpenError',
  'Deadline',
  'META_FAILURE',
  'META_OUTCOME',
  'PipelineRegistry',
  'RateLimiter',
  'ResilienceError',
  'ResultCache',
  'Retry',
  'RetryBudget',
  'SettingsError',
  'SingleFlight',
  'backoffDelay',
  'cacheKey',
  'classify',
  'createFailure',
  'createPipeline',
  'currentDeadline',
  'defineTool',
  'describe',
  'failureResult',
  'failureToJSON',
  'overridePolicy',
  'presets',
  'protect',
  'protectTool',
  'redact',
  'runWithDeadline',
  'systemClock',
  'throttledResult',
];

/** Types count as much: who names one in his own code depends on it. */
const TYPES = [
  'AdaptiveLimitSettings',
  'Backoff',
  'BreakerEvent',
  'BreakerOutcome',
  'BreakerPermit',
  'BreakerSettings',
  'BreakerSnapshot',
  'BreakerState',
  'BulkheadSettings',
  'CacheHit',
  'CacheKeyParts',
  'CacheSettings',
  'CacheStats',
  'CallContext',
  'CallOptions',
  'Classifier',
  'ClassifyOptions',
  'Clock',
  'ContentBlock',
  'Delivery',
  'DescribeOptions',
  'Failure',
  'FailureCode',
  'FailureDetails',
  'FailureSeverity',
  'FailureSource',
  'FailureWeight',
  'HedgeSettings',
  'Jitter',
  'Outcome',
  'Pipeline',
  'PipelineOptions',
  'PolicySettings',
  'PresetName',
  'Priority',
  'ProtectOptions',
  'Protected',
  'ProtectedContext',
  'Random',
  'RateLimitSettings',
  'RetryBudgetSettings',
  'RetrySettings',
  'Timer',
  'Tool',
  'ToolAnnotations',
  'ToolContext',
  'ToolOutcome',
  'ToolResult',
  'Work',
];

/** `mcp-resilience/chaos`, apart so that who does not ask for it does not load it. */
const CHAOS_VALUES = ['ChaosError', 'createChaos'];
const CHAOS_TYPES = [
  'AutoStop',
  'Chaos',
  'ChaosOptions',
  'FaultInput',
  'FaultList',
  'FaultReport',
  'SdkServer',
  'ToolTarget',
];

const LISTED = {
  'mcp-resilience': { exported: library, values: VALUES, types: TYPES },
  'mcp-resilience/chaos': { exported: chaos, values: CHAOS_VALUES, types: CHAOS_TYPES },
} as const;

describe.each(Object.keys(ENTRIES) as Entry[])('the public API: %s', (entry) => {
  const names = publicNames(entry);
  const listed = LISTED[entry];

  test('exports these values and types, and no others', () => {
    expect(Object.keys(listed.exported).sort()).toEqual(listed.values);
    const types = names.filter(({ kind }) => kind === 'type').map(({ name }) => name);
    expect(types.sort()).toEqual(listed.types);
    expect(names).toHaveLength(listed.values.length + listed.types.length);
  });

  test('names each of them: nothing is exported wholesale or by default', () => {
    const index = readFileSync(join(root, ENTRIES[entry]), 'utf8');
    expect(index).not.toMatch(/^export (?:\*|default)/m);
  });

  test('documents each of them', () => {
    const mute = names.filter(({ doc }) => doc === '').map(({ name }) => name);
    expect(mute).toEqual([]);
  });

  // `examples.test.ts` type-checks what stands there.
  test('shows each of them, types too, in an example that imports it by name', () => {
    const unshown = names.filter(({ name, doc }) => {
      const [, code = ''] = /^@example\n```ts\n([\s\S]+?)\n```$/m.exec(doc) ?? [];
      const shown = [...code.matchAll(/^import (?:type )?\{([^}]+)\} from '([^']+)';$/gm)]
        .filter(([, , from]) => from === entry)
        .flatMap(([, imported = '']) => imported.split(','))
        .map((text) => text.trim().replace(/^type /, ''));
      return !shown.includes(name);
    });
    expect(unshown.map(({ name }) => name)).toEqual([]);
  });
});

test('every entry of the package that is imported by name is looked at here', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const own = ['./register', './package.json'];
  const entries = Object.keys(exports).filter((key) => !own.includes(key));
  expect(entries.map((key) => join('mcp-resilience', key))).toEqual(Object.keys(ENTRIES));
});
