import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { drills } from '../../src/chaos/drills/index.ts';
import { runCommand, startCommand, temporaryFolder } from '../fixtures/command.ts';
import { closedPort, OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { verifies } from '../fixtures/verifies.ts';
import { until } from '../mcp/support/wait.ts';
import { drillFile, readReport, shortDrill, xmlProblems } from './drill-support.ts';

/** Processes whose parent is `pid`, as Linux tells them. */
const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return Number(parent) === pid && state !== 'Z' ? [Number(name)] : [];
      } catch {
        return [];
      }
    });

const isAlive = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
  } catch {
    return false;
  }
};

describe('drill', () => {
  verifies('drill.list', async () => {
    const { code, stdout, stderr } = await runCommand(['drill', '--list']);
    expect([code, stderr]).toEqual([0, '']);
    const lines = drills.map(({ name, hypothesis }) => `${name}: ${hypothesis}\n`);
    expect(stdout).toBe(lines.join(''));
    const wanted =
      'slow-shard hang burst-503 rate-limited flapping dns-outage garbage-body collector-outage retry-storm recovery';
    expect(drills.map(({ name }) => name).toSorted()).toEqual(wanted.split(' ').toSorted());
  });

  verifies('drill.usage', async () => {
    const file = drillFile(shortDrill());
    const folder = temporaryFolder();
    const refused: [string[], RegExp, NodeJS.ProcessEnv?][] = [
      [['no-such'], /there is no drill "no-such": there are slow-shard, hang, /],
      [['hang', '--file', file], /a name and --file exclude each other/],
      [['hang', '--json', join(folder, 'none', 'a.json')], /--json .*there is no folder .*none\n/],
      [['hang', '--junit', folder], /--junit .*it is a folder/],
      [['--file', join(folder, 'none.json')], /none\.json cannot be used:\n {2}- there is no such/],
      [['--file', folder], /it is a directory/],
      [['--file', ''], /must be the path of a file/],
      [
        ['hang'],
        /OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL/,
        { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' },
      ],
    ];
    for (const [args, reason, env] of refused) {
      const { code, stdout, stderr } = await runCommand(['drill', ...args], env);
      expect([args, code, stdout]).toEqual([args, 2, '']);
      expect(stderr).toMatch(reason);
    }
  });

  verifies('drill.unmet', async () => {
    const folder = temporaryFolder();
    const [json, junit] = [join(folder, 'report.json'), join(folder, 'report.xml')];
    const impossible = shortDrill();
    impossible.expect.push({
      that: 'no call fails <at all>',
      measure: 'count',
      of: { source: 'calls', outcome: ['error', 'rejected', 'lost'] },
      equals: 0,
    });
    const { code, stdout } = await runCommand([
      ...['drill', '--file', drillFile(impossible), '--json', json, '--junit', junit],
    ]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^ {2}PASS {2}calls fail: expected at least 1, measured \d+$/m);
    expect(stdout).toMatch(/^ {2}FAIL {2}no call fails <at all>: expected 0, measured [1-9]\d*$/m);
    expect(stdout).toMatch(/^FAIL short \(/m);
    const report = readReport(json);
    expect(report.verdict).toBe('FAIL');
    const [drill] = report.drills;
    expect(drill?.problem).toBeUndefined();
    const unmet = drill?.expectations.filter(({ pass }) => !pass) ?? [];
    expect(unmet).toMatchObject([{ that: 'no call fails <at all>', expected: '0' }]);
    expect(unmet[0]?.value).toBeGreaterThan(0);
    const xml = readFileSync(junit, 'utf8');
    expect(xmlProblems(xml)).toEqual([]);
    expect(xml).toContain('<testsuite name="short" tests="4" failures="1" errors="0"');
    expect(xml).toContain(`<failure message="expected 0, measured ${unmet[0]?.measured}"/>`);
  });

  verifies('drill.steady-first', async () => {
    const json = join(temporaryFolder(), 'report.json');
    const [steady] = shortDrill().steady.expect;
    if (steady === undefined) throw new Error('no steady state');
    const file = drillFile(
      shortDrill({ steady: { seconds: 0.5, expect: [{ ...steady, equals: 0 }] } }),
    );
    const { code, stdout, stderr } = await runCommand(['drill', '--file', file, '--json', json]);
    expect(code).toBe(1);
    expect(stderr).not.toContain('armed');
    expect(stdout).toContain('problem: the steady state did not hold, so no fault was armed');
    expect(readReport(json).drills[0]?.expectations).toMatchObject([
      { that: 'calls succeed', measured: '1', pass: false },
      { that: 'calls fail', measured: 'not judged: the drill ended before', pass: false },
    ]);
  });

  verifies('drill.cannot-run', async () => {
    const folder = temporaryFolder();
    const [json, junit] = [join(folder, 'report.json'), join(folder, 'report.xml')];
    const file = drillFile(
      shortDrill({ faults: [{ inject: { kind: 'hang', target: { tool: 'no_such_tool' } } }] }),
    );
    const { code, stdout } = await runCommand([
      ...['drill', '--file', file, '--json', json, '--junit', junit],
    ]);
    expect(code).toBe(1);
    const [drill] = readReport(json).drills;
    expect(drill).toMatchObject({ verdict: 'FAIL' });
    expect(drill?.problem).toMatch(/^the fault hang on no_such_tool was not armed: .*get_weather/);
    expect(stdout).toContain('problem: the fault hang on no_such_tool was not armed');
    const xml = readFileSync(junit, 'utf8');
    expect(xmlProblems(xml)).toEqual([]);
    expect(xml).toContain('errors="1"');
    expect(xml).toContain('<error message="the fault hang on no_such_tool was not armed');
  });

  verifies('drill.interrupted', async () => {
    for (const [signal, exitCode] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const folder = temporaryFolder();
      const file = drillFile(shortDrill({ fault: { seconds: 60 } }));
      const command = startCommand(['drill', '--file', file], { TMPDIR: folder });
      await command.said(/armed: status on get_weather\n/);
      const children = childrenOf(command.child.pid ?? 0);
      expect(children).toHaveLength(1);
      expect(readdirSync(folder)).toHaveLength(1);
      command.child.kill(signal);
      const { code } = await command.ended;
      expect(code).toBe(exitCode);
      expect(children.filter(isAlive)).toEqual([]);
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  test('a second signal ends it at once, and its server with it', async () => {
    const file = drillFile(shortDrill({ fault: { seconds: 60 } }));
    const command = startCommand(['drill', '--file', file]);
    await command.said(/armed: status on get_weather\n/);
    const children = childrenOf(command.child.pid ?? 0);
    command.child.kill('SIGINT');
    await command.said(/ending: what was started is ended/);
    command.child.kill('SIGINT');
    expect((await command.ended).code).toBe(130);
    await until(() => !children.some(isAlive));
  });

  verifies('drill.forwarding', async () => {
    const collector = await OtlpReceiver.start();
    onTestFinished(() => collector.stop());
    const { code, stderr } = await runCommand(['drill', '--file', drillFile(shortDrill())], {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=drills,x-token=a%20b',
      OTEL_SERVICE_NAME: 'drilled',
    });
    expect([code, stderr.includes('warning')]).toEqual([0, false]);
    const paths = new Set(collector.requests.map(({ path }) => path));
    expect([...paths].toSorted()).toEqual(['/v1/logs', '/v1/metrics', '/v1/traces']);
    expect(collector.requests[0]?.headers).toMatchObject({
      'x-tenant': 'drills',
      'x-token': 'a b',
    });
    const spans = collector.spans().filter(({ name }) => name === 'tools/call get_weather');
    expect(spans.length).toBeGreaterThan(5);
    expect(spans[0]?.resource).toMatchObject({ 'service.name': 'drilled' });
    expect(collector.metrics().map(({ name }) => name)).toContain('chaos.faults.injected');
    const events = collector.logs().map(({ eventName }) => eventName);
    for (const name of ['chaos.fault.armed', 'chaos.fault.injected', 'chaos.fault.cleared']) {
      expect(events).toContain(name);
    }
  });

  test('a collector that is not there is warned of once, and changes no verdict', async () => {
    const { code, stderr } = await runCommand(['drill', '--file', drillFile(shortDrill())], {
      OTEL_EXPORTER_OTLP_ENDPOINT: await closedPort(),
    });
    expect(code).toBe(0);
    expect(
      stderr.match(/warning: telemetry could not be handed on to 127\.0\.0\.1:/g),
    ).toHaveLength(1);
  });
});
