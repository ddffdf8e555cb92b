import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { type Body, readBody } from '../../src/mcp/transports/http-body.ts';
import { systemClock } from '../../src/resilience/clock.ts';
import { keptBy } from '../fixtures/kept-memory.ts';

const MEBIBYTE = 1024 * 1024;

test('a body in pieces of one byte costs no more than its bytes', async () => {
  const req = Object.assign(new PassThrough(), { headers: {} });
  const limits = { maxBytes: 4 * MEBIBYTE, timeout: 60_000, clock: systemClock };
  let body: Promise<Body> | undefined;
  const kept = await keptBy(() => {
    body = readBody(req as unknown as IncomingMessage, limits);
    // As the parser of HTTP gives them: each a view of what was read from the socket.
    const read = Buffer.alloc(MEBIBYTE, ' ');
    for (let at = 0; at < read.length; at += 1) req.emit('data', read.subarray(at, at + 1));
  });
  expect(kept).toBeLessThan(8 * MEBIBYTE);
  req.emit('end');
  const { kind, bytes } = (await body) as Extract<Body, { kind: 'read' }>;
  expect([kind, bytes.length]).toEqual(['read', MEBIBYTE]);
});
