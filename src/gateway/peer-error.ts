/**
 * @module
 * What an upstream is told when the client could not answer its question.
 */
import { CODE, JsonRpcError } from '../mcp/jsonrpc.ts';
import { classify, FAILURE_KEY, failureToJSON } from '../resilience/failure.ts';
import type { Json } from './types.ts';

/** The `error` of a JSON-RPC response: as the client gave it, or the failure behind it. */
export const serverError = (error: unknown): Json => {
  if (error instanceof JsonRpcError) {
    const { code, message, data } = error;
    return { code, message, ...(data !== undefined && { data }) };
  }
  const failure = classify(error);
  const data = { [FAILURE_KEY]: failureToJSON(failure) };
  return { code: CODE.internalError, message: failure.message, data };
};
