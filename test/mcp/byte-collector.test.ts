import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteCollector } from '../../src/mcp/byte-collector.ts';

test('gives the bytes back in whatever pieces they came', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3_000 })), (pieces) => {
      const collector = new ByteCollector();
      for (const piece of pieces) collector.add(piece);
      const whole = Buffer.concat(pieces);
      expect(collector.size).toBe(whole.length);
      const taken = collector.take();
      expect(taken.equals(whole)).toBe(true);
      // What comes later is something else.
      expect(collector.size).toBe(0);
      collector.add(Buffer.from('next'));
      expect(taken.equals(whole)).toBe(true);
      expect(collector.take().toString()).toBe('next');
    }),
  );
});
