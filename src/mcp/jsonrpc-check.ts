/**
 * @module
 * Whether a value is a message, by hand: the verdicts of the SDK's `JSONRPCMessageSchema`, which
 * builds errors for each member of its union before it finds the one that fits. Every message
 * passes here.
 */
import { RELATED_TASK_META_KEY } from '@modelcontextprotocol/sdk/types.js';

/** Any object of JSON. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True for an object that is neither null nor an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isStringOrInteger = (value: unknown): boolean =>
  typeof value === 'string' || Number.isSafeInteger(value);

/** Undefined, or what the schemas of `_meta` let through. */
const isMeta = (meta: unknown): boolean => {
  if (meta === undefined) return true;
  if (!isObject(meta)) return false;
  const { progressToken, [RELATED_TASK_META_KEY]: task } = meta;
  if (progressToken !== undefined && !isStringOrInteger(progressToken)) return false;
  return task === undefined || (isObject(task) && typeof task.taskId === 'string');
};

const isBody = (body: unknown): boolean => isObject(body) && isMeta(body._meta);

const isError = (error: unknown): boolean =>
  isObject(error) && Number.isSafeInteger(error.code) && typeof error.message === 'string';

/**
 * True for a request, a notification or a response that the SDK takes.
 *
 * @param envelope without other members than those of JSON-RPC
 */
export const isMessage = (envelope: JsonObject): boolean => {
  const { jsonrpc, id, method, params, result, error } = envelope;
  if (jsonrpc !== '2.0') return false;
  if (id !== undefined && !isStringOrInteger(id)) return false;
  if (method !== undefined) {
    if (typeof method !== 'string' || result !== undefined || error !== undefined) return false;
    return params === undefined || isBody(params);
  }
  if (params !== undefined) return false;
  if (error !== undefined) return result === undefined && isError(error);
  return id !== undefined && isBody(result);
};
