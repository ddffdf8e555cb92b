/**
 * @module
 * Runs the official conformance suite: all active server scenarios against a fixture server
 * behind our HTTP door, and those that need no fixture against the reference server as a user
 * starts it. Prints what passed; exits 1 when a check failed or none was made.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { serveHttp } from '../../src/mcp/transports/http.ts';
import { createFixtureServer } from './fixture-server.ts';

const SUITE = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const WITHOUT_FIXTURE = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];

let passed = 0;
let failed = 0;

/** Runs the suite's own command and adds up what it says. */
const run = async (args: readonly string[], totals: RegExp): Promise<void> => {
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
  const code = await new Promise((resolve) => child.on('close', resolve));
  const [, good = '0', bad = '0'] = totals.exec(output) ?? [];
  passed += Number(good);
  failed += Number(bad);
  if (code === 0 && good !== '0' && bad === '0') return;
  // A suite that could not run is as bad as one that failed.
  failed += bad === '0' ? 1 : 0;
  console.error(output);
};

const startReference = (): Promise<{ url: string; child: ChildProcess }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, '--http', '--port', '0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
      const [, url] = /serves MCP at (\S+)\n/.exec(said) ?? [];
      if (url) resolve({ url, child });
    });
    child.on('exit', () => reject(new Error(`the reference server did not start: ${said}`)));
  });

const door = await serveHttp({ createServer: createFixtureServer, port: 0, rateLimit: false });
await run(['--url', door.url, '--suite', 'active'], /Total: (\d+) passed, (\d+) failed/);
await door.close();

const { url, child } = await startReference();
for (const scenario of WITHOUT_FIXTURE) {
  await run(['--url', url, '--scenario', scenario], /Passed: (\d+)\/\d+, (\d+) failed/);
}
child.kill('SIGTERM');

console.error('conformance, @modelcontextprotocol/conformance 0.1.16:');
console.error(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
