/**
 * @module
 * Looks at values that anybody may have thrown. Getters that throw, proxies that refuse and
 * texts of any length end here, so that the recognisers can read as if all were well-behaved.
 */

import { redact } from './redact.ts';

/** Longest message of a failure, in UTF-16 units. */
const MAX_MESSAGE = 500;

/** What is read of a foreign text at most: redaction may shorten it, never lengthen it much. */
const MAX_READ = 4_000;

/** True for what can have properties. */
export const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

/** `value[key]`, or undefined when there is none or reading it throws. */
export const read = (value: unknown, key: PropertyKey): unknown => {
  if (!isObject(value)) return undefined;
  try {
    return (value as Record<PropertyKey, unknown>)[key];
  } catch {
    return undefined;
  }
};

/** `value[key]` if it is a string, cut to a length that is cheap to work on. */
export const readText = (value: unknown, key: PropertyKey): string | undefined => {
  const text = read(value, key);
  return typeof text === 'string' ? cut(text, MAX_READ) : undefined;
};

/** `value[key]` if it is a finite number. */
export const readNumber = (value: unknown, key: PropertyKey): number | undefined => {
  const number = read(value, key);
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
};

/** `instanceof` that a proxy cannot make throw. */
export const isA = <T>(value: unknown, type: abstract new (...args: never[]) => T): value is T => {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
};

/** Name of the error, or of its class: the errors of the MCP SDK set no name of their own. */
export const namesOf = (value: object): readonly string[] =>
  [readText(value, 'name'), readText(read(value, 'constructor'), 'name')].filter(
    (name) => name !== undefined,
  );

const cut = (text: string, length: number): string => {
  if (text.length <= length) return text;
  // Cut where a word ends, so that no half of a secret is left unrecognised at the edge.
  const edge = text.lastIndexOf(' ', length);
  return text.slice(0, edge > length * 0.8 ? edge : length);
};

/** One line of foreign text, without secrets and control characters, of bearable length. */
export const clean = (text: string, length = MAX_MESSAGE): string => {
  const line = redact(cut(text, MAX_READ))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
    .replace(/[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
    .trim();
  return (line.length <= length ? line : `${line.slice(0, length - 1)}…`).toWellFormed();
};

/** `lead: foreign text.` as one sentence, or `lead.` when there is no text. */
export const sentence = (lead: string, foreign?: string): string => {
  const text = foreign === undefined ? '' : clean(foreign, MAX_MESSAGE - lead.length - 3);
  const line = text === '' ? lead : `${lead}: ${text}`;
  return /[.!?…。！？]$/.test(line) ? line : `${line}.`;
};

/** A host name or address as others wrote it, if it is one. */
const HOST = /^[\w.:[\]-]{1,255}$/;

/**
 * The peer that the error names, as ` host:port`, or an empty string: the `address` and
 * `port` of Node's errors, the `hostname` of name resolution, the `socket` of undici's.
 */
export const peerOf = (error: unknown): string => {
  const socket = read(error, 'socket');
  for (const [source, hostKey, portKey] of [
    [error, 'address', 'port'],
    [error, 'hostname', 'port'],
    [error, 'host', 'port'],
    [socket, 'remoteAddress', 'remotePort'],
  ] as const) {
    const host = readText(source, hostKey);
    if (host === undefined || !HOST.test(host)) continue;
    const port = read(source, portKey);
    const shown = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
    return Number.isInteger(port) ? ` ${shown}:${port}` : ` ${host}`;
  }
  return '';
};
