import { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineWriter } from '../../src/gateway/line-writer.ts';
import { flush } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

/** A pipe whose writes end when the test says so. */
const open = () => {
  const writes: string[] = [];
  const held: ((error?: Error) => void)[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => {
      writes.push(chunk);
      held.push(done);
    },
  });
  stream.on('error', () => {});
  const writer = new LineWriter(stream);
  const outcomes: Record<string, string> = {};
  const write = (text: string, signal?: AbortSignal): void => {
    writer.write(text, signal).then(
      () => {
        outcomes[text] = 'sent';
      },
      (error: Error & { delivery?: string }) => {
        outcomes[text] = error.delivery ?? error.message;
      },
    );
  };
  const finish = async (error?: Error): Promise<void> => {
    held.shift()?.(error);
    await flush();
  };
  return { writes, stream, writer, outcomes, write, finish };
};

describe('LineWriter', () => {
  test('lines of one turn go out in one write, those that come meanwhile in the next', async () => {
    const { writes, outcomes, write, finish } = open();
    write('a');
    void Promise.resolve().then(() => write('b'));
    await flush();
    write('c');
    write('d');
    await flush();
    expect(writes).toEqual(['a\nb\n']);
    expect(outcomes).toEqual({});
    await finish();
    expect(writes).toEqual(['a\nb\n', 'c\nd\n']);
    await finish();
    expect(outcomes).toEqual({ a: 'sent', b: 'sent', c: 'sent', d: 'sent' });
  });

  test('long lines are not put together', async () => {
    const { writes, write, finish } = open();
    for (const letter of ['a', 'b', 'c']) write(letter.repeat(40_000));
    await flush();
    await finish();
    expect(writes.map((text) => text.length)).toEqual([80_002, 40_001]);
  });

  verifies('link.stdio.written', async () => {
    const { writes, outcomes, write, finish } = open();
    for (const text of ['a', 'b', 'c']) write(text);
    await flush();
    write('d');
    write('e');
    await finish(new Error('EPIPE'));
    write('f');
    await flush();
    // The pipe may have taken a and b whole, and the child may have read them.
    expect(outcomes).toEqual({
      a: 'lost',
      b: 'lost',
      c: 'not-sent',
      d: 'not-sent',
      e: 'not-sent',
      f: 'not-sent',
    });
    expect(writes).toEqual(['a\nb\nc\n']);
  });

  test('an abort takes back what waits, and only tells the caller of what is under way', async () => {
    const { writes, outcomes, write, finish } = open();
    const controller = new AbortController();
    write('a', controller.signal);
    await flush();
    write('b', controller.signal);
    write('c');
    controller.abort(new Error('enough'));
    write('d', controller.signal);
    await flush();
    expect(outcomes).toEqual({ a: 'enough', b: 'enough', d: 'enough' });
    await finish();
    expect(writes).toEqual(['a\n', 'c\n']);
  });

  test('what was given before the end is written before it', async () => {
    const { writes, stream, writer, outcomes, write, finish } = open();
    write('a');
    writer.end();
    writer.end();
    write('b');
    await finish();
    expect(writes).toEqual(['a\n']);
    expect(stream.writableFinished).toBe(true);
    expect(outcomes).toEqual({ a: 'sent', b: 'not-sent' });
  });

  test('any lines arrive in order, each once, whatever is held back and when', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom('write', 'finish', 'turn')), async (steps) => {
        const { writes, write, finish } = open();
        let given = 0;
        for (const step of [...steps, 'turn']) {
          if (step === 'write') {
            write(String(given));
            given += 1;
          } else if (step === 'finish') await finish();
          else await flush();
        }
        for (let round = 0; round <= given; round += 1) await finish();
        const lines = writes.join('').split('\n').slice(0, -1);
        expect(lines).toEqual(Array.from({ length: given }, (_, index) => String(index)));
      }),
    );
  });
});
