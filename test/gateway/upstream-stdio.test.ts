import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/gateway/types.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { isAlive } from './support/link.ts';
import { child, upstreamConfig } from './support/link-config.ts';
import { call, client, failed, openManager, reading, textOf } from './support/manager.ts';

/** A file that a child writes to, and its lines. */
const paper = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-resilience-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'lines');
  const lines = (): string[] => {
    try {
      return readFileSync(file, 'utf8').trim().split('\n');
    } catch {
      return [];
    }
  };
  return { file, lines };
};

const retry = { maxRetries: 2, baseDelay: 10 };

describe('an upstream that is a child process', () => {
  verifies('P08', async () => {
    const journal = await paper();
    const { manager, lines } = openManager([upstreamConfig(child({ journal: journal.file }))]);
    const session = manager.open('u', client);
    await session.ready();
    const [before = expect.fail('it runs')] = manager.health()[0]?.pids ?? [];
    const hung = failed(call(session, 'hang'));
    const read = failed(call(session, 'hang', {}, reading('hang')));
    // What has not reached it would go to the next one.
    await until(() => journal.lines().filter((line) => line.includes('"hang"')).length === 2);
    process.kill(before, 'SIGKILL');
    const [unknown, lost] = [await hung, await read];
    expect(lost.code).toBe('UPSTREAM_UNAVAILABLE');
    expect(lost.message).toContain('upstream "u" exited (killed by SIGKILL)');
    // It may have changed something: that is said as well.
    expect(unknown.code).toBe('OUTCOME_UNKNOWN');
    expect(unknown.message).toContain('upstream "u" exited (killed by SIGKILL)');
    expect(unknown.message).toContain('"hang"');
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    const [after = expect.fail('it runs')] = manager.health()[0]?.pids ?? [];
    expect(after).not.toBe(before);
    expect(manager.health()[0]).toMatchObject({ state: 'ready', restarts: 1 });
    expect(lines.join('\n')).toMatch(/exited \(killed by SIGKILL\); next try in 0\.\d s/);
  });

  test('its exit code and last words are told, without secrets', async () => {
    const { manager } = openManager([
      upstreamConfig(child({ say: 'connecting to db with s3cr3t-pass', exit: 7 }), {
        secrets: ['s3cr3t-pass'],
        restart: { initialDelay: 60_000, maxDelay: 60_000 },
      }),
    ]);
    const error = await failed(manager.open('u', client).ready());
    expect(error.message).toContain('exited (code 7)');
    expect(error.message).toContain('connecting to db with ***');
    expect(manager.health()[0]).toMatchObject({ state: 'down' });
    expect(JSON.stringify(manager.health())).not.toContain('s3cr3t');
  });

  test('a command that does not exist is named', async () => {
    const address = { kind: 'stdio', command: 'no-such-command', args: [], env: {} } as const;
    const { manager } = openManager([upstreamConfig(address)]);
    const error = await failed(manager.open('u', client).ready());
    expect(error.message).toContain('upstream "u"');
    expect(error.message).toContain('"no-such-command" was not found');
    expect(error.failure.delivery).toBe('not_sent');
  });

  verifies('R02', async () => {
    const { file, lines } = await paper();
    const { manager } = openManager([
      upstreamConfig(child({ writes: file }), { policy: { retry } }),
    ]);
    const session = manager.open('u', client);
    const error = await failed(call(session, 'write', { key: 'a', after: 'die' }));
    expect(error.failure).toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: false });
    expect(error.failure.suggestion).toContain('Read the current state');
    expect(error.message).toContain('it may have been executed');
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(lines()).toEqual(['write a']);
    // One that only reads is asked again, as often as the policy says.
    const read = call(session, 'read', { key: 'b', after: 'die' }, reading('read'));
    expect((await failed(read)).code).toBe('UPSTREAM_UNAVAILABLE');
    expect(lines()).toEqual(['write a', 'read b', 'read b', 'read b']);
  });

  test('configuration says more than annotations do', async () => {
    const { file, lines } = await paper();
    const tools = { write: { idempotent: true }, read: { idempotent: false } };
    const { manager } = openManager([
      upstreamConfig(child({ writes: file }), { policy: { retry }, tools }),
    ]);
    const session = manager.open('u', client);
    await failed(call(session, 'write', { key: 'a', after: 'die' }));
    const read = call(session, 'read', { key: 'b', after: 'die' }, reading('read'));
    expect((await failed(read)).code).toBe('OUTCOME_UNKNOWN');
    expect(lines()).toEqual(['write a', 'write a', 'write a', 'read b']);
  });

  verifies('upstream.dead-pipe', async () => {
    const { file, lines } = await paper();
    const { manager } = openManager([upstreamConfig(child({ writes: file }))]);
    const session = manager.open('u', client);
    for (let round = 0; round < 10; round += 1) {
      await session.ready();
      const [pid = expect.fail('it runs')] = manager.health()[0]?.pids ?? [];
      process.kill(pid, 'SIGKILL');
      // Long enough for the system to have ended it, and not for us to have heard.
      while (isAlive(pid)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      const key = String(round);
      const told = await call(session, 'write', { key }).then(textOf, ({ code }) => code);
      // Either it never left us and went to the next child, or nobody knows; never both.
      const written = lines().filter((line) => line === `write ${key}`).length;
      expect([
        ['written', 1],
        ['OUTCOME_UNKNOWN', 0],
      ]).toContainEqual([told, written]);
    }
  });

  verifies('T02', async () => {
    const policy = { timeout: 2_000, deadline: 60_000 };
    const { manager } = openManager([upstreamConfig(child(), { policy })]);
    const session = manager.open('u', client);
    // It takes longer than the limit, and reports progress only to who asked for it: nobody here.
    expect(textOf(await call(session, 'progress', { n: 30, ms: 100 }))).toBe('done');
    const silent = await failed(call(session, 'slow', { ms: 30_000 }, reading('slow')));
    expect(silent.code).toBe('TIMEOUT');
    // And whoever asks gets it, without the token that was ours.
    const steps: Json[] = [];
    const onProgress = (step: Json) => void steps.push(step);
    await call(session, 'progress', { n: 2, ms: 1 }, { onProgress });
    expect(steps).toEqual([
      { progress: 1, total: 2, message: 'step 1' },
      { progress: 2, total: 2, message: 'step 2' },
    ]);
  });

  verifies('S06', async () => {
    const { manager } = openManager([upstreamConfig(child())]);
    const [one, two] = [manager.open('u', client), manager.open('u', client)] as const;
    const counts: string[] = [];
    for (let n = 0; n < 5; n += 1) counts.push(textOf(await call(one, 'counter')));
    expect(counts).toEqual(['1', '2', '3', '4', '5']);
    expect(textOf(await call(two, 'counter'))).toBe('1');
    expect(manager.health()[0]).toMatchObject({ sessions: 2, restarts: 0 });
    expect(manager.health()[0]?.pids).toHaveLength(2);
  });

  verifies('S08', async () => {
    const { manager } = openManager(
      ['x', 'y'].map((name) => upstreamConfig(child({ name }), { name })),
    );
    const sessions = ['alice', 'bob'].flatMap((name) =>
      ['x', 'y'].map((upstream) => {
        const facts = { ...client, clientInfo: { name, version: '1' } };
        const session = manager.open(upstream, facts);
        session.onrequest = async () => ({ client: name, upstream });
        return { name, upstream, session };
      }),
    );
    // All at once, with the same ids and tokens on each of the four.
    await Promise.all(
      sessions.flatMap(({ name, upstream, session }) =>
        Array.from({ length: 20 }, async (_, n) => {
          const { structuredContent } = await call(session, 'whoami');
          expect(structuredContent).toMatchObject({
            initialize: { clientInfo: { name, version: '1' } },
          });
          const asked = await call(session, 'elicit', { message: String(n) });
          expect(asked.structuredContent).toEqual({ result: { client: name, upstream } });
          const steps: unknown[] = [];
          const onProgress = ({ message }: Json) => void steps.push(message);
          await call(session, 'progress', { n: 2, ms: 1 }, { onProgress });
          expect(steps).toEqual(['step 1', 'step 2']);
          const read = await session.request({
            method: 'resources/read',
            params: { uri: `test://${name}/${n}` },
          });
          const text = `${upstream}: test://${name}/${n}`;
          expect(read.contents).toMatchObject([{ text }]);
        }),
      ),
    );
  });

  test('a call that is given up is cancelled over there, and answers nobody', async () => {
    const { file, lines } = await paper();
    const { manager } = openManager([upstreamConfig(child({ journal: file }))]);
    const session = manager.open('u', client);
    const controller = new AbortController();
    await session.ready();
    const hung = call(session, 'hang', {}, { signal: controller.signal });
    await until(() => lines().some((line) => line.includes('"hang"')));
    controller.abort(new Error('enough'));
    await expect(hung).rejects.toThrow('enough');
    await until(() => lines().some((line) => line.includes('notifications/cancelled')));
    expect(lines().at(-1)).toContain('"reason":"enough"');
    expect(textOf(await call(session, 'ok'))).toBe('ok');
    expect(manager.health()[0]?.breaker).toBeUndefined();
  });

  verifies('upstream.rounds', async () => {
    const { manager } = openManager([upstreamConfig(child())]);
    const pids: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const sessions = Array.from({ length: 5 }, () => manager.open('u', client));
      await Promise.all(sessions.map((session) => call(session, 'ok')));
      pids.push(...(manager.health()[0]?.pids ?? []));
      await Promise.all(sessions.map((session) => session.close()));
    }
    expect(new Set(pids).size).toBe(50);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(manager.health()[0]).toMatchObject({ state: 'ready', sessions: 0, pids: [] });
  });
});
