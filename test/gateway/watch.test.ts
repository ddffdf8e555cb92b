import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { watchFile } from '../../src/gateway/watch.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { serveCommand, writtenConfig } from './support/command.ts';
import { eventually, isAlive, openGateway, toolNames } from './support/gateway.ts';
import { stdioUpstream } from './support/upstream-server.ts';

describe('a watched file', () => {
  test('is told of when it was written, in whatever way, and only then', async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'mcp.json');
    writeFileSync(file, '1');
    let changes = 0;
    const stop = watchFile(
      file,
      () => {
        changes += 1;
      },
      { quiet: 20 },
    );
    onTestFinished(stop);
    // In pieces.
    writeFileSync(file, '');
    writeFileSync(file, '22');
    await eventually(() => changes === 1);
    // Another file in its place.
    writeFileSync(join(folder, 'other'), '333');
    renameSync(join(folder, 'other'), file);
    await eventually(() => changes === 2);
    // Deleted, which is no change, and written again.
    rmSync(file);
    writeFileSync(file, '4444');
    await eventually(() => changes === 3);
    // What stands beside it is of no interest.
    mkdirSync(join(folder, 'more'));
    stop();
    writeFileSync(file, '55555');
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(changes).toBe(3);
  });

  test('in a folder that is not there cannot be watched', () => {
    expect(() => watchFile(join(temporaryFolder(), 'no', 'mcp.json'), () => {})).toThrow(/ENOENT/);
  });
});

describe('an edited configuration', () => {
  verifies('gateway.watch', async () => {
    const kept = stdioUpstream({ name: 'kept' });
    const { file, write, writeText } = writtenConfig({
      kept,
      changed: stdioUpstream({ name: 'one' }),
    });
    const served = await serveCommand(['gateway', '--config', file, '--watch']);
    const heard: string[] = [];
    const { request, call } = await served.connect({
      before: (client) => {
        client.fallbackNotificationHandler = async ({ method }) => void heard.push(method);
      },
    });
    await toolNames(request);
    const pidOf = async (tool: string) => (await call(tool)).structuredContent.pid;
    const [keptPid, changedPid] = [await pidOf('kept__whoami'), await pidOf('changed__whoami')];
    await served.said(/watching /);
    const running = call('kept__slow', { ms: 1_000 });

    write({ kept, changed: stdioUpstream({ name: 'two' }), added: stdioUpstream({ tools: 1 }) });
    await served.said(/has changed: the gateway now serves kept, changed, added/);
    await eventually(() => heard.includes('notifications/tools/list_changed'));
    expect(isAlive(changedPid)).toBe(false);
    expect(await toolNames(request)).toContain('tool-00001');
    expect(await pidOf('kept__whoami')).toBe(keptPid);
    expect((await running).content).toEqual([{ type: 'text', text: 'slow' }]);
    expect(await pidOf('changed__whoami')).not.toBe(changedPid);

    // A wrong one is refused, and what was read before still holds.
    writeText('{ "mcpServers": { "kept": { "command": 1 } } }');
    await served.said(/mcpServers.kept.*\n.*what was read before still holds/);
    expect(await pidOf('kept__whoami')).toBe(keptPid);

    heard.length = 0;
    write({ kept });
    await served.said(/now serves kept\n/);
    await eventually(() => heard.includes('notifications/tools/list_changed'));
    expect(await toolNames(request)).toContain('whoami');
    await expect(call('changed__whoami')).rejects.toThrow(/Unknown tool/);
    expect(await pidOf('whoami')).toBe(keptPid);
  });

  test('tells the server that takes the place of another what that one knew', async () => {
    const journal = join(temporaryFolder(), 'journal');
    const servers = { alpha: stdioUpstream(), beta: stdioUpstream() };
    const gateway = await openGateway(servers);
    const { request } = await gateway.connect();
    await request('logging/setLevel', { level: 'notice' });
    await request('resources/subscribe', { uri: 'test://one' });
    await gateway.apply({ ...servers, alpha: stdioUpstream({ journal }) });
    const told = (method: string) =>
      existsSync(journal) && readFileSync(journal, 'utf8').includes(`"method":"${method}"`);
    await eventually(() => told('logging/setLevel') && told('resources/subscribe'));
  });

  test('changes how names are made', async () => {
    const servers = { alpha: stdioUpstream(), beta: stdioUpstream({ tools: 1 }) };
    const gateway = await openGateway(servers);
    const heard: string[] = [];
    const { request } = await gateway.connect({
      before: (client) => {
        client.fallbackNotificationHandler = async ({ method }) => void heard.push(method);
      },
    });
    expect(await toolNames(request)).toContain('tool-00001');
    await gateway.apply(servers, { prefix: 'always' });
    await eventually(() => heard.includes('notifications/tools/list_changed'));
    expect(await toolNames(request)).toContain('beta__tool-00001');
  });
});
