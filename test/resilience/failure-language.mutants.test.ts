import { describe, expect, test } from 'vitest';
import { classify } from '../../src/resilience/failure.ts';

const named = (name: string, message = 'it broke', more: object = {}) =>
  Object.assign(new Error(message), { name, ...more });

describe('zod', () => {
  const zod = (issues: unknown, name = 'ZodError') => classify(named(name, 'x', { issues }));

  test('tells the path as a reader of the schema would write it', () => {
    const error = named('ZodError', 'x', {
      issues: [
        { path: ['a', 'b', 0, 'c'], message: 'is wrong' },
        { path: [0, 'a'], message: 'is odd' },
        { path: [], message: 'is bad' },
        { message: 'has no path' },
        { path: ['d', Symbol('s'), 'e'] },
      ],
    });
    expect(classify(error)).toMatchObject({
      code: 'INVALID_INPUT',
      message:
        'The arguments are not valid: a.b[0].c: is wrong; [0].a: is odd; is bad; has no path; d.e: is not valid.',
      cause: error,
    });
  });

  test('tells five issues and how many more there are', () => {
    const issue = { path: ['a'], message: 'x' };
    expect(zod(Array(5).fill(issue)).message).not.toContain('more');
    expect(zod(Array(6).fill(issue)).message).toContain('; and 1 more.');
    expect(zod([{ path: Array(14).fill('a'), message: 'x' }]).message).toBe(
      `The arguments are not valid: ${Array(12).fill('a').join('.')}: x.`,
    );
  });

  test('is known by its name and its issues together', () => {
    expect(zod([], '$ZodError').code).toBe('INVALID_INPUT');
    expect(zod([], 'OtherError').code).toBe('UNKNOWN_ERROR');
    expect(zod('none').code).toBe('UNKNOWN_ERROR');
  });
});

describe('JSON', () => {
  const json = (message: string, name = 'SyntaxError') => classify(named(name, message));

  test.each([
    ['Unexpected end of JSON input', "The upstream's answer is not valid JSON: it ends too early."],
    [
      'Unexpected token \'<\', "<html>" is not valid JSON',
      "The upstream's answer is not valid JSON: it looks like HTML.",
    ],
    ['Unexpected token \'x\', "x" is not valid JSON', "The upstream's answer is not valid JSON."],
  ])('%s', (message, told) => {
    expect(json(message)).toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE', message: told });
  });

  test('that was no text is a defect, and so is every other syntax error', () => {
    expect(json('"undefined" is not valid JSON').code).toBe('INTERNAL_ERROR');
    expect(json('"[object Object]" is not valid JSON').code).toBe('INTERNAL_ERROR');
    expect(json('say "undefined" is not valid JSON').code).toBe('UPSTREAM_INVALID_RESPONSE');
    expect(json('"undefined" is not valid JSON!').code).toBe('UPSTREAM_INVALID_RESPONSE');
    expect(json('Invalid regular expression').code).toBe('INTERNAL_ERROR');
    expect(json('not valid JSON', 'OtherError').code).toBe('UNKNOWN_ERROR');
  });

  test('of another realm is known by its name, of a subclass by its class', () => {
    expect(classify({ name: 'SyntaxError', message: 'bad JSON' }).code).toBe(
      'UPSTREAM_INVALID_RESPONSE',
    );
    const sub = Object.assign(new SyntaxError('bad JSON'), { name: 'ParseError' });
    expect(classify(sub).code).toBe('UPSTREAM_INVALID_RESPONSE');
  });
});

describe('names', () => {
  test('of timeouts and aborts', () => {
    const late = named('TimeoutError');
    expect(classify(late)).toMatchObject({ code: 'TIMEOUT', cause: late });
    const gone = named('AbortError');
    expect(classify(gone)).toMatchObject({ code: 'CANCELLED', cause: gone });
    for (const code of ['ABORT_ERR', 'ERR_CANCELED', 'UND_ERR_ABORTED']) {
      expect(classify(named('Error', 'x', { code })).code, code).toBe('CANCELLED');
    }
    // Its cause knows better.
    expect(classify(named('AbortError', 'x', { cause: late })).code).toBe('TIMEOUT');
  });

  test('and the text of a transport that is not connected', () => {
    const error = named('Error', 'Not connected');
    expect(classify(error)).toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      message: 'The upstream is not connected.',
      delivery: 'not_sent',
      cause: error,
    });
    expect(classify(named('Error', 'Not connected yet')).code).toBe('UNKNOWN_ERROR');
  });
});

describe('what fetch throws', () => {
  const failed = (reason?: string, message = 'fetch failed') =>
    classify(new TypeError(message, reason === undefined ? {} : { cause: new Error(reason) }));

  test('is a reset when the body ended too early', () => {
    expect(failed(undefined, 'terminated').code).toBe('CONNECTION_RESET');
  });

  test.each(['bad port', 'unknown scheme', 'URL scheme must be a HTTP(S) scheme'])(
    'is a defect for "%s"',
    (reason) => {
      expect(failed(reason)).toMatchObject({
        code: 'INTERNAL_ERROR',
        delivery: 'not_sent',
        message: `The tool has a defect: ${reason}.`,
      });
    },
  );

  test('is an answer that leads nowhere for redirects', () => {
    expect(failed('redirect count exceeded')).toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      severity: 'permanent',
      retryable: false,
      message: "The upstream's redirects lead nowhere: redirect count exceeded.",
    });
  });

  test('is a failure of the network otherwise', () => {
    expect(failed('other side closed')).toMatchObject({
      code: 'NETWORK_ERROR',
      message: 'The request failed: other side closed.',
    });
    expect(failed()).toMatchObject({ code: 'NETWORK_ERROR', message: 'The request failed.' });
    const error = new TypeError('fetch failed');
    expect(classify(error).cause).toBe(error);
    expect(failed(undefined, 'x is not a function').code).toBe('INTERNAL_ERROR');
    expect(classify(named('Error', 'fetch failed')).code).toBe('UNKNOWN_ERROR');
    expect(classify(named('Error', 'terminated')).code).toBe('UNKNOWN_ERROR');
  });
});

describe('defects', () => {
  test.each([
    'TypeError',
    'RangeError',
    'ReferenceError',
    'SyntaxError',
    'EvalError',
    'URIError',
    'AssertionError',
    'DataCloneError',
  ])('%s of any realm', (name) => {
    expect(classify({ name, message: 'oh' })).toMatchObject({
      code: 'INTERNAL_ERROR',
      message: `The tool has a defect (${name}): oh.`,
    });
  });

  test.each([TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError])(
    'a subclass of %o',
    (type) => {
      class Other extends type {}
      const error = Object.assign(new Other('oh'), { name: 'Mine' });
      expect(classify(error)).toMatchObject({
        code: 'INTERNAL_ERROR',
        message: 'The tool has a defect (Mine): oh.',
        cause: error,
      });
    },
  );

  test.each([
    'ERR_INVALID_ARG_TYPE',
    'ERR_ASSERTION',
    'ERR_OUT_OF_RANGE',
    'ERR_MISSING_ARGS',
    'ERR_UNKNOWN_ENCODING',
    'ERR_ILLEGAL_CONSTRUCTOR',
    'ERR_METHOD_NOT_IMPLEMENTED',
    'ERR_MODULE_NOT_FOUND',
    'ERR_HTTP_INVALID_HEADER_VALUE',
    'ERR_HTTP_HEADERS_SENT',
  ])('the code %s', (code) => {
    expect(classify(named('Error', 'oh', { code })).code).toBe('INTERNAL_ERROR');
    expect(classify(named('Error', 'oh', { code: `X${code}` })).code).toBe('UNKNOWN_ERROR');
  });

  test('no other code, however alike', () => {
    for (const code of ['ERR_ASSERTIONS', 'ERR_OUT_OF_RANGES', 'ERR_MISSING_ARGS_', 'ERR_ODD'])
      expect(classify(named('Error', 'oh', { code })).code, code).toBe('UNKNOWN_ERROR');
  });

  test('with a name that is too long is cut', () => {
    const error = Object.assign(new TypeError('oh'), { name: 'N'.repeat(100) });
    expect(classify(error).message).toBe(`The tool has a defect (${'N'.repeat(59)}…): oh.`);
    const odd = Object.assign(new TypeError('oh'), { name: 5 });
    expect(classify(odd).message).toBe('The tool has a defect (Error): oh.');
  });
});
