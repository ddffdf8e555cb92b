/**
 * @module
 * Reads a configuration file: JSON with comments, trailing commas and a byte order mark, as
 * editors and clients write it. Syntax errors are told with line and column.
 */
import { readFileSync } from 'node:fs';
import { type ParseError, parse, printParseErrorCode, visit } from 'jsonc-parser';
import { isObject } from '../resilience/settings.ts';

/** A configuration that cannot be used; the message names where it stands and every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(where: string, problems: readonly string[]) {
    super([`${where} cannot be used:`, ...problems.map((problem) => `  - ${problem}`)].join('\n'));
    this.problems = problems;
  }
}

const SYNTAX = { allowTrailingComma: true };

/** Line and column of an offset, counted from 1. */
const positionOf = (text: string, offset: number): string => {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
};

/** `CloseBraceExpected` as people say it. */
const inWords = (code: string): string =>
  code.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim();

/**
 * The object that a text holds.
 *
 * @param name of the file, for errors
 * @throws ConfigError with every syntax error, or when it holds no object
 */
export const parseObject = (text: string, name: string): Record<string, unknown> => {
  const errors: ParseError[] = [];
  // Some editors put a byte order mark in front.
  const source = text.replace(/^\uFEFF/, '');
  const value: unknown = parse(source, errors, SYNTAX);
  const problems = errors.map(
    ({ error, offset }) =>
      `${inWords(printParseErrorCode(error))} at ${positionOf(source, offset)}`,
  );
  if (problems.length > 0) throw new ConfigError(name, problems);
  if (!isObject(value)) throw new ConfigError(name, ['it must be a JSON object']);
  return value;
};

/**
 * Keys that are given twice, of which only the last would count, and those that would be none:
 * they set the prototype.
 *
 * @param wanted whether a key is looked at, by its path. Default: all are.
 */
export const oddKeys = (
  text: string,
  wanted: (path: readonly string[]) => boolean = () => true,
): string[] => {
  const source = text.replace(/^\uFEFF/, '');
  const seen = new Set<string>();
  const problems: string[] = [];
  visit(
    source,
    {
      onObjectProperty: (property, offset, _length, _line, _column, pathOf) => {
        const path = [...pathOf(), property].map(String);
        if (!wanted(path)) return;
        const shown = path.join('.');
        // Names may have dots in them, so that the joined path is not what tells them apart.
        const identity = JSON.stringify(path);
        if (property === '__proto__') problems.push(`${shown} is not known`);
        if (seen.has(identity)) {
          problems.push(`${shown} is given again at ${positionOf(source, offset)}`);
        }
        seen.add(identity);
      },
    },
    SYNTAX,
  );
  return problems;
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'it may not be read',
};

/**
 * The text of a file.
 *
 * @throws ConfigError when it cannot be read
 */
export const readText = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new ConfigError(file, [REASONS[code] ?? message]);
  }
};
