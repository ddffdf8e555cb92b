import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verifies } from './fixtures/verifies.ts';

const root = join(import.meta.dirname, '..', 'src');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
);
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

/** Code only: examples in comments import the package by its own name. */
const importsOf = (file: string): string[] =>
  [
    ...textOf(file)
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g),
  ].map(([, specifier]) => {
    const text = specifier ?? '';
    return text.startsWith('.') ? relative(root, join(root, dirname(file), text)) : text;
  });

/** What each folder may import of ours. */
const ALLOWED: Record<string, RegExp> = {
  telemetry: /^(telemetry\/|version\.ts$)/,
  resilience: /^(resilience\/|telemetry\/(signals|instruments|bounded-code)\.ts$|version\.ts$)/,
  mcp: /^(mcp|resilience|telemetry)\/|^version\.ts$/,
  tools: /^(tools|mcp|resilience|telemetry)\/|^version\.ts$/,
  gateway: /^(gateway|mcp|resilience|telemetry)\/|^version\.ts$/,
  chaos: /^(chaos|mcp|resilience|telemetry)\/|^version\.ts$/,
};

const violations = (rule: (file: string, specifier: string) => boolean): string[] =>
  files.flatMap((file) =>
    importsOf(file)
      .filter((specifier) => rule(file, specifier))
      .map((specifier) => `${file} imports ${specifier}`),
  );

describe('architecture', () => {
  verifies('architecture.arrows', () => {
    expect(files.length).toBeGreaterThan(30);
    expect(
      violations((file, specifier) => {
        const allowed = ALLOWED[file.split('/')[0] ?? ''];
        return allowed !== undefined && /\.ts$/.test(specifier) && !allowed.test(specifier);
      }),
    ).toEqual([]);
    const sdk = /^@opentelemetry\/(?!api$)/;
    expect(
      violations((file, specifier) => sdk.test(specifier) && !file.startsWith('telemetry/')),
    ).toEqual([]);
    const mcpSdk = /^@modelcontextprotocol\//;
    expect(
      violations((file, specifier) => mcpSdk.test(specifier) && !file.startsWith('mcp/')),
    ).toEqual([]);
    const library = (file: string) => file.startsWith('resilience/');
    expect(
      violations(
        (file, specifier) =>
          library(file) && /^(?!node:|@opentelemetry\/api$)[^.]*$/.test(specifier),
      ),
    ).toEqual([]);
  });

  test('time and randomness come from clock.ts alone', () => {
    const guilty = files.filter(
      (file) =>
        file.startsWith('resilience/') &&
        file !== 'resilience/clock.ts' &&
        /Date\.now\(|Math\.random\(|performance\.now\(|setTimeout\(|setInterval\(/.test(
          textOf(file).replace(/\/\*[\s\S]*?\*\//g, ''),
        ),
    );
    expect(guilty).toEqual([]);
  });

  test('nothing is exported wholesale', () => {
    expect(files.filter((file) => /^export \*/m.test(textOf(file)))).toEqual([]);
  });
});
