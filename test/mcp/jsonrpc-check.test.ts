import { JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isMessage } from '../../src/mcp/jsonrpc-check.ts';

const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, 1.5, 2 ** 53, -(2 ** 53), 2 ** 53 - 1, 1e300),
);
const anything = fc.oneof(fc.jsonValue(), number, fc.constantFrom(null, '', [], {}));
/** Mostly what belongs there, now and then something else, or nothing. */
const mostly = (good: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: good }, { weight: 1, arbitrary: anything });
const id = mostly(fc.oneof(fc.string(), number));
const meta = mostly(
  fc.record(
    {
      progressToken: id,
      'io.modelcontextprotocol/related-task': mostly(
        fc.record({ taskId: mostly(fc.string()), more: anything }, { requiredKeys: [] }),
      ),
      traceparent: anything,
    },
    { requiredKeys: [] },
  ),
);
const body = mostly(fc.record({ _meta: meta, name: anything }, { requiredKeys: [] }));
const error = mostly(
  fc.record(
    { code: mostly(number), message: mostly(fc.string()), data: anything },
    { requiredKeys: [] },
  ),
);
const members = {
  jsonrpc: mostly(fc.constant('2.0')),
  id,
  method: mostly(fc.string()),
  params: body,
  result: body,
  error,
};
const some = (keys: readonly (keyof typeof members)[]) =>
  fc.record(
    Object.fromEntries(keys.map((key) => [key, members[key]])),
    // Each may be missing.
    { requiredKeys: [] },
  );
const envelope = fc.oneof(
  some(['jsonrpc', 'id', 'method', 'params']),
  some(['jsonrpc', 'method', 'params']),
  some(['jsonrpc', 'id', 'result']),
  some(['jsonrpc', 'id', 'error']),
  some(['jsonrpc', 'id', 'method', 'params', 'result', 'error']),
);

describe('isMessage', () => {
  test('has the verdicts of the schema of the SDK', () => {
    const seen = { true: 0, false: 0 };
    fc.assert(
      fc.property(envelope, (value) => {
        const verdict = JSONRPCMessageSchema.safeParse(value).success;
        seen[`${verdict}`] += 1;
        expect(isMessage(value)).toBe(verdict);
      }),
      { numRuns: 5_000 },
    );
    // Both happen often, or nothing would be proved.
    expect(Math.min(seen.true, seen.false)).toBeGreaterThan(500);
  });

  test.for([
    [{ jsonrpc: '2.0', id: 1, method: 'ping' }, true],
    [{ jsonrpc: '2.0', id: 2 ** 53, method: 'ping' }, false],
    [{ jsonrpc: '2.0', id: null, method: 'ping' }, false],
    [{ jsonrpc: '2.0', id: 1, method: 'ping', params: [] }, false],
    [{ jsonrpc: '2.0', method: 'x', params: { _meta: { progressToken: 1.5 } } }, false],
    [{ jsonrpc: '2.0', id: 1, result: {}, error: { code: 1, message: '' } }, false],
    [{ jsonrpc: '2.0', error: { code: -32700, message: 'no id is known' } }, true],
    [{ jsonrpc: '2.0', id: 1 }, false],
  ] as const)('%j: %s', ([value, verdict]) => {
    expect([isMessage(value), JSONRPCMessageSchema.safeParse(value).success]).toEqual([
      verdict,
      verdict,
    ]);
  });
});
