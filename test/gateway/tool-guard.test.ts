import { describe, expect, test } from 'vitest';
import { ToolGuard } from '../../src/gateway/tool-guard.ts';
import { JsonRpcError } from '../../src/mcp/jsonrpc.ts';
import { ResilienceError } from '../../src/resilience/failure.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

const saysNo = (text = 'no such file') => ({ isError: true, content: [{ type: 'text', text }] });

/** One call and its answer; gives what the guard refused it with. */
const callOf =
  (guard: ToolGuard) =>
  (args: unknown, answer: Parameters<ToolGuard['answered']>[2], tool = 'read') => {
    try {
      guard.check('files', tool, args);
    } catch (error) {
      return error as ResilienceError;
    }
    guard.answered(tool, args, answer);
    return undefined;
  };

describe('ToolGuard', () => {
  test('identical failures in a row are stopped, with the advice not to repeat', () => {
    const call = callOf(new ToolGuard(3, new ManualClock()));
    for (let n = 0; n < 3; n += 1) expect(call({ a: 1, b: 2 }, saysNo())).toBeUndefined();
    const error = call({ b: 2, a: 1 }, saysNo());
    expect(error).toBeInstanceOf(ResilienceError);
    expect(error?.failure).toMatchObject({
      code: 'TOOL_ERROR',
      retryable: false,
      delivery: 'not_sent',
      retryAfter: 60,
    });
    expect(error?.message).toContain('3 identical calls in a row');
    expect(error?.message).toContain('"read" of upstream "files"');
    expect(error?.message).toContain('no such file');
  });

  test.each([
    ['another call in between', (call: ReturnType<typeof callOf>) => call({ a: 2 }, saysNo())],
    ['a success', (call: ReturnType<typeof callOf>) => call({ a: 1 }, { content: [] })],
    ['another error', (call: ReturnType<typeof callOf>) => call({ a: 1 }, saysNo('busy'))],
    [
      'a protocol error',
      (call: ReturnType<typeof callOf>) => call({ a: 1 }, new JsonRpcError(-32602, 'bad')),
    ],
  ])('%s begins a new row', (_, interrupt) => {
    const call = callOf(new ToolGuard(2, new ManualClock()));
    call({ a: 1 }, saysNo());
    interrupt(call);
    expect(call({ a: 1 }, saysNo())).toBeUndefined();
    // The other error begins a row of its own.
    expect(call({ a: 1 }, saysNo())).toBeUndefined();
    expect(call({ a: 1 }, saysNo())).toBeInstanceOf(ResilienceError);
  });

  test('protocol errors count like results', () => {
    const call = callOf(new ToolGuard(2, new ManualClock()));
    const error = new JsonRpcError(-32602, 'unknown argument "x"');
    call({}, error);
    call({}, error);
    expect(call({}, error)?.message).toContain('error -32602: unknown argument "x"');
  });

  test('after a minute the same call is let through once more', async () => {
    const clock = new ManualClock();
    const call = callOf(new ToolGuard(2, clock));
    call({}, saysNo());
    call({}, saysNo());
    await clock.advance(59_999);
    expect(call({}, saysNo())).toBeInstanceOf(ResilienceError);
    await clock.advance(1);
    expect(call({}, saysNo())).toBeUndefined();
    expect(call({}, saysNo())).toBeInstanceOf(ResilienceError);
    await clock.advance(60_000);
    expect(call({}, { content: [] })).toBeUndefined();
    expect(call({}, saysNo())).toBeUndefined();
  });

  test('answers of calls that were overtaken change nothing', () => {
    const guard = new ToolGuard(2, new ManualClock());
    guard.check('files', 'read', { a: 1 });
    guard.check('files', 'read', { a: 2 });
    for (let n = 0; n < 9; n += 1) guard.answered('read', { a: 1 }, saysNo());
    expect(callOf(guard)({ a: 2 }, saysNo())).toBeUndefined();
  });

  test('arguments without identity are let through', () => {
    const cycle: Record<string, unknown> = {};
    cycle.cycle = cycle;
    const call = callOf(new ToolGuard(2, new ManualClock()));
    for (let n = 0; n < 9; n += 1) expect(call(cycle, saysNo())).toBeUndefined();
  });

  test('secrets and novels of the tool are not repeated', () => {
    const call = callOf(new ToolGuard(2, new ManualClock()));
    const text = `Bearer abcdefghijklmnopqrstuvwxyz123456 ${'x '.repeat(5_000)}`;
    call({}, saysNo(text));
    call({}, saysNo(text));
    const message = call({}, saysNo(text))?.message ?? '';
    expect(message).not.toContain('abcdefgh');
    expect(message.length).toBeLessThan(500);
  });

  test('content that is no list of texts breaks nothing', () => {
    const call = callOf(new ToolGuard(2, new ManualClock()));
    const odd = [{ isError: true }, { isError: true, content: [null, { type: 'hologram' }] }];
    for (const answer of odd) {
      call({}, answer);
      call({}, answer);
      expect(call({}, answer)).toBeInstanceOf(ResilienceError);
      call({ other: 1 }, { content: [] });
    }
  });
});
