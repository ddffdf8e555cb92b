import { describe, expect, test } from 'vitest';
import {
  clean,
  isA,
  isObject,
  namesOf,
  peerOf,
  read,
  readNumber,
  readText,
  sentence,
} from '../../src/resilience/inspect.ts';

const hostile: object = new Proxy(
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

describe('reading foreign values', () => {
  test('what can have properties', () => {
    for (const value of [{}, [], () => {}]) expect(isObject(value)).toBe(true);
    for (const value of [null, undefined, 'x', 5, true]) expect(isObject(value)).toBe(false);
  });

  test('never throws and never takes one kind for another', () => {
    const value = { text: 'x', number: 5, infinite: Number.POSITIVE_INFINITY, nan: Number.NaN };
    expect(read(value, 'text')).toBe('x');
    expect(read('text', 'length')).toBeUndefined();
    expect(read(undefined, 'x')).toBeUndefined();
    expect(read(hostile, 'x')).toBeUndefined();
    expect(readText(value, 'text')).toBe('x');
    expect(readText(value, 'number')).toBeUndefined();
    expect(readNumber(value, 'number')).toBe(5);
    for (const key of ['text', 'infinite', 'nan']) expect(readNumber(value, key)).toBeUndefined();
    expect(isA(new TypeError(), Error)).toBe(true);
    expect(isA({}, Error)).toBe(false);
    expect(isA(hostile, Error)).toBe(false);
  });

  test('names are those of the error and of its class', () => {
    class Mine extends Error {}
    expect(namesOf(new Mine())).toEqual(['Error', 'Mine']);
    expect(namesOf({ name: 5, constructor: undefined })).toEqual([]);
    expect(namesOf(Object.create(null))).toEqual([]);
  });

  test('no peer is told that is none', () => {
    expect(peerOf(undefined)).toBe('');
    expect(peerOf({})).toBe('');
    expect(peerOf({ address: 'a b' })).toBe('');
    expect(peerOf({ address: '::1' })).toBe(' ::1');
  });
});

describe('foreign text', () => {
  test('becomes one line without control characters', () => {
    expect(clean('  a\t\n\u0000\u001f\u007f\u009f\u2028\u2029b  ')).toBe('a b');
    expect(clean('a \u00a1 b')).toBe('a \u00a1 b');
  });

  test('is cut to the length that was asked for', () => {
    expect(clean('x'.repeat(500))).toBe('x'.repeat(500));
    expect(clean('x'.repeat(501))).toBe(`${'x'.repeat(499)}…`);
    expect(clean('abcdef', 5)).toBe('abcd…');
    expect(clean('abcde', 5)).toBe('abcde');
    expect(clean('abc\ud83d\ude00def', 5).isWellFormed()).toBe(true);
  });

  test('is read to 4 000 characters, or to the end of a word close to that', () => {
    const text = (value: string) => readText({ value }, 'value') ?? '';
    expect(text('x'.repeat(4_000))).toHaveLength(4_000);
    expect(text('x'.repeat(4_001))).toHaveLength(4_000);
    expect(text(`${'x'.repeat(3_900)} ${'y'.repeat(500)}`)).toBe('x'.repeat(3_900));
    expect(text(`${'x'.repeat(4_000)} ${'y'.repeat(500)}`)).toBe('x'.repeat(4_000));
    expect(text(`${'x'.repeat(3_000)} ${'y'.repeat(5_000)}`)).toHaveLength(4_000);
    expect(text(`${'x'.repeat(3_200)} ${'y'.repeat(5_000)}`)).toHaveLength(4_000);
    expect(text(`${'x'.repeat(3_201)} ${'y'.repeat(5_000)}`)).toHaveLength(3_201);
  });

  test('is one sentence behind its lead', () => {
    expect(sentence('It failed')).toBe('It failed.');
    expect(sentence('It failed', '')).toBe('It failed.');
    expect(sentence('It failed', ' \n ')).toBe('It failed.');
    expect(sentence('It failed', 'no disk')).toBe('It failed: no disk.');
    for (const end of ['.', '!', '?', '…', '。', '！', '？']) {
      expect(sentence('It failed', `no disk${end}`)).toBe(`It failed: no disk${end}`);
    }
    expect(sentence('It failed', 'no. disk')).toBe('It failed: no. disk.');
    expect(sentence('It failed', 'x'.repeat(1_000))).toHaveLength(499);
  });
});
