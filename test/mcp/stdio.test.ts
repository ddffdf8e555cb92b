import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createServer } from '../../src/mcp/server.ts';
import { type StdioOptions, serveStdio } from '../../src/mcp/transports/stdio.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';
import { heldTools, text } from './support/tools.ts';
import { until } from './support/wait.ts';

const FIXTURE = fileURLToPath(new URL('./support/stdio-server.ts', import.meta.url));

/** A served pair of streams. */
const open = async (options: Partial<StdioOptions> = {}) => {
  const input = new PassThrough();
  const lines: Record<string, unknown>[] = [];
  let rest = '';
  const output = new Writable({
    write(chunk, _encoding, done) {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts.map((line) => JSON.parse(line)));
      done();
    },
  });
  const clock = new ManualClock();
  const { tools, calls } = heldTools();
  const door = await serveStdio({
    createServer: createServer({ name: 'test', version: '1', tools }),
    input,
    output,
    clock,
    ...options,
  });
  let closed = false;
  void door.closed.then(() => {
    closed = true;
  });
  const say = (value: unknown) =>
    input.write(typeof value === 'string' ? value : `${JSON.stringify(value)}\n`);
  const call = (id: unknown, name = 'hold', args: object = {}) =>
    say({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } });
  return { input, output, lines, clock, calls, door, say, call, isClosed: () => closed };
};

describe('stdio', () => {
  test('serves the SDK client in a child process', async () => {
    const client = new Client({ name: 'tester', version: '1' });
    const transport = new StdioClientTransport({ command: process.execPath, args: [FIXTURE] });
    await client.connect(transport);
    onTestFinished(() => client.close());
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['hold', 'echo']);
    expect(await client.callTool({ name: 'echo', arguments: { say: 'grüezi' } })).toEqual(
      text('grüezi'),
    );
  });

  verifies('P01', async () => {
    const child = spawn(process.execPath, [FIXTURE], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      out += chunk;
    });
    const params = { name: 'hold', arguments: { label: 'answer when stdin ends' } };
    child.stdin.write(
      `${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })}\n`,
    );
    await until(() => out.includes('notifications/message') || child.exitCode !== null);
    child.stdin.end();
    // It holds an open port and a timer, and exits all the same.
    const [code] = await once(child, 'close');
    expect(code).toBe(0);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ id: 7, result: text('finished') });
  });

  verifies('stdio.eof-finishes', async () => {
    const { input, lines, calls, call, isClosed, door, clock } = await open();
    call(1);
    call(2);
    await until(() => calls.length === 2);
    input.end();
    await flush();
    expect(isClosed()).toBe(false);
    calls[0]?.answer(text('one'));
    calls[1]?.answer(text('two'));
    await door.closed;
    expect(lines.map(({ id }) => id)).toEqual([1, 2]);
    expect(calls.map(({ context }) => context.signal.aborted)).toEqual([false, false]);
    expect(clock.pendingTimers).toBe(0);
  });

  verifies('stdio.eof-bounded', async () => {
    const { input, lines, calls, call, isClosed, door, clock } = await open();
    call(1);
    await until(() => calls.length === 1);
    input.end();
    await until(() => clock.pendingTimers === 1);
    await clock.advance(4_999);
    expect(isClosed()).toBe(false);
    expect(calls[0]?.context.signal.aborted).toBe(false);
    await clock.advance(1);
    await door.closed;
    expect(calls[0]?.context.signal.aborted).toBe(true);
    expect(lines).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a call that was cancelled does not hold up the end', async () => {
    const { input, calls, call, say, door, lines } = await open();
    for (const id of [0, '', '#x', 5]) call(id);
    await until(() => calls.length === 4);
    for (const requestId of [0, '', '#x', 5]) {
      say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    }
    await until(() => calls.every(({ context }) => context.signal.aborted));
    input.end();
    await door.closed;
    expect(lines).toEqual([]);
  });

  verifies('stdio.tolerant', async () => {
    const { say, call, lines, calls } = await open({ maxLineBytes: 200 });
    say('not json\n');
    say('\r\n\n');
    say('[1,2]\n');
    say('{"jsonrpc":"2.0","id":null,"method":"ping"}\n');
    say('{"jsonrpc":"1.0","id":3,"method":"ping"}\n');
    say('{"jsonrpc":"2.0","id":4,"method":"ping","params":[]}\n');
    say('{"jsonrpc":"2.0","id":5,"method":"ping","params":{"_meta":{"progressToken":{}}}}\n');
    say('{"jsonrpc":"2.0","id":6,"result":7}\n');
    say(`{"jsonrpc":"2.0","id":7,"method":"${'x'.repeat(300)}"}\n`);
    say('{"jsonrpc":"2.0","id":8,"method":"ping","x-vendor":1}\r\n');
    await until(() => lines.length === 8);
    expect(
      lines.map(({ id, error }) => [id, (error as { code: number } | undefined)?.code]),
    ).toEqual([
      [null, -32700],
      [null, -32600],
      [null, -32600],
      [3, -32600],
      [4, -32600],
      [5, -32600],
      [null, -32600],
      [8, undefined],
    ]);
    call(1);
    await until(() => calls.length === 1);
    call(1);
    await until(() => lines.length === 9);
    expect(lines[8]).toMatchObject({ id: null, error: { code: -32600 } });
    calls[0]?.answer(text('once'));
    await until(() => lines.length === 10);
    expect(lines[9]).toMatchObject({ id: 1, result: text('once') });
  });

  test('progress and the answer that follows it at once are written apart', async () => {
    const written: string[] = [];
    const output = new Writable({
      write(chunk, _encoding, done) {
        written.push(String(chunk));
        done();
      },
    });
    const { say, calls } = await open({ output });
    const params = { name: 'hold', arguments: {}, _meta: { progressToken: 7 } };
    say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    await until(() => calls.length === 1);
    calls[0]?.context.progress(1, 1);
    calls[0]?.answer(text('done'));
    await until(() => written.join('').includes('done'));
    expect(written.map((piece) => piece.trim().split('\n').length)).toEqual([1, 1]);
    expect(written[0]).toContain('notifications/progress');
    expect(written[1]).toContain('done');
  });

  verifies('stdio.backpressure', async () => {
    const pending: (() => void)[] = [];
    const output = new Writable({
      highWaterMark: 1,
      write: (_chunk, _encoding, done) => void pending.push(done),
    });
    const { input, call } = await open({ output });
    call(1, 'echo', { say: 'x'.repeat(1_100_000) });
    await until(() => input.isPaused());
    call(2, 'echo', { say: 'later' });
    await flush();
    expect(pending).toHaveLength(1);
    pending.shift()?.();
    await until(() => pending.length === 1);
    expect(input.isPaused()).toBe(false);
  });

  test('an output that breaks ends the session instead of the process', async () => {
    const output = new Writable({
      write: (_chunk, _encoding, done) => done(new Error('EPIPE')),
    });
    const { call, calls, door } = await open({ output });
    call(1);
    await until(() => calls.length === 1);
    call(2, 'echo', { say: 'x' });
    await door.closed;
    expect(calls[0]?.context.signal.aborted).toBe(true);
  });

  test('an input that was over before it began, or that breaks, is an end too', async () => {
    const input = new PassThrough();
    input.destroy();
    await once(input, 'close');
    await (await open({ input })).door.closed;

    const broken = await open();
    broken.input.destroy(new Error('gone'));
    await broken.door.closed;
  });
});
