/**
 * @module
 * `npm run size`: what `import { createPipeline } from 'mcp-resilience'` adds to a bundle, and
 * which parts of it. Exits with 1 when it has grown beyond `CEILING`, or when something is in
 * it that only other exports need. With `--strict` it exits with 1 while the target is missed.
 */
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** What was promised, in kB of 1 000 bytes. */
export const TARGET = 12;

/** What it is now, with a little room: lower it whenever the size falls. */
const CEILING = 26.5;

/** What an import of `createPipeline` must not load. */
const FOREIGN = /src\/(?:mcp|tools|gateway|chaos)\/|describe\.ts|texts-zh|presets|node_modules/;

/** The parts, by what they are for; a file belongs to the first that matches. */
const PARTS: readonly (readonly [string, RegExp])[] = [
  ['texts of failures', /resilience\/texts/],
  [
    'failures: recognising and describing them',
    /resilience\/(?:failure(?!-window)|revive|redact|inspect|retry-after)/,
  ],
  ['names, units and descriptions of the telemetry', /telemetry\/(?:signals|semconv)/],
  ['settings: rules, checks, defaults', /resilience\/(?:settings|policy)\.ts/],
  ['circuit breaker', /resilience\/(?:circuit-breaker|failure-window)/],
  [
    'bulkhead and rate limiter',
    /resilience\/(?:bulkhead|adaptive-limit|rate-limiter|token-bucket|wait-queue|run-in-place|decisions)/,
  ],
  ['cache and single flight', /resilience\/(?:cache|single-flight|lru-map)/],
  ['retry, hedge, timeout, deadline', /resilience\/(?:retry|backoff|hedge|timeout|deadline|clock)/],
  ['the pipeline itself', /./],
];

/** Sizes in bytes. */
export interface Size {
  readonly gzipped: number;
  readonly minified: number;
  /** Minified bytes by part. */
  readonly parts: ReadonlyMap<string, number>;
  /** Files that should not be in it. */
  readonly foreign: readonly string[];
}

/** Bundles, minifies and compresses one import, without the OpenTelemetry API. */
export const sizeOf = async (code: string): Promise<Size> => {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: `${import.meta.dirname}/..`, loader: 'ts' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    external: ['@opentelemetry/api'],
    write: false,
    metafile: true,
  });
  const parts = new Map<string, number>();
  const foreign: string[] = [];
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      if (bytesInOutput === 0) continue;
      const [part = 'rest'] = PARTS.find(([, files]) => files.test(file)) ?? [];
      parts.set(part, (parts.get(part) ?? 0) + bytesInOutput);
      if (FOREIGN.test(file)) foreign.push(file);
    }
  }
  const contents = outputFiles[0]?.contents ?? new Uint8Array();
  const gzipped = gzipSync(contents, { level: 9 }).length;
  return { gzipped, minified: contents.length, parts, foreign };
};

/** What is promised of: one import, as a user writes it. */
export const pipelineSize = (): Promise<Size> =>
  sizeOf("export { createPipeline } from './src/index.ts'");

const kB = (bytes: number): string => `${(bytes / 1_000).toFixed(1)} kB`;

const main = async (): Promise<void> => {
  const { values } = parseArgs({ options: { strict: { type: 'boolean', default: false } } });
  const { gzipped, minified, parts, foreign } = await pipelineSize();
  const met = gzipped < TARGET * 1_000;
  const say = (line: string) => process.stdout.write(`${line}\n`);
  say(`import { createPipeline }: ${kB(gzipped)} gzipped, ${kB(minified)} minified`);
  say(
    `target: under ${TARGET} kB gzipped: ${met ? 'PASS' : 'FALLS SHORT'}, held below ${CEILING} kB (why: docs/benchmarks.md)`,
  );
  for (const [part, bytes] of [...parts].sort(([, a], [, b]) => b - a)) {
    say(`${kB(bytes).padStart(10)} minified  ${part}`);
  }
  if (foreign.length > 0) console.error(`should not be in it: ${foreign.join(', ')}`);
  const grown = gzipped >= CEILING * 1_000;
  if (grown) console.error(`it has grown beyond ${CEILING} kB gzipped`);
  if (foreign.length > 0 || grown || (values.strict && !met)) process.exitCode = 1;
};

if (import.meta.main) await main();
