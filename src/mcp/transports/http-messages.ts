/**
 * @module
 * From the JSON of a POST to messages.
 */
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { CODE, parseMessage } from '../jsonrpc.ts';
import type { Refusal } from './http-answer.ts';

/** The messages of a POST, or why they are refused. */
export type ReadMessages =
  | { readonly ok: true; readonly messages: readonly JSONRPCMessage[]; readonly batch: boolean }
  | { readonly ok: false; readonly refusal: Refusal };

const invalid = (reason: string, rest: Partial<Refusal> = {}): ReadMessages => ({
  ok: false,
  refusal: {
    status: 400,
    code: CODE.invalidRequest,
    message: `Invalid Request: ${reason}`,
    ...rest,
  },
});

/** Reads the parsed body of a POST; `undefined` stands for a body that was no JSON. */
export const readMessages = (body: unknown, maxBatch: number): ReadMessages => {
  if (body === undefined) {
    return invalid('', {
      code: CODE.parseError,
      message: 'Parse error: the body must be JSON in UTF-8',
    });
  }
  const batch = Array.isArray(body);
  const values: readonly unknown[] = batch ? body : [body];
  if (values.length === 0) return invalid('a batch must hold at least one message');
  if (values.length > maxBatch) {
    return invalid(`a batch may hold ${maxBatch} messages; send the rest in another`);
  }
  const messages: JSONRPCMessage[] = [];
  for (const value of values) {
    const parsed = parseMessage(value);
    if (!parsed.ok) return invalid(parsed.reason, { id: parsed.id, code: parsed.code });
    messages.push(parsed.message);
  }
  return { ok: true, messages, batch };
};
