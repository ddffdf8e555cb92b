import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Frame, LineFramer } from '../../src/mcp/transports/line-framer.ts';
import { keptBy } from '../fixtures/kept-memory.ts';
import { verifies } from '../fixtures/verifies.ts';

const MEBIBYTE = 1024 * 1024;

const lines = (frames: readonly Frame[]) =>
  frames.map((frame) => (frame.kind === 'line' ? JSON.parse(frame.text) : frame.kind));

/** `bytes` in pieces that end at the given places. */
const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort(
    (a, b) => a - b,
  );
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
};

describe('LineFramer', () => {
  verifies('stdio.framing', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }))),
        fc.array(fc.nat()),
        fc.constantFrom('\n', '\r\n'),
        fc.boolean(),
        (messages, places, newline, terminated) => {
          const text = messages.map((message) => JSON.stringify(message)).join(newline);
          const framer = new LineFramer(1024 * 1024);
          const chunks = cut(Buffer.from(terminated ? text + newline : text), places);
          const frames = [...chunks.flatMap((chunk) => framer.push(chunk)), ...framer.end()];
          expect(lines(frames)).toEqual(
            messages.map((message) => JSON.parse(JSON.stringify(message))),
          );
        },
      ),
    );
  });

  test('a line that is too long costs itself only, however it is cut', () => {
    const bytes = Buffer.from(`1\n${'9'.repeat(11)}\n${'8'.repeat(10)}\n${'7'.repeat(500)}`);
    fc.assert(
      fc.property(fc.array(fc.nat()), (places) => {
        const framer = new LineFramer(10);
        const frames = [
          ...cut(bytes, places).flatMap((chunk) => framer.push(chunk)),
          ...framer.end(),
        ];
        expect(lines(frames)).toEqual([1, 'too-long', 8_888_888_888, 'too-long']);
      }),
    );
  });

  test('skips empty lines and reports bytes that are not UTF-8', () => {
    const framer = new LineFramer(100);
    const frames = framer.push(Buffer.from([10, 13, 10, 0xff, 10, 0x31, 10]));
    expect(lines(frames)).toEqual(['not-utf8', 1]);
    expect(framer.end()).toEqual([]);
  });

  test('an unfinished line in pieces of one byte costs no more than its bytes', async () => {
    const framer = new LineFramer(4 * MEBIBYTE);
    const kept = await keptBy(() => {
      const read = Buffer.alloc(MEBIBYTE, '7');
      for (let at = 0; at < read.length; at += 1) framer.push(read.subarray(at, at + 1));
    });
    expect(kept).toBeLessThan(8 * MEBIBYTE);
    expect(framer.end()).toEqual([{ kind: 'line', text: '7'.repeat(MEBIBYTE) }]);
  });
});
