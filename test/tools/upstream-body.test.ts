import { expect, test } from 'vitest';
import { readBody } from '../../src/tools/upstream-body.ts';
import { keptBy } from '../fixtures/kept-memory.ts';

const KIBIBYTE = 1024;
const LENGTH = 256 * KIBIBYTE;

test('an answer in pieces of one byte costs no more than its bytes', async () => {
  const read = Buffer.alloc(LENGTH, ' ');
  let at = 0;
  let finish = () => {};
  const asked = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let end = () => {};
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (at < LENGTH) {
        controller.enqueue(read.subarray(at, at + 1));
        at += 1;
        return;
      }
      finish();
      end = () => controller.close();
    },
  });
  let body: Promise<Uint8Array | undefined> | undefined;
  const kept = await keptBy(() => {
    body = readBody(new Response(stream), LENGTH);
    return asked;
  });
  expect(kept).toBeLessThan(4 * LENGTH + 2048 * KIBIBYTE);
  end();
  expect((await body)?.length).toBe(LENGTH);
});
