import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { startCommand, temporaryFolder } from '../fixtures/command.ts';
import { inFolder, npmEnvironment } from '../fixtures/npm.ts';
import { json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { pages, report, upstreamForTest } from '../tools/support.ts';

const require = createRequire(import.meta.url);
const INSPECTOR = join(
  dirname(require.resolve('@modelcontextprotocol/inspector/package.json')),
  'clients/launcher/build/index.js',
);
const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

interface Answer {
  readonly tools?: { readonly name: string; readonly outputSchema?: { readonly type?: string } }[];
  readonly isError?: boolean;
  readonly content?: { readonly text?: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
}

/** Runs the Inspector's own command line against a server and parses what it prints. */
const inspect = async (server: readonly string[], method: readonly string[]): Promise<Answer> => {
  const folder = temporaryFolder();
  const args = [INSPECTOR, '--cli', ...server, '--method', ...method, '--format', 'json'];
  const env = { ...npmEnvironment(), HOME: folder };
  return JSON.parse(await inFolder(folder, process.execPath, args, env)).result;
};

const call = (name: string, ...pairs: string[]): string[] => [
  'tools/call',
  '--tool-name',
  name,
  ...pairs.flatMap((pair) => ['--tool-arg', pair]),
];

verifies('e2e.inspector', async () => {
  const weather = await upstreamForTest();
  const wiki = await upstreamForTest();
  weather.on('*', json(report()));
  wiki.on('*', json(pages({ title: 'Circuit breaker' })));
  const env = { WEATHER_API_URL: weather.url, SEARCH_API_URL: wiki.url };
  const served = startCommand(['--http', '--port', '0'], env);
  const [, url = ''] = await served.said(/serves MCP at (\S+)\n/);

  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const doors: (readonly string[])[] = [
    [process.execPath, CLI, ...variables],
    [url, '--transport', 'http'],
  ];
  for (const door of doors) {
    // Strict: portability problems of the schemas are an error too.
    const { tools } = await inspect(door, ['tools/list', '--strict']);
    expect(tools?.map(({ name }) => name)).toEqual(['get_weather', 'search', 'health_check']);
    expect(tools?.map(({ outputSchema }) => outputSchema?.type)).toEqual([
      'object',
      'object',
      'object',
    ]);

    const oslo = await inspect(door, call('get_weather', 'city=Oslo'));
    expect(oslo.structuredContent).toMatchObject({
      city: 'Oslo',
      temperature_c: 18,
      source: 'wttr.in',
    });
    const found = await inspect(door, call('search', 'query=circuit breaker', 'limit=1'));
    expect(found.structuredContent).toMatchObject({ results: [{ title: 'Circuit breaker' }] });
    expect((await inspect(door, call('health_check'))).structuredContent).toMatchObject({
      status: 'ok',
    });
  }
  // Once by each of the two servers.
  expect(weather.count()).toBe(2);
  served.child.kill('SIGTERM');
  expect(await served.ended).toMatchObject({ code: 0, stdout: '' });
});
