import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLink } from '../../src/gateway/create-link.ts';
import { classify } from '../../src/resilience/failure.ts';
import { rejection } from '../fixtures/loopback.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { isAlive, openLink, testLink, textOf } from './support/link.ts';
import { child, upstreamConfig } from './support/link-config.ts';

const MEBIBYTE = 1024 * 1024;

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'mcp-resilience-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

const pidOf = (link: { facts: { pid?: number } }): number => link.facts.pid ?? Number.NaN;

describe('stdio link', () => {
  test('carries requests, answers and notifications both ways', async () => {
    const { initialize, call, link, messages, ends } = await openLink(child());
    expect((await initialize()).result).toMatchObject({ serverInfo: { name: 'U' } });
    expect(textOf(await call('ok', { text: 'grüezi 🔧' }))).toBe('grüezi 🔧');
    await call('log', { n: 2 });
    expect(
      messages.filter(({ message }) => message.method === 'notifications/message'),
    ).toHaveLength(2);
    expect(link.facts.pid).toBeGreaterThan(0);
    await link.close();
    expect(ends).toEqual([{ kind: 'closed', reason: 'exited with code 0' }]);
    expect(link.facts.pid).toBeUndefined();
  });

  verifies('link.stdio.environment', async () => {
    process.env.UPSTREAM_TEST_SECRET = 'of somebody else';
    onTestFinished(() => void delete process.env.UPSTREAM_TEST_SECRET);
    const { initialize, call } = await openLink(child({}, { TOKEN: 'configured', HOME: '/other' }));
    await initialize();
    const answer = await call('env');
    const { structuredContent: env } = answer.result as { structuredContent: object };
    expect(env).toMatchObject({ TOKEN: 'configured', HOME: '/other', PATH: process.env.PATH });
    expect(env).not.toHaveProperty('UPSTREAM_TEST_SECRET');
    expect(Object.keys(env).filter((name) => /^(npm_|VITEST|NODE_)/.test(name))).toEqual([]);
  });

  test('arguments reach the child as they are: there is no shell', async () => {
    const name = '$(touch x); `id` "\'\\ *';
    const { initialize } = await openLink(child({ name }));
    expect((await initialize()).result).toMatchObject({ serverInfo: { name } });
  });

  verifies('link.stdio.start-fails', async () => {
    const file = join(folder(), 'not-executable');
    writeFileSync(file, '#!/bin/sh\n');
    const open = (command: string, cwd?: string) =>
      rejection(() =>
        testLink({ kind: 'stdio', command, args: [], env: {}, ...(cwd && { cwd }) }).link.open(),
      );
    const missing = await open('no-such-command-xyz');
    expect(missing).toMatchObject({ name: 'LinkError', delivery: 'not-sent' });
    expect(classify(missing)).toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      delivery: 'not_sent',
      retryable: false,
      message: expect.stringMatching(/"no-such-command-xyz" was not found; check its name/),
    });
    expect(String(await open(file))).toMatch(/may not be run \(EACCES\); make it executable/);
    expect(String(await open(process.execPath, '/no/such/folder'))).toMatch(
      /working directory \/no\/such\/folder does not exist/,
    );
    expect(String(await open('bad\0name'))).toMatch(/failed to start/);
  });

  test('what was not opened, or is closed, sends nothing', async () => {
    const { link } = testLink(child());
    const send = () => link.send({ jsonrpc: '2.0', method: 'x' });
    expect(await rejection(send)).toMatchObject({ delivery: 'not-sent' });
    await link.close();
    expect(await rejection(() => link.open())).toMatchObject({ delivery: 'not-sent' });
    const signal = AbortSignal.abort(new Error('no'));
    expect(await rejection(() => testLink(child()).link.open(signal))).toBe(signal.reason);
    const { link: open } = await openLink(child());
    expect(await rejection(() => open.send({ jsonrpc: '2.0', method: 'x' }, signal))).toBe(
      signal.reason,
    );
    await open.close();
    expect(await rejection(() => open.send({ jsonrpc: '2.0', method: 'x' }))).toMatchObject({
      delivery: 'not-sent',
    });
  });

  test('one that is closed while it starts leaves no child', async () => {
    const { link, ends } = testLink(child());
    const opening = rejection(() => link.open());
    await link.close();
    expect(await opening).toMatchObject({ delivery: 'not-sent' });
    expect(ends).toHaveLength(1);
  });

  verifies('link.stdio.banners', async () => {
    const secret = 'hunter2-hunter2';
    const { initialize, call, link, logged, messages } = await openLink(child({ banner: 3 }), {
      config: { secrets: [secret] },
    });
    await initialize();
    for (const text of [
      `banner with ${secret}`,
      '{"level":"info"}',
      '[1,2]',
      '{"jsonrpc":"2.0"}',
    ]) {
      expect(textOf(await call('banner', { text }))).toBe('ok');
    }
    expect(messages).toHaveLength(5);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatch(/^u: wrote what is no JSON-RPC message \(Banner line 0\) to stdout/);
    expect(link.facts).toMatchObject({ ignoredLines: 7 });
    // Said once of the upstream, not of each of its processes.
    const config = upstreamConfig(child({ banner: 1 }));
    const lines: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      const again = createLink(config, { log: (line) => void lines.push(line) });
      onTestFinished(() => again.close());
      await again.open();
      await until(() => (again.facts as { ignoredLines?: number }).ignoredLines === 1);
    }
    expect(lines).toHaveLength(1);
  });

  verifies('link.stdio.too-long', async () => {
    const { initialize, ask, call, lost, logged } = await openLink(child(), {
      config: { maxMessageBytes: 10 * MEBIBYTE },
    });
    await initialize();
    const id = ask('tools/call', { name: 'big', arguments: { n: 11 * MEBIBYTE } });
    await until(() => lost.length > 0);
    expect(lost).toMatchObject([{ id, failure: { delivery: 'lost' } }]);
    expect(classify(lost[0]?.failure)).toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      retryable: false,
      message: expect.stringContaining('longer than 10485760 bytes (maxMessageBytes)'),
    });
    expect(textOf(await call('ok'))).toBe('ok');
    expect(textOf(await call('big', { n: 9 * MEBIBYTE }))).toHaveLength(9 * MEBIBYTE);
    // No answer to anything: there is nobody to be told but the log.
    await call('banner', { text: 'x'.repeat(11 * MEBIBYTE) });
    expect(lost).toHaveLength(1);
    expect(logged).toMatchObject([expect.stringContaining('a line of more than 10485760 bytes')]);
  });

  verifies('link.stdio.large', async () => {
    const { initialize, call, notify } = await openLink(child());
    await initialize();
    const text = `${'ü'.repeat(10 * MEBIBYTE)}!`;
    const sent = call('ok', { text });
    await notify('notifications/after');
    expect(textOf(await sent) === text).toBe(true);
  });

  verifies('link.stdio.death', async () => {
    const secret = 'hunter2-hunter2';
    const { initialize, ask, link, ends } = await openLink(child({ say: `no ${secret} today` }), {
      config: { secrets: [secret] },
    });
    await initialize();
    ask('tools/call', { name: 'hang', arguments: {} });
    process.kill(pidOf(link), 'SIGKILL');
    await until(() => ends.length > 0);
    expect(ends).toEqual([
      { kind: 'exited', reason: 'killed by SIGKILL', lastWords: 'no *** today' },
    ]);
    expect(await rejection(() => link.send({ jsonrpc: '2.0', method: 'x' }))).toMatchObject({
      delivery: 'not-sent',
    });
    await link.close();
    expect(ends).toHaveLength(1);
  });

  test('an exit tells its code, and an answer written right before it arrives', async () => {
    const { initialize, ask, ends } = await openLink(child());
    await initialize();
    ask('tools/call', { name: 'die', arguments: { code: 3 } });
    await until(() => ends.length > 0);
    expect(ends).toEqual([{ kind: 'exited', reason: 'exited with code 3' }]);

    const script = `process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}'); process.exitCode = 0`;
    const last = await openLink({
      kind: 'stdio',
      command: process.execPath,
      args: ['-e', script],
      env: {},
    });
    await until(() => last.ends.length > 0);
    expect(last.messages).toMatchObject([{ message: { id: 1, result: {} } }]);
  });

  verifies('link.stdio.delivery', async () => {
    // Reads nothing, so that the pipe fills up; then it is killed.
    const script = 'setInterval(() => {}, 60000)';
    const { link, ends } = await openLink({
      kind: 'stdio',
      command: process.execPath,
      args: ['-e', script],
      env: {},
    });
    const big = {
      jsonrpc: '2.0',
      id: 1,
      method: 'x',
      params: { a: 'x'.repeat(4 * MEBIBYTE) },
    } as const;
    let settled = false;
    const sent = rejection(() => link.send(big)).finally(() => {
      settled = true;
    });
    const controller = new AbortController();
    const given = rejection(() => link.send({ ...big, id: 2 }, controller.signal));
    controller.abort(new Error('enough'));
    expect(await given).toBe(controller.signal.reason);
    expect(settled).toBe(false);
    process.kill(pidOf(link), 'SIGKILL');
    expect(await sent).toMatchObject({ delivery: 'not-sent' });
    await until(() => ends.length > 0);
  });

  verifies('link.stdio.close', async () => {
    const clock = new ManualClock();
    const { initialize, link, ends } = await openLink(
      child({ ignoreEof: true, ignoreSigterm: true, say: 'up' }),
      { clock },
    );
    await initialize();
    const pid = pidOf(link);
    const closed = link.close();
    expect(await rejection(() => link.send({ jsonrpc: '2.0', method: 'x' }))).toMatchObject({
      delivery: 'not-sent',
    });
    await clock.advance(3_999);
    expect(isAlive(pid)).toBe(true);
    await clock.advance(1);
    await until(() => !isAlive(pid));
    await closed;
    expect(ends).toMatchObject([{ kind: 'closed', reason: 'killed by SIGKILL' }]);
    await until(() => clock.pendingTimers === 0);
  });

  test('SIGTERM comes 2 s after the end of stdin', async () => {
    const clock = new ManualClock();
    const { initialize, link, ends } = await openLink(child({ ignoreEof: true }), { clock });
    await initialize();
    const closed = link.close();
    await clock.advance(1_999);
    expect(isAlive(pidOf(link))).toBe(true);
    await clock.advance(1);
    await closed;
    expect(ends).toMatchObject([{ kind: 'closed', reason: 'killed by SIGTERM' }]);
  });

  verifies('link.stdio.grandchild', async () => {
    for (const how of ['close', 'kill', 'die'] as const) {
      const grandchild = join(folder(), 'pid');
      const { initialize, ask, link, ends } = await openLink(child({ grandchild }));
      await initialize();
      const pid = Number(readFileSync(grandchild, 'utf8'));
      expect(isAlive(pid)).toBe(true);
      if (how === 'close') await link.close();
      if (how === 'kill') process.kill(pidOf(link), 'SIGKILL');
      if (how === 'die') ask('tools/call', { name: 'die', arguments: {} });
      await until(() => ends.length > 0 && !isAlive(pid));
    }
  });

  test('a grandchild that holds the pipes open does not hold the end back', async () => {
    const script = `
      const { spawn } = require('node:child_process');
      const it = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 60000); console.log(process.pid)'], { stdio: 'inherit' });
      it.on('spawn', () => setTimeout(() => process.exit(7), 300));
    `;
    const { ends, link } = await openLink({
      kind: 'stdio',
      command: process.execPath,
      args: ['-e', script],
      env: {},
    });
    await until(() => ends.length > 0);
    expect(ends).toMatchObject([{ kind: 'exited', reason: 'exited with code 7' }]);
    // Resolves only when the whole group has ended, by SIGKILL in the end.
    await link.close();
  });

  verifies('link.stdio.stderr', async () => {
    const clock = new ManualClock();
    const { initialize, call, logged, link } = await openLink(child(), { clock });
    await initialize();
    await call('flood', { lines: 100_000, text: 'x'.repeat(50) });
    await link.close();
    const lines = logged.filter((line) => line.startsWith('u: xxx'));
    expect(lines).toHaveLength(100);
    expect(logged.at(-1)).toBe('u: 99900 more lines on stderr, left out');
    expect(logged).toHaveLength(101);
    expect(clock.pendingTimers).toBe(0);
  });

  verifies('link.stdio.gateway-exit', async () => {
    const GATEWAY = new URL('./support/link-holder.ts', import.meta.url).pathname;
    const { spawn } = await import('node:child_process');
    for (const how of ['exit', 'throw', 'SIGKILL']) {
      const pids = join(folder(), 'pids');
      const holder = spawn(process.execPath, [GATEWAY, how, pids], {
        stdio: ['ignore', 'ignore', 'ignore'],
      });
      onTestFinished(() => void holder.kill('SIGKILL'));
      await until(() => existsSync(pids) || holder.exitCode !== null);
      const [direct = 0, grandchild = 0] = readFileSync(pids, 'utf8').split(' ').map(Number);
      if (how === 'SIGKILL') holder.kill('SIGKILL');
      await until(() => !isAlive(direct));
      // Of a gateway that is killed nobody is left to end what does not look at its stdin.
      if (how === 'SIGKILL') process.kill(grandchild, 'SIGKILL');
      await until(() => !isAlive(grandchild));
    }
  });

  verifies('link.rounds', async () => {
    const listeners = process.listenerCount('exit');
    const before = process.getActiveResourcesInfo().length;
    const pids: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(
        Array.from({ length: 5 }, async () => {
          const { initialize, link } = await openLink(child());
          await initialize();
          pids.push(pidOf(link));
          await link.close();
        }),
      );
    }
    expect(new Set(pids).size).toBe(50);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(process.listenerCount('exit')).toBe(listeners);
    await until(() => process.getActiveResourcesInfo().length <= before);
  });
});
