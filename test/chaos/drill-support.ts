import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DrillInput } from '../../src/chaos/drill-schema.ts';
import { temporaryFolder } from '../fixtures/command.ts';

/** What `--json` writes. */
export interface JsonReport {
  readonly verdict: string;
  readonly drills: readonly {
    readonly name: string;
    readonly verdict: string;
    readonly problem?: string;
    readonly notes: readonly string[];
    readonly expectations: readonly {
      readonly that: string;
      readonly expected: string;
      readonly measured: string;
      readonly value?: number;
      readonly pass: boolean;
    }[];
  }[];
}

export const readReport = (file: string): JsonReport =>
  JSON.parse(readFileSync(file, 'utf8')) as JsonReport;

/** A drill of two seconds that passes. */
export const shortDrill = (changes: Partial<DrillInput> = {}): DrillInput => ({
  name: 'short',
  hypothesis: 'A refused request is told as such.',
  server: {
    config: {
      tools: { get_weather: { rateLimit: false, cache: false, retry: false, breaker: false } },
    },
  },
  load: [{ tool: 'get_weather', arguments: { city: 'Springfield' }, everyMs: 50 }],
  steady: {
    seconds: 0.5,
    expect: [
      {
        that: 'calls succeed',
        measure: 'share',
        of: { source: 'calls', phase: 'steady', outcome: 'success' },
        equals: 1,
      },
    ],
  },
  fault: { seconds: 0.7 },
  recovery: { seconds: 0.5 },
  faults: [{ inject: { kind: 'status', status: 500, target: { tool: 'get_weather' } } }],
  expect: [
    {
      that: 'calls fail',
      measure: 'count',
      of: { source: 'calls', phase: 'fault', code: 'UPSTREAM_ERROR' },
      atLeast: 1,
    },
  ],
  ...changes,
});

/** The path of a file with that drill, until the test ends. */
export const drillFile = (content: string | object): string => {
  const file = join(temporaryFolder(), 'drill.jsonc');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
};

/** What is not well-formed in an XML document without namespaces, DTD and comments. */
export const xmlProblems = (xml: string): string[] => {
  const problems: string[] = [];
  const open: string[] = [];
  let roots = 0;
  const body = xml.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, '');
  if (body === xml) problems.push('no declaration');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0, section 2.2, "Characters"
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.test(xml)) problems.push('characters');
  if (!xml.isWellFormed()) problems.push('half a character');
  const tag = /<(\/?)([a-z-]+)((?: [a-z]+="[^"<]*")*)(\/?)>/g;
  const rest = body.replace(tag, (_all, closing: string, name: string, _with, empty: string) => {
    if (closing === '/') {
      if (open.pop() !== name) problems.push(`</${name}> closes nothing`);
    } else {
      if (open.length === 0) roots += 1;
      if (empty === '') open.push(name);
    }
    return '';
  });
  if (/[<>]/.test(rest)) problems.push(`stray markup: ${rest.trim().slice(0, 80)}`);
  if (/&(?!(?:amp|lt|gt|quot);)/.test(body)) problems.push('a bare &');
  if (open.length > 0) problems.push(`not closed: ${open.join(', ')}`);
  if (roots !== 1) problems.push(`${roots} root elements`);
  return problems;
};
