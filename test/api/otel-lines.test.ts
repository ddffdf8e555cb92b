/**
 * The library beside the OpenTelemetry of whoever uses it: line 2.x with API 1.9, line 3.x with
 * API 1.10, and none at all. Packed, installed into fresh projects as a user does it, and run.
 *
 * Our command brings SDK 3.x along, whose peer is API 1.10. In a project with API 1.9 npm must
 * not give us a second copy: a library that talks to a newer API than the SDK has registered
 * talks to nobody.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inFolder } from '../fixtures/npm.ts';
import { root } from './public.ts';

/** Makes calls that succeed, are retried and are refused, inside of a span if there is an SDK. */
const CALLS = `
import { createPipeline } from 'mcp-resilience';
export const makeCalls = async () => {
  const pipeline = createPipeline('dependency', {
    timeout: 1_000,
    bulkhead: { limit: 2 },
    breaker: { threshold: 1, openDuration: 60_000 },
    retry: { maxRetries: 1, baseDelay: 0 },
  });
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
  let failures = 1;
  const work = async () => {
    if (failures-- > 0) throw reset;
    return 'answer';
  };
  const answer = await pipeline.execute(work);
  failures = 2;
  const error = await pipeline.execute(work).catch((thrown) => thrown.message);
  const code = await pipeline.execute(work).catch((thrown) => thrown.code);
  return { answer, error, code };
};
`;

const NO_SDK = `
import { makeCalls } from './calls.js';
console.log(JSON.stringify(await makeCalls()));
`;

const withSdk = (imports: string, tracerProvider: string): string => `
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
${imports}
import { makeCalls } from './calls.js';

class PullReader extends MetricReader { async onForceFlush() {} async onShutdown() {} }
const reader = new PullReader();
const exporter = new InMemorySpanExporter();
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
trace.setGlobalTracerProvider(${tracerProvider});

const said = await trace.getTracer('app').startActiveSpan('call', async (span) => {
  const result = await makeCalls();
  span.end();
  return result;
});
const { resourceMetrics } = await reader.collect();
const points = {};
for (const { scope, metrics } of resourceMetrics.scopeMetrics) {
  for (const { descriptor, dataPoints } of metrics) {
    points[scope.name + ' ' + descriptor.name] = Object.fromEntries(
      dataPoints.map(({ attributes, value }) => [attributes.outcome ?? attributes.state ?? attributes.to, value]),
    );
  }
}
const spans = exporter.getFinishedSpans();
const events = spans.find(({ name }) => name === 'call').events.map(({ name }) => name);
console.log(JSON.stringify({ ...said, points, events, spans: spans.map(({ name }) => name) }));
`;

const LINES = {
  '2.x': {
    packages: [
      '@opentelemetry/api@1.9.1',
      '@opentelemetry/context-async-hooks@2.12.1',
      '@opentelemetry/sdk-metrics@2.12.1',
      '@opentelemetry/sdk-trace-base@2.12.1',
    ],
    program: withSdk(
      "import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';",
      'new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })',
    ),
    api: '1.9.1',
  },
  '3.x': {
    packages: [
      '@opentelemetry/api@1.10.0',
      '@opentelemetry/context-async-hooks@3.0.0',
      '@opentelemetry/sdk-metrics@3.0.0',
      '@opentelemetry/sdk-trace@3.0.0',
    ],
    program: withSdk(
      "import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';",
      'new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })',
    ),
    api: '1.10.0',
  },
} as const;

const ANSWERS = { answer: 'answer', error: 'reset', code: 'CIRCUIT_OPEN' };

let folder = '';
let tarball = '';

/** Packs what the compiler makes of `src/`, beside the `dist/` that other tests build. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-resilience-lines-'));
  const staged = join(folder, 'package');
  await mkdir(staged);
  const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
  const tsc = join(dirname(typescript), 'bin', 'tsc');
  const settings = ['-p', 'tsconfig.build.json', '--outDir', join(staged, 'dist')];
  await inFolder(root, process.execPath, [tsc, ...settings]);
  await cp(join(root, 'package.json'), join(staged, 'package.json'));
  const [packed] = JSON.parse(
    await inFolder(staged, 'npm', ['pack', '--json', '--ignore-scripts']),
  );
  tarball = join(staged, packed.filename);
}, 120_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

const newProject = async (): Promise<string> => {
  const project = await mkdtemp(join(folder, 'project-'));
  await writeFile(join(project, 'package.json'), '{"private": true, "type": "module"}');
  await writeFile(join(project, 'calls.js'), CALLS);
  return project;
};

// None of these decides which packages are installed.
const QUIETLY = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];

const install = (project: string, packages: readonly string[]): Promise<string> =>
  inFolder(project, 'npm', ['install', ...QUIETLY, ...packages]);

const run = async (project: string, program: string): Promise<unknown> => {
  await writeFile(join(project, 'program.js'), program);
  return JSON.parse(await inFolder(project, process.execPath, ['program.js']));
};

/** Version of every copy of the API that the project has. */
const apiCopies = async (project: string): Promise<string[]> => {
  const entries = await readdir(join(project, 'node_modules'), { recursive: true });
  const copies = entries.filter((path) => /@opentelemetry\/api\/package\.json$/.test(path));
  return Promise.all(
    copies.map(async (path) => {
      const manifest = await readFile(join(project, 'node_modules', path), 'utf8');
      return JSON.parse(manifest).version;
    }),
  );
};

const expectSignals = (said: unknown): void => {
  expect(said).toMatchObject({
    ...ANSWERS,
    points: {
      'mcp-resilience resilience.circuit_breaker.calls': { success: 1, failure: 1, rejected: 1 },
      'mcp-resilience resilience.circuit_breaker.state': { closed: 0, open: 1 },
      'mcp-resilience resilience.circuit_breaker.transitions': { open: 1 },
      'mcp-resilience resilience.bulkhead.decisions': { accepted: 3 },
      'mcp-resilience resilience.retry.attempts': { success: 1, failure: 1 },
    },
    events: [
      'resilience.retry.scheduled',
      'resilience.retry.scheduled',
      'resilience.circuit_breaker.state_changed',
      'resilience.circuit_breaker.rejected',
    ],
    spans: ['attempt 2', 'attempt 2', 'call'],
  });
};

// The limits are bounds against a registry that hangs, no measurements.
describe('the packed library', () => {
  test('signals arrive in an SDK of line 2.x, whose API is the only copy', async () => {
    const { packages, program, api } = LINES['2.x'];
    const project = await newProject();
    await install(project, [...packages, tarball]);
    expect(await apiCopies(project)).toEqual([api]);
    expectSignals(await run(project, program));
  }, 280_000);

  test('works without an SDK; signals arrive in one of line 3.x that is added', async () => {
    const { packages, program, api } = LINES['3.x'];
    const project = await newProject();
    await install(project, [tarball]);
    expect(await run(project, NO_SDK)).toEqual(ANSWERS);
    await install(project, packages);
    expect(await apiCopies(project)).toEqual([api]);
    expectSignals(await run(project, program));
  }, 280_000);
});
