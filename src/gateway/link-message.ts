/**
 * @module
 * Messages as links read them. Only what tells a message from other JSON is looked at: whatever
 * else is in it belongs to those who asked.
 */
import type { JSONRPCMessage, RequestId } from '../mcp/jsonrpc.ts';

/**
 * Takes what an upstream sent that cannot be used.
 *
 * @param kind told apart from others by whoever reports each only once
 * @param text "sent …", for people
 */
export type Report = (kind: 'no-message' | 'too-long', text: string) => void;

/** The message that a value is, or undefined when it is none. */
const toMessage = (value: unknown): JSONRPCMessage | undefined => {
  if (typeof value !== 'object' || value === null) return undefined;
  const { jsonrpc, method, id, result, error } = value as Record<string, unknown>;
  if (jsonrpc !== '2.0') return undefined;
  const known =
    typeof method === 'string' ||
    (id !== undefined && (result !== undefined || (typeof error === 'object' && error !== null)));
  return known ? (value as JSONRPCMessage) : undefined;
};

/**
 * The messages in a text: one, or a batch as 2025-03-26 knew it. Undefined when it is no JSON,
 * or anything in it is no message.
 */
export const parseMessages = (text: string): readonly JSONRPCMessage[] | undefined => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  const messages = values.map(toMessage);
  return messages.every((message) => message !== undefined) ? messages : undefined;
};

/** Id of the request that a message is; undefined for a notification and an answer. */
export const requestId = (message: JSONRPCMessage): RequestId | undefined =>
  'method' in message && 'id' in message ? message.id : undefined;

/** Id of the request that a message answers; undefined for a request and a notification. */
export const answeredId = (message: JSONRPCMessage): RequestId | undefined =>
  'method' in message ? undefined : message.id;

const ID = String.raw`"id"\s*:\s*(-?\d{1,15}|"(?:[^"\\]|\\.)*")`;
const VERSION = String.raw`"jsonrpc"\s*:\s*"2\.0"`;
const FIRST = new RegExp(`^\\s*\\{\\s*(?:${VERSION}\\s*,\\s*)?${ID}\\s*,(?!\\s*"method")`);
const LAST = new RegExp(`,\\s*${ID}\\s*(?:,\\s*${VERSION}\\s*)?\\}\\s*$`);

/**
 * Id in a message of which only the beginning and the end were kept, where it stands at either:
 * so do all implementations write it. What begins like a request of the other side has none.
 */
export const idOfCut = (head: string, tail: string): RequestId | undefined => {
  const found = FIRST.exec(head) ?? LAST.exec(tail);
  const text = found?.[1];
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as RequestId;
  } catch {
    return undefined;
  }
};
