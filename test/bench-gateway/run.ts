/**
 * @module
 * `npm run bench:gateway`: the gateway beside a direct connection and beside other proxies from
 * npm, which are installed into a temporary folder. Writes `results.json` and
 * `docs/benchmarks-gateway.md`; exits with 1 when a promise is not kept.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { VERSION } from '../../src/version.ts';
import { inFolder } from '../fixtures/npm.ts';
import { connect, LOADS, measure, type Sample, warmUp } from './load.ts';
import { judge, median, type Results, type Row, render } from './report.ts';
import {
  ARRANGEMENTS,
  type Arrangement,
  PEERS,
  type Subject,
  startSubject,
  startUpstream,
  subjectsOf,
} from './subjects.ts';

const here = import.meta.dirname;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    peers: { type: 'string' },
    rounds: { type: 'string' },
  },
});
const milliseconds = flags.quick ? 1_000 : 1_500;
const warmUpTime = flags.quick ? 1_000 : 2_500;
const rounds = Number(flags.rounds ?? (flags.quick ? 1 : 3));
const only = new RegExp(flags.only ?? '');
const chosen = ARRANGEMENTS.filter(({ name }) => only.test(name));

const peers = flags.peers ?? mkdtempSync(join(tmpdir(), 'mcp-resilience-bench-'));
mkdirSync(peers, { recursive: true });
if (!existsSync(join(peers, 'node_modules'))) {
  say(`installing ${Object.keys(PEERS).join(', ')} into ${peers}`);
  writeFileSync(join(peers, 'package.json'), '{ "private": true }\n');
  const packages = Object.entries(PEERS).map(([name, version]) => `${name}@${version}`);
  await inFolder(peers, 'npm', ['install', '--no-audit', '--no-fund', '--save-exact', ...packages]);
}

const rows = new Map<string, { row: Omit<Row, 'samples'>; samples: Sample[] }>();

const measureSubject = async (
  subject: Subject,
  arrangement: Arrangement,
  server: { readonly url: string; readonly pid: number },
) => {
  const running = await startSubject(subject, arrangement, server.url, { PEERS: peers });
  try {
    const client = await connect(running.address);
    const ofServer = arrangement.upstream === 'http' ? server.pid : undefined;
    const pid = running.pid ?? client.pid ?? (subject.name === 'direct' ? ofServer : undefined);
    await warmUp(client.call, warmUpTime);
    for (const load of LOADS) {
      const sample = await measure(client.call, load, milliseconds, pid);
      const row = { arrangement: arrangement.name, load: load.name, subject: subject.name };
      const key = JSON.stringify(row);
      const kept = rows.get(key) ?? { row, samples: [] };
      kept.samples.push(sample);
      rows.set(key, kept);
    }
    await client.close();
  } finally {
    await running.stop();
  }
};

const [loadBefore = 0] = loadavg();
const upstream = await startUpstream();
try {
  for (let round = 0; round < rounds; round += 1) {
    for (const arrangement of chosen) {
      const subjects = subjectsOf(arrangement, upstream.url, peers);
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        await measureSubject(subject, arrangement, upstream);
      }
    }
    console.error(`round ${round + 1} of ${rounds} done`);
  }
} finally {
  await upstream.stop();
  if (flags.peers === undefined) rmSync(peers, { recursive: true, force: true });
}
const [loadAfter = 0] = loadavg();

const measured: readonly Row[] = [...rows.values()].map(({ row, samples }) => ({
  ...row,
  samples,
}));
for (const { arrangement, load, subject, samples } of measured) {
  const of = (pick: (sample: Sample) => number | undefined) =>
    median(samples.map((sample) => pick(sample) ?? Number.NaN));
  const shown = [
    `${of(({ perSecond }) => perSecond)
      .toFixed(0)
      .padStart(7)}/s`,
    `p50 ${of(({ p50 }) => p50)
      .toFixed(2)
      .padStart(7)} ms`,
    `cpu ${of(({ cpu }) => cpu)
      .toFixed(0)
      .padStart(5)} us`,
  ];
  say(`${arrangement.padEnd(19)} ${load.padEnd(30)} ${subject.padEnd(15)} ${shown.join('  ')}`);
}
const verdicts = judge(measured);
for (const { promise, met, figures } of verdicts) {
  say(`${met ? 'PASS       ' : 'FALLS SHORT'} ${promise}: ${figures}`);
}

if (!flags.quick && flags.only === undefined) {
  const results: Results = {
    date: new Date().toISOString().slice(0, 10),
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores: availableParallelism(),
      node: process.versions.node,
      loadBefore,
      loadAfter,
    },
    versions: { 'mcp-resilience': VERSION, ...PEERS },
    rounds,
    milliseconds,
    warmUpTime,
    rows: measured,
    verdicts,
  };
  writeFileSync(join(here, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
  const notes = readFileSync(join(here, 'notes.md'), 'utf8');
  const page = join(here, '..', '..', 'docs', 'benchmarks-gateway.md');
  writeFileSync(page, render(results, notes));
}
if (!flags.quick && verdicts.some(({ met }) => !met)) process.exitCode = 1;
