import fc from 'fast-check';
import { expect } from 'vitest';
import {
  classify,
  createFailure,
  failureCodes,
  ResilienceError,
} from '../../src/resilience/failure.ts';
import { verifies } from '../fixtures/verifies.ts';
import { expectWhole } from '../fixtures/whole-failure.ts';

/** Things with the fields that the recognisers look at, holding anything. */
const lookalike = fc.letrec<{ node: unknown; link: unknown }>((tie) => ({
  link: fc.oneof({ maxDepth: 3 }, fc.anything(), tie('node')),
  node: fc
    .record(
      {
        name: fc.constantFrom('ZodError', 'McpError', 'AggregateError', 'AbortError', 'TypeError'),
        code: fc.oneof(
          fc.constantFrom('ECONNRESET', 'UND_ERR_SOCKET', ...failureCodes),
          fc.integer({ min: -33_000, max: 600 }),
          fc.anything(),
        ),
        message: fc.oneof(fc.string({ unit: 'binary', maxLength: 2_000 }), fc.anything()),
        status: fc.oneof(fc.integer({ min: -1, max: 700 }), fc.anything()),
        headers: fc.oneof(fc.dictionary(fc.constant('Retry-After'), fc.anything()), fc.anything()),
        severity: fc.constantFrom('transient', 'permanent'),
        source: fc.constant('network'),
        weight: fc.constantFrom('caller', 'throttled', 'infrastructure'),
        delivery: fc.constant('lost'),
        retryable: fc.boolean(),
        retryAfter: fc.oneof(fc.double(), fc.anything()),
        isError: fc.boolean(),
        content: fc.oneof(fc.array(fc.record({ text: fc.string() })), fc.anything()),
        issues: fc.array(fc.anything()),
        data: tie('link'),
        failure: tie('link'),
        cause: tie('link'),
        error: tie('link'),
        errors: fc.array(tie('link'), { maxLength: 3 }),
      },
      { requiredKeys: [] },
    )
    .map((fields) => Object.assign(new Error(), fields)),
}));

const hostile = (): unknown[] => {
  const boom = () => {
    throw new Error('boom');
  };
  const traps = new Proxy({}, { get: () => boom, getOwnPropertyDescriptor: boom });
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const cyclic = new Error('round');
  cyclic.cause = new Error('and', { cause: cyclic });
  const own = new AggregateError([]);
  own.errors.push(own, { errors: [own], name: 'AggregateError' });
  let deep: Error = new Error('bottom');
  for (let depth = 0; depth < 10_000; depth += 1) deep = new Error('deeper', { cause: deep });
  return [
    undefined,
    null,
    0n,
    Symbol('s'),
    () => {},
    class {},
    '',
    Object.create(null),
    Object.freeze(new Error('frozen')),
    traps,
    proxy,
    new Proxy({}, { get: boom, has: boom, getPrototypeOf: boom }),
    new Proxy(new ResilienceError(createFailure('TIMEOUT')), {}),
    {
      get code() {
        return boom();
      },
      get message() {
        return boom();
      },
    },
    { headers: { get: boom }, status: 429 },
    { headers: new Proxy({}, { ownKeys: boom }), status: 429 },
    cyclic,
    own,
    deep,
    new Error('x'.repeat(5_000_000)),
    new Error('\u0000\n\r\u2028'),
    new Error('\ud800'.repeat(600)),
    Object.assign(new Error('x'), { name: Symbol('name'), code: {}, cause: Symbol('c') }),
    new Date(Number.NaN),
    Promise.resolve(),
  ];
};

verifies('failure.never-throws', () => {
  for (const value of hostile()) {
    const failure = classify(value);
    expectWhole(failure);
    expect(failure.cause).toBe(value);
  }
  const values = fc.oneof(fc.anything({ withNullPrototype: true }), lookalike.node);
  fc.assert(
    fc.property(values, (value) => expectWhole(classify(value))),
    { numRuns: 2_000 },
  );
});

verifies('failure.invariants', () => {
  for (const code of failureCodes) {
    expectWhole(createFailure(code));
    // A failure that is thrown as it is.
    const bare = { ...createFailure(code), message: '\u0000', suggestion: ' ', weight: 'caller' };
    expectWhole(classify(bare));
    expect(classify(bare).code).toBe(code);
  }
  expect(new Set(failureCodes).size).toBe(27);
});
