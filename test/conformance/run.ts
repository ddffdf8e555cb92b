/**
 * @module
 * Runs the official conformance suite. All active server scenarios against a fixture server:
 * behind our HTTP door, and behind the gateway as a user starts it, once over Streamable HTTP
 * and once as a stdio child; each way must pass as many checks as the first. And those
 * scenarios that need no fixture against the reference server. Prints what passed; exits 1
 * when a check failed, none was made, or the ways differ.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serveHttp } from '../../src/mcp/transports/http.ts';
import { createFixtureServer } from './fixture-server.ts';

const SUITE = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const STDIO_FIXTURE = fileURLToPath(new URL('./fixture-stdio.ts', import.meta.url));
const WITHOUT_FIXTURE = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];

interface Count {
  readonly passed: number;
  readonly failed: number;
}

/** Runs the suite's own command and reads what it says. */
const run = async (args: readonly string[], totals: RegExp): Promise<Count> => {
  const child = spawn(process.execPath, [SUITE, 'server', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const [code] = await once(child, 'close');
  const [, good = '0', bad = '0'] = totals.exec(output) ?? [];
  const [passed, failed] = [Number(good), Number(bad)];
  if (code === 0 && passed > 0 && failed === 0) return { passed, failed };
  console.error(output);
  // A suite that could not run is as bad as one that failed.
  return { passed, failed: failed || 1 };
};

const runAll = (url: string): Promise<Count> =>
  run(['--url', url, '--suite', 'active'], /Total: (\d+) passed, (\d+) failed/);

/** The command with these arguments, over HTTP, while `work` is at work. */
const behind = async <T>(
  [command = '', ...args]: readonly string[],
  work: (url: string) => Promise<T>,
): Promise<T> => {
  const child: ChildProcess = spawn(
    process.execPath,
    [CLI, command, '--http', '--port', '0', ...args],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const url = await new Promise<string>((resolve, reject) => {
    let said = '';
    child.stderr?.on('data', (chunk) => {
      said += chunk;
      const [, found] = /serves MCP at (\S+)\n/.exec(said) ?? [];
      if (found) resolve(found);
    });
    child.on('exit', () => reject(new Error(`${command} did not start: ${said}`)));
  });
  try {
    return await work(url);
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
};

const folder = mkdtempSync(join(tmpdir(), 'mcp-resilience-conformance-'));
const door = await serveHttp({ createServer: createFixtureServer, port: 0, rateLimit: false });
const config = join(folder, 'mcp.json');
writeFileSync(config, JSON.stringify({ mcpServers: { fixture: { url: door.url } } }));

const ways: readonly [string, () => Promise<Count>][] = [
  ['the fixture behind our HTTP door', () => runAll(door.url)],
  ['behind wrap, over HTTP', () => behind(['wrap', '--url', door.url], runAll)],
  [
    'behind wrap, as a stdio child',
    () => behind(['wrap', '--', process.execPath, STDIO_FIXTURE], runAll),
  ],
  ['behind gateway, over HTTP', () => behind(['gateway', '--config', config], runAll)],
];
const counts: Count[] = [];
console.error('conformance, @modelcontextprotocol/conformance 0.1.16:');
try {
  for (const [name, way] of ways) {
    const count = await way();
    counts.push(count);
    console.error(`${name}: ${count.passed} passed, ${count.failed} failed`);
  }
  const reference = await behind(['serve'], async (url) => {
    const found: Count[] = [];
    for (const scenario of WITHOUT_FIXTURE) {
      found.push(
        await run(['--url', url, '--scenario', scenario], /Passed: (\d+)\/\d+, (\d+) failed/),
      );
    }
    return found;
  });
  const sum = (key: keyof Count): number =>
    [...counts, ...reference].reduce((total, count) => total + count[key], 0);
  const same = counts.every(({ passed }) => passed === counts[0]?.passed);
  if (!same) console.error('the ways do not pass the same number of checks');
  console.error(`${sum('passed')} passed, ${sum('failed')} failed`);
  process.exitCode = sum('failed') === 0 && same ? 0 : 1;
} finally {
  await door.close();
  rmSync(folder, { recursive: true });
}
