import { describe, expect, test } from 'vitest';
import { parseMessage } from '../../src/mcp/jsonrpc.ts';
import { initialize, openDoor, post, rpc } from './support/door.ts';

describe('initialize', () => {
  test.for([
    [{}, 'protocolVersion'],
    [{ protocolVersion: '2025-11-25', capabilities: {} }, 'clientInfo'],
    [{ ...initialize().params, clientInfo: { name: 'x' } }, 'clientInfo'],
  ] as const)('without what it needs is the fault of the caller: %j', ([params, missing]) => {
    expect(parseMessage(rpc(1, 'initialize', params))).toEqual({
      ok: false,
      id: 1,
      isResponse: false,
      code: -32602,
      reason: expect.stringContaining(missing),
    });
  });

  test('is refused at the door, and opens no session', async () => {
    const { door } = await openDoor();
    const response = await post(door, { jsonrpc: '2.0', id: 'i', method: 'initialize' });
    expect([response.status, await response.json()]).toEqual([
      400,
      {
        jsonrpc: '2.0',
        id: 'i',
        error: { code: -32602, message: expect.stringContaining('clientInfo') },
      },
    ]);
    expect(door.stats().sessions).toBe(0);
  });
});
