import assert from 'node:assert/strict';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { z as mini } from 'zod/mini';
import { z as z3 } from 'zod/v3';
import {
  classify,
  createFailure,
  type Failure,
  failureProfiles,
  failureToJSON,
  ResilienceError,
} from '../../src/resilience/failure.ts';
import { verifies } from '../fixtures/verifies.ts';
import { expectWhole } from '../fixtures/whole-failure.ts';

const thrown = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('expected a throw');
};

verifies('failure.programming-errors', () => {
  const defects = [
    thrown(() => (null as unknown as { x: number }).x),
    thrown(() => (undefined as unknown as () => void)()),
    thrown(() => 'x'.repeat(-1)),
    thrown(() => Reflect.get(globalThis, 'eval')('notDefinedAnywhere')),
    thrown(() => decodeURIComponent('%')),
    thrown(() => assert.equal(1, 2)),
    thrown(() => new URL('::')),
    thrown(() => Buffer.alloc(-1)),
    thrown(() => structuredClone(() => {})),
    new EvalError('x'),
    new Error('handler failed', { cause: new TypeError('x is not a function') }),
  ];
  for (const defect of defects)
    expect(classify(defect)).toMatchObject({
      code: 'INTERNAL_ERROR',
      source: 'internal',
      severity: 'permanent',
      weight: 'caller',
      retryable: false,
    });
});

test('any other error, and whatever else is thrown, is unknown, transient and infrastructure', () => {
  for (const value of [new Error('odd'), 'odd', undefined, 7, { odd: true }])
    expect(classify(value)).toMatchObject({
      code: 'UNKNOWN_ERROR',
      severity: 'transient',
      weight: 'infrastructure',
      retryable: true,
    });
  expect(classify(new Error('odd')).message).toBe('The call failed: odd.');
  expect(classify('odd').message).toBe('The call failed: odd.');
  expect(classify(undefined).message).toBe('The call failed with a thrown undefined.');
});

verifies('failure.invalid-json', () => {
  for (const text of ['{"a":', '<html>', '', '{a:1}', '[1,]', '{"a":1}x', '"\n"', '-'])
    expect(classify(thrown(() => JSON.parse(text))), text).toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      weight: 'infrastructure',
    });
  expect(classify(thrown(() => JSON.parse('<html>'))).message).toContain('HTML');
  for (const defect of [
    thrown(() => JSON.parse(undefined as unknown as string)),
    thrown(() => JSON.parse({} as unknown as string)),
    thrown(() => BigInt('x')),
    thrown(() => Reflect.construct(RegExp, ['('])),
  ])
    expect(classify(defect).code).toBe('INTERNAL_ERROR');
});

verifies('failure.cause-chain', () => {
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const wrapped = new Error('a', { cause: new TypeError('b', { cause: reset }) });
  expect(classify(wrapped).code).toBe('CONNECTION_RESET');
  // The one outside has seen more: it may have turned a reset into an answer.
  const answered = Object.assign(new Error('c', { cause: reset }), { status: 404 });
  expect(classify(answered).code).toBe('NOT_FOUND');
  const open = new ResilienceError(createFailure('CIRCUIT_OPEN', { retryAfter: 3 }));
  expect(classify(open)).toBe(open.failure);
  expect(classify(new Error('weather failed', { cause: open }))).toBe(open.failure);
  const cyclic = new Error('round');
  cyclic.cause = cyclic;
  expect(classify(cyclic).code).toBe('UNKNOWN_ERROR');
  let links = 0;
  const endless = (): Error =>
    Object.defineProperty(new Error(`link ${links}`), 'cause', {
      get: () => (links++ < 1_000 ? endless() : undefined),
    });
  expect(classify(endless()).code).toBe('UNKNOWN_ERROR');
  expect(links).toBeLessThan(100);
});

verifies('failure.aggregate', () => {
  const errno = (code: string, syscall = 'connect') =>
    Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
  const of = (...errors: unknown[]) => classify(new AggregateError(errors));
  expect(of(errno('ECONNREFUSED'), errno('ECONNREFUSED')).code).toBe('CONNECTION_REFUSED');
  const eyeballs = [errno('ENETUNREACH'), errno('ECONNREFUSED'), errno('ETIMEDOUT')];
  expect(of(...eyeballs)).toMatchObject({ code: 'CONNECTION_REFUSED', delivery: 'not_sent' });
  const failed = new TypeError('fetch failed', { cause: new AggregateError(eyeballs) });
  expect(classify(failed).code).toBe('CONNECTION_REFUSED');
  expect(of(errno('ECONNREFUSED'), errno('ECONNRESET', 'read')).delivery).toBe('lost');
  expect(of(errno('ECONNREFUSED'), new TypeError('bug')).code).toBe('CONNECTION_REFUSED');
  // Two went out: one was refused, of the other nobody knows.
  const network = Object.assign(new Error('Network Error'), { code: 'ERR_NETWORK' });
  expect(of(errno('ECONNREFUSED'), network)).toMatchObject({
    code: 'CONNECTION_REFUSED',
    delivery: 'lost',
  });
  expect(of(new Error('x'), new Error('y')).code).toBe('UNKNOWN_ERROR');
  expect(of().code).toBe('UNKNOWN_ERROR');
  const { code } = classify(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }));
  expect(code).toBe('CONNECTION_REFUSED');
});

verifies('failure.validation', () => {
  const bad = { a: { b: 1 }, c: ['x'] };
  for (const [library, error] of [
    ['zod 4', thrown(() => z.object({ a: z.object({ b: z.string() }) }).parse(bad))],
    ['zod 3', thrown(() => z3.object({ a: z3.object({ b: z3.string() }) }).parse(bad))],
    ['zod mini', thrown(() => mini.object({ a: mini.object({ b: mini.string() }) }).parse(bad))],
    ['safeParse', z.object({ a: z.object({ b: z.string() }) }).safeParse(bad).error],
  ] as const) {
    const failure = classify(error);
    expect(failure, library).toMatchObject({
      code: 'INVALID_INPUT',
      source: 'validation',
      weight: 'caller',
      retryable: false,
    });
    expect(failure.message).toContain('a.b: ');
  }
  const list = z.object({ c: z.array(z.number()) }).safeParse(bad).error;
  expect(classify(list).message).toContain('c[0]: ');
  const many = z.array(z.number()).safeParse(Array(9).fill('x')).error;
  expect(classify(many).message).toContain('and 4 more');
});

verifies('failure.custom-classifier', () => {
  const error = new Error('SQLSTATE 53300');
  const own = { ...createFailure('BULKHEAD_FULL'), code: 'TOO_MANY_CONNECTIONS', message: 'full' };
  const { suggestion: _, fallbackHint: __, ...bare } = own;
  expect(classify(error, { classifier: () => bare })).toEqual(bare);
  const odd = [undefined, null, 7, {}, { code: '' }, { code: 1 }, Promise.resolve(own)];
  for (const answer of odd)
    expect(classify(error, { classifier: () => answer as Failure }).code).toBe('UNKNOWN_ERROR');
  const broken = () => {
    throw new Error('broken classifier');
  };
  expect(classify(error, { classifier: broken }).message).toContain('53300');
  // What it leaves out or contradicts is completed.
  const partial = { code: 'QUOTA', weight: 'caller', retryable: true } as Failure;
  expectWhole(classify(error, { classifier: () => partial }));
});

verifies('failure.no-secrets', () => {
  const secret = 'hunter2hunter2';
  const texts = [
    `GET https://me:${secret}@api.example/v1?key=${secret} failed`,
    `connect postgres://app:${secret}@db.internal:5432/main`,
    `Invalid header Authorization: Bearer ${secret}`,
    `rejected {"api_key":"${secret}","city":"Graz"}`,
    `spawn failed: server --api-key ${secret}`,
    `cookie: sid=${secret}`,
  ];
  for (const text of texts)
    for (const value of [
      text,
      new Error(text),
      new TypeError(text),
      Object.assign(new Error(text), { status: 422 }),
      Object.assign(new Error(text), { code: -32_602 }),
      Object.assign(new Error(text), { code: 'CERT_HAS_EXPIRED' }),
      new AggregateError([new Error(text)], text),
      { isError: true, content: [{ type: 'text', text }] },
      thrown(() => JSON.parse(`Token: ${secret}`)),
      thrown(() => new URL(`https://me:${secret}@ho st/?key=${secret}`)),
    ])
      expect(JSON.stringify(failureToJSON(classify(value)))).not.toContain(secret);
});

verifies('failure.plain-data', () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  const json = failureToJSON(classify(cyclic));
  expect(JSON.parse(JSON.stringify(json))).toEqual(json);
  expect(json).not.toHaveProperty('cause');
  const sparse = { ...createFailure('TIMEOUT'), retryAfter: undefined } as unknown as Failure;
  expect(Object.keys(failureToJSON(sparse))).not.toContain('retryAfter');
});

test('a failure of a code is its profile, with what is known better over it', () => {
  const failure = createFailure('TIMEOUT', {
    message: 'Attempt 2 took 3 s.',
    suggestion: undefined,
  });
  expect(failure).toMatchObject({ ...failureProfiles.TIMEOUT, message: 'Attempt 2 took 3 s.' });
  expect(failure.suggestion).toBeTypeOf('string');
});

test('classifying takes no noticeable time', () => {
  const error = new TypeError('fetch failed', {
    cause: Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' }),
  });
  const started = performance.now();
  for (let n = 0; n < 20_000; n += 1) classify(error);
  // Some 5 us each; the bound is against regex storms, not a measurement.
  expect(performance.now() - started).toBeLessThan(4_000);
});
