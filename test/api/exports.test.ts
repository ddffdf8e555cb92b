/**
 * The public names: a list that changes only on purpose, each documented where it is declared.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import * as library from '../../src/index.ts';
import { publicNames, root } from './public.ts';

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

const names = publicNames();

describe('the public API', () => {
  test('exports these values and types, and no others', () => {
    expect(Object.keys(library).sort()).toEqual(VALUES);
    const types = names.filter(({ kind }) => kind === 'type').map(({ name }) => name);
    expect(types.sort()).toEqual(TYPES);
    expect(names).toHaveLength(VALUES.length + TYPES.length);
  });

  test('names each of them: nothing is exported wholesale or by default', () => {
    const index = readFileSync(join(root, 'src', 'index.ts'), 'utf8');
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
      const [, imported = ''] =
        /^import (?:type )?\{([^}]+)\} from 'mcp-resilience';$/m.exec(code) ?? [];
      return !imported.split(',').some((entry) => entry.trim().replace(/^type /, '') === name);
    });
    expect(unshown.map(({ name }) => name)).toEqual([]);
  });
});
