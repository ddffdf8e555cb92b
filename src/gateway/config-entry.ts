/**
 * @module
 * How one upstream is reached, out of an entry of `mcpServers` (Claude, Cursor, Windsurf, Gemini)
 * or `servers` (VS Code). What an entry holds beside that belongs to other programs, and is left
 * alone.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isObject } from '../resilience/settings.ts';
import type { UpstreamAddress } from './types.ts';

/** Keys of an entry that are read here; their texts may hold variables. */
export const ADDRESS_KEYS = [
  'type',
  'command',
  'args',
  'env',
  'cwd',
  'url',
  'serverUrl',
  'httpUrl',
  'headers',
] as const;

type Kind = UpstreamAddress['kind'];
type Entry = Readonly<Record<string, unknown>>;

const KINDS: Readonly<Record<string, Kind>> = {
  stdio: 'stdio',
  http: 'http',
  'streamable-http': 'http',
  streamableHttp: 'http',
  sse: 'sse',
};

const isFilled = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '';

const noNul = (value: string): boolean => !value.includes('\0');

/** An object whose values are texts. Numbers and booleans are taken for the text they look like. */
const readTexts = (value: unknown, path: string, problems: string[]): Record<string, string> => {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) {
    problems.push(`${path} must be an object of texts`);
    return {};
  }
  const texts: [string, string][] = [];
  for (const [name, text] of Object.entries(value)) {
    if (typeof text === 'string' || typeof text === 'number' || typeof text === 'boolean') {
      texts.push([name, String(text)]);
    } else {
      problems.push(`${path}.${name} must be a text`);
    }
  }
  return Object.fromEntries(texts);
};

const readEnv = (value: unknown, path: string, problems: string[]): Record<string, string> => {
  const env = readTexts(value, path, problems);
  for (const [name, text] of Object.entries(env)) {
    if (name === '' || name.includes('=') || !noNul(name)) {
      problems.push(`${path}.${name} is no name of a variable: it must not be empty or have "="`);
    }
    if (!noNul(text)) problems.push(`${path}.${name} must not have a NUL character in it`);
  }
  return env;
};

const readHeaders = (value: unknown, path: string, problems: string[]): Record<string, string> => {
  const headers = readTexts(value, path, problems);
  for (const [name, text] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, text);
    } catch {
      // Without the value: it is a credential, as a rule.
      problems.push(`${path}.${name} cannot be sent: a line break or a character beyond Latin-1`);
    }
  }
  return headers;
};

const readArgs = (value: unknown, path: string, problems: string[]): string[] => {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    problems.push(`${path} must be a list of texts`);
    return [];
  }
  return value.map((item: unknown, index) => {
    const isText = typeof item === 'string' && noNul(item);
    if (!isText && typeof item !== 'number') problems.push(`${path}.${index} must be a text`);
    return String(item);
  });
};

const readUrl = (text: string, path: string, problems: string[]): string => {
  const refuse = (why: string): string => {
    problems.push(`${path} ${why}`);
    return '';
  };
  if (!URL.canParse(text)) return refuse('must be a URL, such as https://mcp.example/mcp');
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') {
    return refuse(`must begin with http: or https:, got "${protocol.slice(0, 20)}"`);
  }
  if (username !== '' || password !== '') {
    return refuse('must not hold a user name or password; send them in headers.Authorization');
  }
  return text;
};

/** The URL of an entry, with the key that it stands under; some clients have names of their own. */
const urlOf = (entry: Entry): { readonly key: string; readonly text: string } | undefined => {
  for (const key of ['url', 'httpUrl', 'serverUrl']) {
    const text = entry[key];
    if (isFilled(text)) return { key, text: text.trim() };
  }
  return undefined;
};

/** Which transport an entry means: what it says, else what it has. */
const kindOf = (entry: Entry, path: string, problems: string[]): Kind | undefined => {
  const { type, command } = entry;
  const url = urlOf(entry);
  if (type !== undefined) {
    const kind = typeof type === 'string' && Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
    if (kind === undefined) {
      const names = ['stdio', 'http', 'streamable-http', 'sse'].map((name) => `"${name}"`);
      problems.push(`${path}.type must be one of ${names.join(', ')}`);
    }
    return kind;
  }
  if (isFilled(command) && url) {
    problems.push(`${path} has both command and ${url.key}; say with type which one is meant`);
    return undefined;
  }
  if (isFilled(command)) return 'stdio';
  if (url) {
    // The usual path of the old transport; clients try one after the other instead.
    const isOld = URL.canParse(url.text) && new URL(url.text).pathname.endsWith('/sse');
    return url.key !== 'httpUrl' && isOld ? 'sse' : 'http';
  }
  problems.push(`${path} must have a command (a program to start) or a url (a server that runs)`);
  return undefined;
};

/**
 * Where the upstream of an entry is; undefined when that cannot be said. Whatever is wrong is
 * added to `problems`.
 */
export const readAddress = (
  entry: Entry,
  path: string,
  problems: string[],
): UpstreamAddress | undefined => {
  const kind = kindOf(entry, path, problems);
  if (kind === undefined) return undefined;
  if (kind !== 'stdio') {
    const url = urlOf(entry);
    if (url === undefined) problems.push(`${path}.url must be given for type "${kind}"`);
    return {
      kind,
      url: url ? readUrl(url.text, `${path}.${url.key}`, problems) : '',
      headers: readHeaders(entry.headers, `${path}.headers`, problems),
    };
  }
  const { command, cwd } = entry;
  if (!isFilled(command) || !noNul(command)) {
    problems.push(`${path}.command must be the name or path of a program`);
  }
  if (cwd !== undefined && !(isFilled(cwd) && noNul(cwd))) {
    problems.push(`${path}.cwd must be the path of a folder`);
  }
  return {
    kind,
    command: String(command),
    args: readArgs(entry.args, `${path}.args`, problems),
    env: readEnv(entry.env, `${path}.env`, problems),
    ...(isFilled(cwd) && { cwd }),
  };
};
