import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineOutput } from '../../src/mcp/transports/line-output.ts';

/** A stream that keeps what is written, and flushes when it is told to. */
const sink = () => {
  const writes: string[] = [];
  const held: ((error?: Error) => void)[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      writes.push(String(chunk));
      held.push(done);
    },
  });
  stream.on('error', () => {});
  return { stream, writes, release: (error?: Error) => held.shift()?.(error) };
};

describe('LineOutput', () => {
  test('writes the lines of one turn together, and tells each when they are flushed', async () => {
    const { stream, writes, release } = sink();
    let flushes = 0;
    const output = new LineOutput(stream, () => {
      flushes += 1;
    });
    const told: string[] = [];
    void output.write('a').then(() => told.push('a'));
    // As an answer that is made in a promise reaction.
    await Promise.resolve();
    void output.write('b').then(() => told.push('b'));
    expect([writes, output.unflushed]).toEqual([[], 4]);
    await turn();
    expect([writes, output.unflushed, told]).toEqual([['a\nb\n'], 4, []]);
    release();
    await turn();
    expect([told, output.unflushed, flushes]).toEqual([['a', 'b'], 0, 1]);
  });

  test('lets a long text wait for nothing, and what came before it goes first', () => {
    const { stream, writes } = sink();
    const output = new LineOutput(stream, () => {});
    const long = 'x'.repeat(64 * 1024);
    void output.write('a');
    void output.write(long);
    expect(writes).toEqual([`a\n${long}\n`]);
  });

  test('hands out at once what is flushed by hand, and only once', async () => {
    const { stream, writes, release } = sink();
    const output = new LineOutput(stream, () => {});
    void output.write('last');
    output.flush();
    expect(writes).toEqual(['last\n']);
    release();
    await turn();
    expect(writes).toEqual(['last\n']);
  });

  test('rejects every line of a write that fails', async () => {
    const { stream, release } = sink();
    const output = new LineOutput(stream, () => {
      throw new Error('it was not flushed');
    });
    const both = Promise.allSettled([output.write('a'), output.write('b')]);
    await turn();
    const broken = new Error('EPIPE');
    release(broken);
    expect(await both).toEqual([
      { status: 'rejected', reason: broken },
      { status: 'rejected', reason: broken },
    ]);
    expect(output.unflushed).toBe(0);
  });

  test('neither loses nor reorders anything, whenever it comes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.stringMatching(/^[a-z]*$/), fc.boolean())),
        async (given) => {
          const written: string[] = [];
          const stream = new Writable({
            write(chunk, _encoding, done) {
              written.push(String(chunk));
              setImmediate(done);
            },
          });
          const output = new LineOutput(stream, () => {});
          const sent: Promise<void>[] = [];
          for (const [text, pause] of given) {
            sent.push(output.write(text));
            if (pause) await turn();
          }
          await Promise.all(sent);
          expect(written.join('')).toBe(given.map(([text]) => `${text}\n`).join(''));
          expect(output.unflushed).toBe(0);
        },
      ),
    );
  });
});
