/**
 * @module
 * Reads a drill out of a file: JSON with comments and trailing commas. Whatever is wrong is
 * refused before anything is started, all of it at once, each with its path and what is allowed.
 */
import { readFileSync } from 'node:fs';
import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import type { z } from 'zod';
import { type Drill, drillSchema } from './drill-schema.ts';

/** A drill that cannot be run; the message names the file and every problem. */
export class DrillError extends Error {
  override readonly name = 'DrillError';
  readonly problems: readonly string[];

  constructor(where: string, problems: readonly string[]) {
    super([`${where} cannot be used:`, ...problems.map((problem) => `  - ${problem}`)].join('\n'));
    this.problems = problems;
  }
}

/** Says what is wrong with the configuration of a server: nothing, or each problem. */
export type CheckServer = (config: Readonly<Record<string, unknown>>) => readonly string[];

/** `expect[2].of.phase` */
const pathOf = (path: readonly PropertyKey[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');

const explain = (issue: z.core.$ZodIssue): string[] => {
  const at = pathOf(issue.path);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${pathOf([...issue.path, key])} is not known`);
  }
  // Our own texts go on from the path ("must be …"); those of zod stand for themselves.
  const told = /^[A-Z]/.test(issue.message) ? `: ${issue.message}` : ` ${issue.message}`;
  return [`${at === '' ? 'it' : at}${told}`];
};

/** Line and column of an offset, counted from 1. */
const positionOf = (content: string, offset: number): string => {
  const before = content.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
};

/** `CloseBraceExpected` as people say it. */
const inWords = (code: string): string =>
  code.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim();

/**
 * Checks a drill and fills in what is absent.
 *
 * @param name for errors
 * @throws DrillError with every problem found
 */
export const checkDrill = (value: unknown, name: string, checkServer?: CheckServer): Drill => {
  const parsed = drillSchema.safeParse(value);
  const config = (value as { server?: { config?: unknown } } | null)?.server?.config;
  const ofServer =
    checkServer && typeof config === 'object' && config !== null && !Array.isArray(config)
      ? checkServer(config as Record<string, unknown>).map((problem) => `server.config: ${problem}`)
      : [];
  const problems = [...(parsed.error?.issues.flatMap(explain) ?? []), ...ofServer];
  if (parsed.success && problems.length === 0) return parsed.data;
  throw new DrillError(name, problems);
};

/**
 * Reads a drill.
 *
 * @param name of the file, for errors
 * @throws DrillError with every problem found
 */
export const parseDrill = (content: string, name: string, checkServer?: CheckServer): Drill => {
  const errors: ParseError[] = [];
  const value: unknown = parse(content, errors, { allowTrailingComma: true });
  if (errors.length > 0) {
    throw new DrillError(
      name,
      errors.map(
        ({ error, offset }) =>
          `${inWords(printParseErrorCode(error))} at ${positionOf(content, offset)}`,
      ),
    );
  }
  return checkDrill(value, name, checkServer);
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'it may not be read',
};

/**
 * Reads a drill out of a file.
 *
 * @throws DrillError when the file cannot be read or used
 */
export const loadDrill = (file: string, checkServer?: CheckServer): Drill => {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new DrillError(file, [REASONS[code] ?? message]);
  }
  // Some editors put a byte order mark in front.
  return parseDrill(content.replace(/^\uFEFF/, ''), file, checkServer);
};
