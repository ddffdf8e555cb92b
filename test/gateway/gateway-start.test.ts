import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readGatewayConfig } from '../../src/gateway/config.ts';
import { createUpstreamManager } from '../../src/gateway/upstream-manager.ts';
import { runCommand, temporaryFolder } from '../fixtures/command.ts';
import { connectCommand, writtenConfig } from './support/command.ts';
import { isAlive, toolNames } from './support/gateway.ts';
import { stdioUpstream } from './support/upstream-server.ts';

test('the file can switch health_check off, as the flag can', async () => {
  const on = writtenConfig({ one: stdioUpstream() });
  const off = writtenConfig({ one: stdioUpstream() }, { healthTool: false });
  const namesOf = async (...args: string[]) =>
    toolNames((await connectCommand(['gateway', '--config', ...args])).request);
  expect(await namesOf(on.file)).toContain('health_check');
  expect(await namesOf(off.file)).not.toContain('health_check');
  expect(await namesOf(on.file, '--no-health-tool')).not.toContain('health_check');
  const wrong = writtenConfig({ one: stdioUpstream() }, { healthTool: 'no' });
  const { code, stderr } = await runCommand(['gateway', '--config', wrong.file]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('gateway.healthTool must be true or false'),
  ]);
});

test('a token that is not there is found before anything is started', async () => {
  const journal = join(temporaryFolder(), 'journal');
  const { file } = writtenConfig(
    { one: stdioUpstream({ journal }) },
    { strict: true, auth: { tokens: [{ principal: 'ci', env: 'NOT_SET_TOKEN' }] } },
  );
  const { code, stderr } = await runCommand(
    ['gateway', '--http', '--port', '0', '--config', file],
    {},
  );
  expect(code).toBe(2);
  expect(stderr).toContain('gateway.auth cannot be used');
  expect(stderr).toContain('NOT_SET_TOKEN');
  expect(existsSync(journal)).toBe(false);
});

test('the end waits for servers of sessions that are just ending', async () => {
  const entry = stdioUpstream({ ignoreEof: true });
  const { upstreams } = readGatewayConfig({ mcpServers: { one: entry } }, { name: 'test' });
  const manager = createUpstreamManager(upstreams);
  const facts = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} };
  const session = manager.open('one', facts);
  await session.ready();
  const [pid = 0] = manager.health()[0]?.pids ?? [];
  expect(isAlive(pid)).toBe(true);
  void session.close();
  await manager.close();
  expect(isAlive(pid)).toBe(false);
});
