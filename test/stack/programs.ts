/**
 * @module
 * The real programs of the stack, built from their Go modules at pinned versions and kept in a
 * cache outside the tree: `node test/stack/programs.ts promtool` prints where it is, building it
 * first if it is not there. `pin [set]` renews the pinned modules after a version or a
 * component of the Collector changed.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, setPriority } from 'node:os';
import { join } from 'node:path';
import { collectorSource, type GoModule } from './collector-source.ts';
import { COLLECTOR, JAEGER, PROMETHEUS } from './versions.ts';

/** Programs that are built together, from one list of modules. */
interface ProgramSet {
  readonly name: string;
  readonly version: string;
  readonly modules: readonly GoModule[];
  /** Package of each program. */
  readonly programs: Readonly<Record<string, string>>;
  readonly tags?: string;
  /** A main package of our own. */
  readonly main?: string;
}

const root = join(import.meta.dirname, '..', '..');

const SETS: readonly (() => ProgramSet)[] = [
  () => {
    const configuration = readFileSync(join(root, 'otel', 'collector.yaml'), 'utf8');
    const { modules, main } = collectorSource(configuration);
    return {
      name: 'collector',
      version: COLLECTOR.version,
      modules,
      main,
      programs: { otelcol: '.' },
    };
  },
  () => {
    const path = 'github.com/jaegertracing/jaeger/cmd/jaeger';
    const modules = [{ path, version: JAEGER.module }];
    return { name: 'jaeger', version: JAEGER.version, modules, programs: { jaeger: path } };
  },
  () => {
    const path = 'github.com/prometheus/prometheus/cmd';
    const programs = { prometheus: `${path}/prometheus`, promtool: `${path}/promtool` };
    const modules = Object.values(programs).map((program) => ({
      path: program,
      version: PROMETHEUS.module,
    }));
    // Discovery of machines in clouds is most of its code, and prometheus.yaml uses none of it.
    const tags = 'remove_all_sd';
    return { name: 'prometheus', version: PROMETHEUS.version, modules, programs, tags };
  },
];

/** Names of the programs there are. */
export type ProgramName = 'otelcol' | 'jaeger' | 'prometheus' | 'promtool';

const pinnedIn = (set: ProgramSet): string => join(import.meta.dirname, 'programs', set.name);

const cacheFolder = (): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mcp-resilience', 'stack');

const say = (line: string): void => console.error(line);

const NO_GO =
  'the stack test builds the Collector, Jaeger and Prometheus and needs Go 1.26 or later: ' +
  'install it from https://go.dev/dl and put its bin folder on PATH';

/** Runs `go`, with what it says on stderr; gives what it printed. */
const go = (args: readonly string[], cwd: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn('go', args, {
      cwd,
      env: { ...process.env, GOWORK: 'off' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    // A build must not make the machine useless for whoever sits at it.
    child.once('spawn', () => setPriority(child.pid ?? 0, 10));
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ENOENT' ? new Error(NO_GO) : error),
    );
    child.once('close', (code) => {
      if (code === 0) resolve(stdout);
      else reject(new Error(`go ${args[0]} ended with ${code}:\n${stderr.trim()}`));
    });
  });

const checkGo = async (): Promise<void> => {
  const [, major = '0', minor = '0'] = /go(\d+)\.(\d+)/.exec(await go(['version'], root)) ?? [];
  if (Number(major) < 1 || (major === '1' && Number(minor) < 26)) {
    throw new Error(`${NO_GO} (found ${major}.${minor})`);
  }
};

/** Where the programs of a set are kept: another list of modules is another folder. */
const keptIn = (set: ProgramSet): string => {
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) {
    const path = join(pinnedIn(set), file);
    if (!existsSync(path)) {
      throw new Error(`${path} is missing; run: node test/stack/programs.ts pin ${set.name}`);
    }
    hash.update(readFileSync(path));
  }
  hash.update(JSON.stringify([set.main, set.tags, set.programs]));
  const id = `${set.name}-${set.version}-${hash.digest('hex').slice(0, 12)}`;
  return join(cacheFolder(), id);
};

/** Builds in a folder of its own and moves it in place: what is in the cache is whole. */
const build = async (set: ProgramSet, folder: string): Promise<void> => {
  await checkGo();
  await mkdir(cacheFolder(), { recursive: true });
  const work = await mkdtemp(join(cacheFolder(), 'build-'));
  const started = performance.now();
  try {
    for (const file of ['go.mod', 'go.sum']) {
      await copyFile(join(pinnedIn(set), file), join(work, file));
    }
    if (set.main !== undefined) await writeFile(join(work, 'main.go'), set.main);
    for (const [program, path] of Object.entries(set.programs)) {
      say(`building ${program} ${set.version} (the first time takes some minutes)`);
      const tags = set.tags === undefined ? [] : ['-tags', set.tags];
      const flags = ['-mod=readonly', '-buildvcs=false', '-ldflags=-s -w', ...tags];
      await go(['build', ...flags, '-o', join(work, 'bin', program), path], work).catch((error) => {
        throw new Error(
          `${program} could not be built. If its modules changed, run: ` +
            `node test/stack/programs.ts pin ${set.name}\n${error.message}`,
        );
      });
    }
    await rename(join(work, 'bin'), folder).catch((error) => {
      // Somebody else was faster with the same.
      if (!existsSync(folder)) throw error;
    });
    const seconds = Math.round((performance.now() - started) / 1_000);
    say(`built ${Object.keys(set.programs).join(', ')} ${set.version} in ${seconds} s: ${folder}`);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
};

/**
 * The path of a program, which is built first if the cache does not have it.
 *
 * @throws Error that says what to do when Go is missing or something cannot be built
 */
export const program = async (name: ProgramName): Promise<string> => {
  for (const make of SETS) {
    const set = make();
    if (!Object.hasOwn(set.programs, name)) continue;
    const folder = keptIn(set);
    if (!existsSync(folder)) await build(set, folder);
    return join(folder, name);
  }
  throw new Error(`no program is called ${name}: there are otelcol, jaeger, prometheus, promtool`);
};

/** Writes go.mod and go.sum of a set anew. */
const pin = async (set: ProgramSet): Promise<void> => {
  await checkGo();
  const folder = pinnedIn(set);
  await mkdir(folder, { recursive: true });
  await rm(join(folder, 'go.sum'), { force: true });
  await writeFile(join(folder, 'go.mod'), `module mcp-resilience/stack/${set.name}\n\ngo 1.26\n`);
  // As tools where no package of ours imports them: without that `go` would drop them again.
  const kind = set.main === undefined ? ['-tool'] : [];
  await go(
    ['get', ...kind, ...set.modules.map(({ path, version }) => `${path}@${version}`)],
    folder,
  );
  say(`pinned ${set.name} ${set.version}`);
};

if (import.meta.main) {
  const [first = '', second] = process.argv.slice(2);
  try {
    if (first === 'pin') {
      for (const make of SETS) {
        const set = make();
        if (second === undefined || second === set.name) await pin(set);
      }
    } else {
      // biome-ignore lint/suspicious/noConsole: the path is what was asked for.
      console.log(await program(first as ProgramName));
    }
  } catch (error) {
    say(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
