/**
 * @module
 * `npm run bench:gateway`: the gateway beside a direct connection and beside other proxies from
 * npm, which are installed into a temporary folder, in two worlds (`worlds.ts`). Writes
 * `results.json` and `docs/benchmarks-gateway.md`; exits with 1 when a promise is not kept.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { VERSION } from '../../src/version.ts';
import { loadNow, type Results, surroundings } from '../bench/results.ts';
import { fallsShort, judge, type Verdict } from './judge.ts';
import type { Sample, WarmUp } from './load.ts';
import { installPeers } from './peers.ts';
import { startProcess, type Words } from './process.ts';
import { render } from './report.ts';
import { cost, number, type Row, rate } from './rows.ts';
import { startClient } from './start-client.ts';
import {
  type Arrangement,
  DIRECT,
  PEERS,
  type Site,
  type Subject,
  startSubject,
  subjectsOf,
} from './subjects.ts';
import { WORLDS, type World } from './worlds.ts';

const here = import.meta.dirname;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    world: { type: 'string' },
    arrangement: { type: 'string' },
    subjects: { type: 'string' },
    rounds: { type: 'string' },
    ms: { type: 'string' },
    answers: { type: 'string' },
    peers: { type: 'string' },
    out: { type: 'string' },
  },
});
/** Figures of less are noise beyond the first digit, and are not written down. */
const ENOUGH = { rounds: 3, milliseconds: 1_000 };
const milliseconds = Number(flags.ms ?? (flags.quick ? 800 : ENOUGH.milliseconds));
const warmUp: WarmUp = flags.quick ? { calls: 1_000, ms: 2_000 } : { calls: 15_000, ms: 12_000 };
const rounds = Number(flags.rounds ?? (flags.quick ? 1 : ENOUGH.rounds));
const isShort = flags.quick || rounds < ENOUGH.rounds || milliseconds < ENOUGH.milliseconds;
const filters = [flags.world, flags.arrangement, flags.subjects, flags.answers];
const isPart = filters.some((flag) => flag !== undefined);
const chosen = <T extends { readonly name: string }>(all: readonly T[], pattern = ''): T[] =>
  all.filter(({ name }) => new RegExp(pattern).test(name));

const scratch = mkdtempSync(join(tmpdir(), 'mcp-resilience-bench-'));
const peers = flags.peers ?? join(scratch, 'peers');
const pidFile = join(scratch, 'pids');
const rows = new Map<string, Row & { readonly samples: Sample[] }>();

const measureSubject = async (
  world: World,
  arrangement: Arrangement,
  subject: Subject,
  site: Site,
  serverPid: number | undefined,
): Promise<void> => {
  writeFileSync(pidFile, '');
  const running = await startSubject(subject, arrangement, site);
  try {
    const client = await startClient(world, running.address);
    try {
      const proxy = running.pid ?? (subject.name === DIRECT ? undefined : client.pid);
      await client.warmUp(world.loads, warmUp);
      const children = readFileSync(pidFile, 'utf8').split('\n').filter(Boolean).map(Number);
      const servers = serverPid === undefined ? children : [serverPid];
      for (const load of world.loads) {
        const sample = await client.measure(load, milliseconds, { proxy, servers });
        const place = { world: world.name, arrangement: arrangement.name, load: load.name };
        const row = { ...place, subject: subject.name };
        const key = JSON.stringify(row);
        const kept = rows.get(key) ?? { ...row, samples: [] };
        kept.samples.push(sample);
        rows.set(key, kept);
      }
    } finally {
      await client.close();
    }
  } finally {
    await running.stop();
  }
};

const measureWorld = async (world: World, round: number): Promise<void> => {
  const asJson = flags.answers === 'json' && world.name === 'lean' ? ['--json'] : [];
  const server: Words = [process.execPath, join(here, 'servers', `${world.name}.ts`), ...asJson];
  const words: Words = [...server, `--pid-file=${pidFile}`];
  for (const arrangement of chosen(world.arrangements, flags.arrangement)) {
    const subjects = chosen(subjectsOf(arrangement), flags.subjects);
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const serves = arrangement.upstream === 'http';
      const served = serves ? await startProcess([...server, '--http'], process.env) : undefined;
      const site = { url: served?.url ?? '', words, peers };
      await measureSubject(world, arrangement, subject, site, served?.pid).finally(served?.stop);
    }
  }
};

const loadBefore = loadNow();
const begun = performance.now();
try {
  await installPeers(peers);
  for (let round = 0; round < rounds; round += 1) {
    for (const world of chosen(WORLDS, flags.world)) await measureWorld(world, round);
    const minutes = (performance.now() - begun) / 60_000;
    console.error(`round ${round + 1} of ${rounds} done after ${minutes.toFixed(1)} min`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

const measured: readonly Row[] = [...rows.values()];
for (const row of measured) {
  const times = (['client', 'proxy', 'server'] as const).map((of) => {
    const time = cost(row, of);
    return `${of} ${(time === undefined ? '' : number(time)).padStart(5)}`;
  });
  const place = `${row.world.padEnd(9)} ${row.arrangement.padEnd(19)} ${row.load.padEnd(30)}`;
  say(
    `${place} ${row.subject.padEnd(15)} ${rate(row).toFixed(0).padStart(7)}/s  us: ${times.join('  ')}`,
  );
}
const verdicts = judge(measured);
for (const { promise, judgedIn, findings } of verdicts) {
  for (const { world, met, figures } of findings) {
    const mark =
      world === judgedIn ? (met ? 'PASS' : 'FALLS SHORT') : met ? '(kept)' : '(not kept)';
    say(`${mark.padEnd(11)} ${promise}, ${world}: ${figures}`);
  }
}

if (flags.out !== undefined || !(isShort || isPart)) {
  const results: Results<Row, Verdict> = {
    ...surroundings(loadBefore),
    versions: { 'mcp-resilience': VERSION, ...PEERS },
    rounds,
    milliseconds,
    rows: measured,
    verdicts,
  };
  const [data = '', page = ''] = [[here], [here, '..', '..', 'docs']].map(
    (folders) => flags.out ?? join(...folders),
  );
  for (const folder of [data, page]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(data, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
  const notes = readFileSync(join(here, 'notes.md'), 'utf8');
  writeFileSync(join(page, 'benchmarks-gateway.md'), render(results, warmUp, notes));
}
if (!isShort && verdicts.some(fallsShort)) process.exitCode = 1;
