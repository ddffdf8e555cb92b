import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VERSION } from '../src/version.ts';
import { inFolder, npmEnvironment } from './fixtures/npm.ts';
import { verifies } from './fixtures/verifies.ts';

const root = dirname(import.meta.dirname);
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));

/** What somebody writes who uses the package. */
const CONSUMER = `
import 'mcp-resilience/register';
import { type Failure, type PolicySettings, classify, createPipeline, presets } from 'mcp-resilience';
import { createChaos } from 'mcp-resilience/chaos';
import manifest from 'mcp-resilience/package.json' with { type: 'json' };

const settings: PolicySettings = { ...presets['public-api'], timeout: 3_000, retry: false };
const pipeline = createPipeline('weather', settings);
const chaos = createChaos({ targets: [{ tool: 'x' }] });
await chaos.close();
const answer: number = await pipeline.execute(async ({ signal }) => (signal.throwIfAborted(), 42));
// @ts-expect-error: the types are there, and strict
const wrong: string = answer;
const failure: Failure = classify(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }));
console.log(JSON.stringify({ answer, wrong, code: failure.code, version: manifest.version }));
`;

const TSCONFIG = {
  compilerOptions: {
    module: 'nodenext',
    moduleResolution: 'nodenext',
    target: 'es2022',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    types: ['node'],
  },
  files: ['consumer.ts'],
};

let folder = '';
let project = '';
let packed: { version: string; files: { path: string; mode: number }[] };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-resilience-package-'));
  project = await mkdtemp(join(folder, 'project-'));
  const out = await inFolder(root, 'npm', ['pack', '--json', '--pack-destination', folder]);
  // The build says its own lines in front.
  [packed] = JSON.parse(out.slice(out.search(/^\[/m)));
  await writeFile(join(project, 'package.json'), '{"private": true, "type": "module"}');
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  await writeFile(join(project, 'consumer.ts'), CONSUMER);
  await inFolder(project, 'npm', [
    'install',
    '--ignore-scripts',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    join(folder, `mcp-resilience-${VERSION}.tgz`),
    `@types/node@${manifest.devDependencies['@types/node']}`,
  ]);
  // Bounds against a registry that hangs, no measurements.
}, 280_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Lists the tools through the installed command, as an MCP client starts it. */
const listTools = async (): Promise<string[]> => {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StdioClientTransport({
    command: 'npx',
    args: ['--no-install', 'mcp-resilience'],
    cwd: project,
    env: npmEnvironment(),
    stderr: 'ignore',
  });
  await client.connect(transport);
  try {
    expect(client.getServerVersion()).toMatchObject({ name: 'mcp-resilience', version: VERSION });
    return (await client.listTools()).tools.map(({ name }) => name);
  } finally {
    await client.close();
  }
};

/** A wrapped server, as a client's configuration starts it from the installed package. */
const wrapped = async (server: readonly string[]): Promise<unknown> => {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StdioClientTransport({
    command: 'npx',
    args: ['--no-install', 'mcp-resilience', 'wrap', '--', ...server],
    cwd: project,
    env: npmEnvironment(),
    stderr: 'ignore',
  });
  await client.connect(transport);
  try {
    return await client.callTool({ name: 'ok', arguments: { text: 'wrapped' } });
  } finally {
    await client.close();
  }
};

describe('the package', () => {
  test('its version is written in two places, and the same', () => {
    expect([packed.version, manifest.version]).toEqual([VERSION, VERSION]);
  });

  verifies('package.contents', async () => {
    const paths = packed.files.map(({ path }) => path);
    const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'];
    expect(paths.filter((path) => !path.startsWith('dist/')).sort()).toEqual(papers);
    const built = paths.filter((path) => path.startsWith('dist/'));
    expect(built.filter((path) => !/^dist\/[\w/-]+(\.js|\.d\.ts)$/.test(path))).toEqual([]);
    expect(built.filter((path) => path.includes('test'))).toEqual([]);
    expect(packed.files.find(({ path }) => path === 'dist/cli.js')?.mode.toString(8)).toBe('755');

    const { './package.json': _, ...entries } = manifest.exports;
    const named = Object.values<Record<string, string>>(entries).flatMap(Object.values<string>);
    expect(named).toHaveLength(6);
    for (const path of [...named, `./${manifest.bin['mcp-resilience']}`]) {
      expect(paths).toContain(path.replace(/^\.\//, ''));
    }

    for (const path of built) {
      const text = await readFile(join(project, 'node_modules/mcp-resilience', path), 'utf8');
      expect(text, path).not.toContain('sourceMappingURL');
      for (const [, specifier = ''] of text.matchAll(/(?:from |import\()['"](\.[^'"\n]+)['"]/g)) {
        const target = posix.join(posix.dirname(path), specifier);
        expect(paths, `${path} imports ${specifier}`).toContain(target);
      }
    }
  });

  verifies('package.installs-and-runs', async () => {
    const version = await inFolder(project, 'npx', ['--no-install', 'mcp-resilience', '--version']);
    expect(version).toBe(`${VERSION}\n`);

    expect(await listTools()).toEqual(['get_weather', 'search', 'health_check']);

    const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
    await inFolder(project, process.execPath, [join(dirname(typescript), 'bin', 'tsc')]);
    const said = await inFolder(project, process.execPath, ['consumer.js']);
    expect(JSON.parse(said)).toEqual({
      answer: 42,
      wrong: 42,
      code: 'CONNECTION_REFUSED',
      version: VERSION,
    });
  });

  verifies('X03', async () => {
    const server = join(root, 'test', 'gateway', 'support', 'upstream-server.ts');
    expect(await wrapped([process.execPath, server])).toMatchObject({
      content: [{ type: 'text', text: 'wrapped' }],
    });
  });
});
