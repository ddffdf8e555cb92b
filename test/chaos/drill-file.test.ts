import { describe, expect, test } from 'vitest';
import { DrillError, parseDrill } from '../../src/chaos/drill-file.ts';
import type { DrillInput } from '../../src/chaos/drill-schema.ts';
import { dataDrills } from '../../src/chaos/drills/index.ts';
import { runCommand } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { drillFile, shortDrill } from './drill-support.ts';

const problemsOf = (value: unknown): readonly string[] => {
  try {
    parseDrill(typeof value === 'string' ? value : JSON.stringify(value), 'drill.json');
  } catch (error) {
    if (error instanceof DrillError) return error.problems;
    throw error;
  }
  return [];
};

/** A drill with one expectation of those settings. */
const expecting = (expectation: object): unknown => ({
  ...shortDrill(),
  expect: [{ that: 'x', measure: 'count', of: { source: 'calls' }, atMost: 1, ...expectation }],
});

describe('a drill file', () => {
  test('may have comments, trailing commas and a byte order mark, and gets its defaults', async () => {
    const text = `\uFEFF// a drill\n${JSON.stringify(shortDrill()).slice(0, -1)},}`;
    const drill = parseDrill(text.slice(1), 'drill.jsonc');
    expect(drill.load[0]).toMatchObject({ agents: 1, retries: 0, timeoutMs: 10_000 });
    expect(drill.faults[0]).toMatchObject({ at: 0 });
    // What is injected is passed on as it is written.
    expect(drill.faults[0]?.inject).toEqual(shortDrill().faults[0]?.inject);
    expect(drill.server.upstreamMs).toBe(10);
    const { code, stdout } = await runCommand(['drill', '--list', '--file', drillFile(text)]);
    expect([code, stdout]).toEqual([0, 'short: A refused request is told as such.\n']);
  });

  test('may hold any of the built-in drills of data', () => {
    for (const drill of dataDrills) expect(problemsOf(drill)).toEqual([]);
    expect(dataDrills).toHaveLength(9);
  });

  verifies('drill.file-refused', async () => {
    const wrong = {
      name: 'Wrong Name',
      server: { config: { tools: { get_weather: { retry: { maxRetries: 99 } }, nothing: {} } } },
      load: [{ tool: 'get_weather', agents: 0, everyMs: '100' }],
      steady: { seconds: 1, expect: [] },
      fault: { seconds: 0 },
      recovery: {},
      faults: [{ inject: { kind: 'earthquake', target: {} } }, {}],
      expect: [
        { that: '', measure: 'longest', of: { source: 'events', name: 'x' }, atMost: 1 },
        { that: 'x', measure: 'count', of: { source: 'calls', outcome: 'sucess' } },
        { that: 'x', measure: 'count', of: { source: 'nowhere' }, atMost: 1 },
      ],
      extra: true,
    };
    const { code, stdout, stderr } = await runCommand(['drill', '--file', drillFile(wrong)]);
    expect([code, stdout]).toEqual([2, '']);
    const problems = stderr.split('\n').filter((line) => line.startsWith('  - '));
    for (const expected of [
      'name must be of lower-case letters, digits and hyphens',
      'hypothesis must be the hypothesis, in words',
      'server.config: tools.get_weather.retry.maxRetries must be a whole number from 0 to 10, got 99',
      'server.config: tools.nothing is no tool with policies; there are get_weather, search',
      'load[0].agents must be a whole number from 1 to 100',
      'load[0].everyMs must be a whole number from 10 to 60000',
      'steady.expect must be a list of at least 1 expectation: what is normal',
      'fault.seconds must be a number from 0.5 to 600 (seconds)',
      'recovery.seconds must be a number from 0.5 to 600 (seconds)',
      'faults[1] must have either inject or collector',
      'expect[0].that must be what is expected, in words',
      'expect[1].of.outcome must be one of success, degraded, cached, error, rejected, lost, or a list of them',
      'expect[2].of.source must have a source: one of calls, spans, events, metric, upstream, exit',
      'extra is not known',
    ]) {
      expect(problems).toContain(`  - ${expected}`);
    }
    expect(problems.filter((line) => line.includes('faults[0].inject.kind'))).toHaveLength(1);
    expect(problems.filter((line) => line.includes('faults[0].inject.target'))).toHaveLength(1);
  });

  test('that is no JSON is refused with the place', () => {
    expect(problemsOf('{\n  "name": "x"\n  "load": []\n}')).toEqual([
      'comma expected at line 3, column 3',
    ]);
    expect(problemsOf('[]')).toEqual(['it must be a JSON object']);
    expect(problemsOf('null')).toEqual(['it must be a JSON object']);
  });

  test('is refused where its parts do not fit each other', () => {
    const [load] = shortDrill().load;
    const twice: unknown = { ...shortDrill(), load: [load, load] };
    expect(problemsOf(twice)).toEqual([
      'load[1].name "get_weather" is taken; give each load a name of its own',
    ]);
    const [fault] = shortDrill().faults;
    const late: unknown = {
      ...shortDrill(),
      faults: [
        { ...fault, until: 2 },
        { ...fault, at: 1 },
      ],
    };
    expect(problemsOf(late)).toEqual([
      'faults[0].until must be at most 0.7: the phase ends',
      'faults[1].at must be less than 0.7',
    ]);
    const steady = shortDrill().steady.expect[0];
    const elsewhere: unknown = {
      ...shortDrill(),
      steady: {
        seconds: 1,
        expect: [{ ...steady, of: { source: 'events', name: 'x' }, measure: 'count' }],
      },
    };
    expect(problemsOf(elsewhere)).toEqual([
      'steady.expect[0].of must be of the source "calls" and the phase "steady"',
    ]);
  });

  test.each<[object, string]>([
    [
      { measure: 'total' },
      'expect[0].measure of calls must be one of count, share, p50, p95, p99, longest, first, last',
    ],
    [
      { measure: 'average' },
      'expect[0].measure must be one of count, share, p50, p95, p99, longest, first, last, shortestGap, total, highest, code, seconds',
    ],
    [{ atMost: undefined }, 'expect[0] must have a bound: equals, atLeast or atMost'],
    [
      { measure: 'first' },
      'expect[0].of.phase must be given for first, which counts from its beginning',
    ],
    [{ comparedTo: 'steady' }, 'expect[0].of.phase must be given for comparedTo'],
    [
      { measure: 'p50', per: { source: 'calls' } },
      'expect[0].per divides one count by another: it needs the measure count, on both sides',
    ],
    [
      { per: { source: 'exit' } },
      'expect[0].per divides one count by another: it needs the measure count, on both sides',
    ],
    [
      { of: { source: 'calls', load: 'none' } },
      'expect[0].of.load must be the name of a load: get_weather',
    ],
    [
      { per: { source: 'calls', load: 'none' } },
      'expect[0].per.load must be the name of a load: get_weather',
    ],
    [
      { of: { source: 'calls', phase: 'before' } },
      'expect[0].of.phase must be one of steady, fault, recovery',
    ],
    [{ of: { source: 'calls', faze: 'fault' } }, 'expect[0].of.faze is not known'],
  ])('an expectation with %j is refused', (expectation, problem) => {
    expect(problemsOf(expecting(expectation))).toEqual([problem]);
  });

  test('a fault is checked as inject_fault would do it', () => {
    const of = (inject: object): readonly string[] =>
      problemsOf({ ...shortDrill(), faults: [{ inject }] } as DrillInput);
    expect(of({ kind: 'latency', target: { tool: 'search' } })).toEqual([
      'faults[0].inject.latency is needed for the kind latency, such as { "delayMs": 500 }',
    ]);
    expect(of({ kind: 'hang', target: { tool: 'search' }, ttlSeconds: 10_000 })).toHaveLength(1);
    expect(of({ kind: 'hang', target: { tool: 'search' }, percent: 50, seed: 1 })).toEqual([]);
  });
});
