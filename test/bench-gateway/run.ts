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
import { loadNow, surroundings } from '../bench/results.ts';
import { fallsShort, judge } from './judge.ts';
import type { Processes, Sample, WarmUp } from './load.ts';
import { installPeers } from './peers.ts';
import { startProcess, type Words } from './process.ts';
import { type GatewayResults, render } from './report.ts';
import { cost, number, type Place, type Row, rate } from './rows.ts';
import { type Client, startClient } from './start-client.ts';
import {
  type Arrangement,
  DIRECT,
  PEERS,
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
    turns: { type: 'string' },
    ms: { type: 'string' },
    answers: { type: 'string' },
    peers: { type: 'string' },
    out: { type: 'string' },
  },
});
/** Figures of less are noise beyond the first digit, and are not written down. */
const ENOUGH = { rounds: 2, turns: 8, milliseconds: 500 };
const milliseconds = Number(flags.ms ?? ENOUGH.milliseconds);
const warmUp: WarmUp = flags.quick ? { calls: 1_000, ms: 2_000 } : { calls: 15_000, ms: 12_000 };
const rounds = Number(flags.rounds ?? (flags.quick ? 1 : ENOUGH.rounds));
/** Of each subject, under each load, in each round. */
const turns = Number(flags.turns ?? (flags.quick ? 1 : ENOUGH.turns));
const isShort =
  flags.quick ||
  rounds * turns < ENOUGH.rounds * ENOUGH.turns ||
  milliseconds < ENOUGH.milliseconds;
const filters = [flags.world, flags.arrangement, flags.subjects, flags.answers];
const isPart = filters.some((flag) => flag !== undefined);
const chosen = <T extends { readonly name: string }>(all: readonly T[], pattern = ''): T[] =>
  all.filter(({ name }) => new RegExp(pattern).test(name));

const scratch = mkdtempSync(join(tmpdir(), 'mcp-resilience-bench-'));
const peers = flags.peers ?? join(scratch, 'peers');
const rows = new Map<string, Row & { readonly samples: Sample[] }>();

const keep = (place: Place, { name: subject }: Subject, sample: Sample): void => {
  const row = { ...place, subject };
  const key = JSON.stringify(row);
  const kept = rows.get(key) ?? { ...row, samples: [] };
  kept.samples.push(sample);
  rows.set(key, kept);
};

/** A subject with its client, warm. */
interface Ready {
  readonly subject: Subject;
  readonly client: Client;
  readonly processes: Processes;
}

/** Starts one subject with a server and a client of its own; `later` gets what ends each. */
const prepare = async (
  world: World,
  arrangement: Arrangement,
  subject: Subject,
  later: (stop: () => Promise<void>) => void,
): Promise<Ready> => {
  const pidFile = join(mkdtempSync(join(scratch, 'pids-')), 'pids');
  const asJson = flags.answers === 'json' && world.name === 'lean' ? ['--json'] : [];
  const server: Words = [process.execPath, join(here, 'servers', `${world.name}.ts`), ...asJson];
  const words: Words = [...server, `--pid-file=${pidFile}`];
  const serves = arrangement.upstream === 'http';
  const served = serves ? await startProcess([...server, '--http'], process.env) : undefined;
  if (served !== undefined) later(served.stop);
  const running = await startSubject(subject, arrangement, {
    url: served?.url ?? '',
    words,
    peers,
  });
  later(running.stop);
  const client = await startClient(world, running.address);
  later(client.close);
  await client.warmUp(world.loads, warmUp);
  const proxy = running.pid ?? (subject.name === DIRECT ? undefined : client.pid);
  const servers =
    served === undefined
      ? readFileSync(pidFile, 'utf8').split('\n').filter(Boolean).map(Number)
      : [served.pid];
  return { subject, client, processes: { proxy, servers } };
};

/**
 * All subjects of an arrangement run side by side and take short turns: what slows the machine
 * down for seconds meets all of them, and a ratio compares neighbours in time.
 */
const measureArrangement = async (
  world: World,
  arrangement: Arrangement,
  round: number,
): Promise<void> => {
  const stops: (() => Promise<void>)[] = [];
  try {
    const ready: Ready[] = [];
    for (const subject of chosen(subjectsOf(arrangement), flags.subjects)) {
      ready.push(await prepare(world, arrangement, subject, (stop) => stops.unshift(stop)));
    }
    for (const load of world.loads) {
      for (let turn = 0; turn < turns; turn += 1) {
        for (const each of (round + turn) % 2 === 0 ? ready : ready.toReversed()) {
          const sample = await each.client.measure(load, milliseconds, each.processes);
          keep(
            { world: world.name, arrangement: arrangement.name, load: load.name },
            each.subject,
            sample,
          );
        }
      }
    }
  } finally {
    // One that does not end must not keep the others alive.
    for (const stop of stops) await stop().catch((error: unknown) => console.error(error));
  }
};

const measureWorld = async (world: World, round: number): Promise<void> => {
  for (const arrangement of chosen(world.arrangements, flags.arrangement)) {
    await measureArrangement(world, arrangement, round);
  }
};

/** More than four digits of a figure are noise. */
const digits = (_: string, value: unknown): unknown =>
  typeof value === 'number' ? Number(value.toPrecision(4)) : value;

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
  const results: GatewayResults = {
    ...surroundings(loadBefore),
    versions: { 'mcp-resilience': VERSION, ...PEERS },
    rounds,
    turns,
    milliseconds,
    rows: measured,
    verdicts,
  };
  const [data = '', page = ''] = [[here], [here, '..', '..', 'docs']].map(
    (folders) => flags.out ?? join(...folders),
  );
  for (const folder of [data, page]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(data, 'results.json'), `${JSON.stringify(results, digits, 1)}\n`);
  const notes = readFileSync(join(here, 'notes.md'), 'utf8');
  writeFileSync(join(page, 'benchmarks-gateway.md'), render(results, warmUp, notes));
}
if (!isShort && verdicts.some(fallsShort)) process.exitCode = 1;
