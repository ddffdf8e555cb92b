import { describe, expect, test } from 'vitest';
import {
  classify,
  createFailure,
  FAILURE_KEY,
  type Failure,
  failureCodes,
  failureProfiles,
  failureToJSON,
  ResilienceError,
} from '../../src/resilience/failure.ts';

const errno = (code: string, syscall?: string) =>
  Object.assign(new Error(code), { code, ...(syscall && { syscall }) });

describe('causes', () => {
  test('are found in `cause` and in `error`, which error events have', () => {
    expect(classify({ error: errno('ECONNREFUSED') }).code).toBe('CONNECTION_REFUSED');
    expect(classify({ cause: null, error: errno('ECONNREFUSED') }).code).toBe('CONNECTION_REFUSED');
  });

  test('that are certain go before what a name suggests, and a name before a defect', () => {
    const abort = Object.assign(new Error('x', { cause: errno('ECONNRESET') }), {
      name: 'AbortError',
    });
    expect(classify(abort).code).toBe('CONNECTION_RESET');
    const inner = Object.assign(new Error('x'), { name: 'AbortError' });
    expect(classify(new RangeError('bug', { cause: inner })).code).toBe('CANCELLED');
  });

  test('are followed for 32 links', () => {
    const chain = (links: number): Error =>
      links === 0 ? errno('ECONNREFUSED') : new Error('link', { cause: chain(links - 1) });
    expect(classify(chain(31)).code).toBe('CONNECTION_REFUSED');
    expect(classify(chain(32)).code).toBe('UNKNOWN_ERROR');
  });

  test('of a failure of ours come with it', () => {
    const failure = createFailure('CIRCUIT_OPEN');
    // Another copy of this package: the class is not ours, the failure is whole.
    const foreign = { failure: failureToJSON(failure) };
    expect(classify(foreign)).toEqual(failure);
    expect(classify({ failure: { code: 'CIRCUIT_OPEN' } }).code).toBe('UNKNOWN_ERROR');
    expect(classify({ failure: 'CIRCUIT_OPEN' }).code).toBe('UNKNOWN_ERROR');
    expect(classify(failureToJSON(failure))).toEqual(failure);
  });
});

describe('aggregates', () => {
  const of = (...errors: unknown[]) => classify(new AggregateError(errors));
  // From the least to the most telling.
  const ranked = [
    [new Error('?'), 'UNKNOWN_ERROR'],
    [new TypeError('bug'), 'INTERNAL_ERROR'],
    [Object.assign(new Error('x'), { name: 'AbortError' }), 'CANCELLED'],
    [errno('ERR_NETWORK'), 'NETWORK_ERROR'],
    [errno('EHOSTUNREACH'), 'HOST_UNREACHABLE'],
    [errno('ENOTFOUND'), 'DNS_FAILURE'],
    [errno('ETIMEDOUT', 'connect'), 'CONNECT_TIMEOUT'],
    [errno('ECONNREFUSED'), 'CONNECTION_REFUSED'],
    [errno('CERT_HAS_EXPIRED'), 'TLS_FAILURE'],
  ] as const;

  test('say the most telling of what is in them, in whatever order', () => {
    for (const [low, [dull]] of ranked.entries()) {
      for (const [telling, code] of ranked.slice(low + 1)) {
        expect(of(dull, telling).code).toBe(code);
        expect(of(telling, dull).code).toBe(code);
      }
    }
    // Among equals the first one.
    expect(of({ status: 503 }, { status: 429 }).code).toBe('UPSTREAM_UNAVAILABLE');
  });

  test('got as far as the one of them that got farthest', () => {
    const refused = { status: 425 };
    const answered = { status: 503 };
    const lost = errno('ECONNRESET', 'read');
    const notSent = errno('ECONNREFUSED');
    expect(of(notSent, notSent).delivery).toBe('not_sent');
    expect(of(notSent, refused).delivery).toBe('refused');
    expect(of(refused, answered).delivery).toBe('answered');
    expect(of(lost, answered).delivery).toBe('lost');
  });

  test('are the cause themselves, and are known by class or name', () => {
    const aggregate = new AggregateError([errno('ECONNREFUSED')]);
    expect(classify(aggregate).cause).toBe(aggregate);
    const named = { name: 'AggregateError', errors: [errno('ECONNREFUSED')] };
    expect(classify(named).code).toBe('CONNECTION_REFUSED');
    expect(classify({ name: 'Other', errors: [errno('ECONNREFUSED')] }).code).toBe('UNKNOWN_ERROR');
    expect(classify({ name: 'AggregateError', errors: 'none' }).code).toBe('UNKNOWN_ERROR');
  });

  test('that contain themselves end all the same', () => {
    const errors: unknown[] = [];
    const aggregate = new AggregateError(errors);
    Object.assign(aggregate, { errors: [aggregate, errno('ECONNREFUSED')] });
    expect(classify(aggregate)).toMatchObject({
      code: 'CONNECTION_REFUSED',
      delivery: 'not_sent',
    });
  });

  test('of nothing known say what their own cause does', () => {
    const aggregate = new AggregateError([new Error('?')], 'x', { cause: errno('ECONNRESET') });
    expect(classify(aggregate).code).toBe('CONNECTION_RESET');
  });
});

describe('what nobody knows', () => {
  test.each([
    [null, 'The call failed with a thrown null.'],
    [5, 'The call failed with a thrown number.'],
    [true, 'The call failed with a thrown boolean.'],
    [Symbol('s'), 'The call failed with a thrown symbol.'],
    ['', 'The call failed.'],
    ['no luck', 'The call failed: no luck.'],
    [{}, 'The call failed.'],
    [{ message: '  spaced  ' }, 'The call failed: spaced.'],
    [{ message: 5 }, 'The call failed.'],
  ])('%o', (value, message) => {
    expect(classify(value)).toMatchObject({ code: 'UNKNOWN_ERROR', message, cause: value });
  });

  test('reads what a function has for properties, and no further than it may', () => {
    expect(classify(Object.assign(() => {}, { status: 404 })).code).toBe('NOT_FOUND');
    const trap = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no');
        },
        getPrototypeOf: () => {
          throw new Error('no');
        },
      },
    );
    expect(classify(trap).code).toBe('UNKNOWN_ERROR');
    expect(classify(trap).cause === trap).toBe(true);
  });
});

describe('a classifier of the user’s', () => {
  const own = (answer: unknown) =>
    classify(new Error('x'), { classifier: () => answer as Failure });

  test('gives a code of its own, completed as an unknown one without its texts', () => {
    const { suggestion, fallbackHint, message, ...usual } = createFailure('UNKNOWN_ERROR');
    expect([suggestion, message].every(Boolean)).toBe(true);
    expect(own({ code: 'MINE' })).toEqual({ ...usual, message, code: 'MINE' });
    void fallbackHint;
  });

  test('gives a code of ours, completed with its texts', () => {
    expect(own({ code: 'RATE_LIMITED', retryAfter: 5 })).toEqual(
      createFailure('RATE_LIMITED', { retryAfter: 5 }),
    );
  });

  test('may say each thing differently', () => {
    const said = {
      code: 'MINE',
      message: 'Full.',
      severity: 'degradable',
      source: 'circuit',
      weight: 'throttled',
      delivery: 'refused',
      retryable: false,
      retryAfter: 0,
      suggestion: 'Wait.',
      fallbackHint: 'Walk.',
      cause: 'because',
    };
    expect(own(said)).toEqual(said);
  });

  test.each(['network', 'upstream', 'validation', 'internal', 'rate_limit', 'timeout', 'circuit'])(
    'may name the source %s',
    (source) => {
      expect(own({ code: 'MINE', source }).source).toBe(source);
    },
  );

  test.each(['transient', 'permanent', 'degradable'])('may say %s', (severity) => {
    expect(own({ code: 'MINE', severity }).severity).toBe(severity);
  });

  test.each(['infrastructure', 'throttled', 'caller'])('may weigh as %s', (weight) => {
    expect(own({ code: 'MINE', weight }).weight).toBe(weight);
  });

  test.each(['not_sent', 'refused', 'answered', 'lost'])('may tell that it was %s', (delivery) => {
    expect(own({ code: 'MINE', delivery }).delivery).toBe(delivery);
  });

  test('cannot say what is not allowed, nor contradict itself', () => {
    const usual = failureProfiles.UNKNOWN_ERROR;
    const odd = {
      severity: 'odd',
      source: 'odd',
      weight: 'odd',
      delivery: 'odd',
      retryable: 'odd',
    };
    expect(own({ code: 'MINE', ...odd, message: ' ', suggestion: ' ' })).toMatchObject(usual);
    expect(own({ code: 'MINE', suggestion: ' ' })).not.toHaveProperty('suggestion');
    expect(own({ code: 'MINE', weight: 'caller' }).retryable).toBe(false);
    expect(own({ code: 'MINE', severity: 'permanent' }).retryable).toBe(false);
    for (const retryAfter of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5']) {
      expect(own({ code: 'MINE', retryAfter })).not.toHaveProperty('retryAfter');
    }
    expect(own({ code: 'MINE' })).not.toHaveProperty('cause');
    const tls = { code: 'TLS_FAILURE', severity: 'transient', retryable: true };
    expect(own(tls).retryable).toBe(true);
  });

  test('has to give a code that looks like one', () => {
    for (const code of ['A', 'my.own:code/1-x_2', 'x'.repeat(100)]) {
      expect(own({ code }).code).toBe(code);
    }
    for (const code of ['', ' ', 'a b', 'x'.repeat(101), 'ü', 5, null]) {
      expect(own({ code }).code, String(code)).toBe('UNKNOWN_ERROR');
    }
  });
});

describe('a failure that arrives as data', () => {
  const sent = failureToJSON(createFailure('CIRCUIT_OPEN', { retryAfter: 5 }));
  const of = (data: unknown) =>
    classify({ isError: true, content: [], _meta: { [FAILURE_KEY]: data } }).code;

  test('is taken when it is whole', () => {
    expect(of(sent)).toBe('CIRCUIT_OPEN');
    for (const key of ['message', 'severity', 'source', 'weight', 'delivery', 'retryable']) {
      expect(of({ ...sent, [key]: undefined }), key).toBe('TOOL_ERROR');
      expect(of({ ...sent, [key]: 7 }), key).toBe('TOOL_ERROR');
    }
    expect(of({ ...sent, code: 'no code' })).toBe('TOOL_ERROR');
    expect(of(null)).toBe('TOOL_ERROR');
    expect(of('CIRCUIT_OPEN')).toBe('TOOL_ERROR');
    expect(of({ ...sent, source: 'cancelled' })).toBe('CIRCUIT_OPEN');
  });
});

describe('ResilienceError', () => {
  test('has the code, the message, the cause and the whole failure', () => {
    const cause = new Error('inner');
    const failure = createFailure('TIMEOUT', { message: 'Too late.', cause });
    const error = new ResilienceError(failure);
    expect(error).toMatchObject({ name: 'ResilienceError', code: 'TIMEOUT', message: 'Too late.' });
    expect(error.failure).toBe(failure);
    expect(error.cause).toBe(cause);
    expect('cause' in new ResilienceError(createFailure('TIMEOUT'))).toBe(false);
  });
});

describe('the tables', () => {
  test('cannot be changed', () => {
    expect(Object.isFrozen(failureProfiles)).toBe(true);
    expect(Object.isFrozen(failureCodes)).toBe(true);
    for (const code of failureCodes) expect(Object.isFrozen(failureProfiles[code])).toBe(true);
  });

  test('a code without a lesser answer has no hint of one', () => {
    const withHint = failureCodes.filter((code) => 'fallbackHint' in createFailure(code));
    expect(withHint.length).toBeGreaterThan(0);
    expect(withHint.length).toBeLessThan(failureCodes.length);
    for (const code of withHint) expect(createFailure(code).fallbackHint).toBeTypeOf('string');
  });
});
