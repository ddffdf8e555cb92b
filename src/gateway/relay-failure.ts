/**
 * @module
 * What a client gets for a request that failed: an error of the upstream's own as it came, a
 * failed tool call as a result that a model can act on, anything else as a JSON-RPC error whose
 * data holds the structured failure.
 */
import { CODE, JsonRpcError } from '../mcp/jsonrpc.ts';
import { META_FAILURE } from '../mcp/meta.ts';
import { failureResult } from '../mcp/protected-result.ts';
import {
  classify,
  createFailure,
  type Failure,
  failureToJSON,
  ResilienceError,
} from '../resilience/failure.ts';
import type { Json } from './types.ts';

/** The failure of whatever was thrown. */
const failureOf = (error: unknown): Failure =>
  error instanceof ResilienceError ? error.failure : classify(error);

/** An error response with a structured failure in it. */
export const refusal = (
  code: number,
  failure: Parameters<typeof createFailure>[0],
  message: string,
  suggestion?: string,
): JsonRpcError =>
  new JsonRpcError(code, message, {
    [META_FAILURE]: failureToJSON(createFailure(failure, { message, suggestion })),
  });

/** A failure as the error of a request that is no tool call. */
export const failureError = (failure: Failure): JsonRpcError =>
  new JsonRpcError(
    failure.code === 'METHOD_NOT_FOUND' ? CODE.methodNotFound : CODE.internalError,
    failure.message,
    { [META_FAILURE]: failureToJSON(failure) },
  );

/** The result of a tool call that failed, unless the upstream itself answered with an error. */
export const toolFailure = (error: unknown): Json => {
  if (error instanceof JsonRpcError) throw error;
  return failureResult(failureOf(error));
};

/** The `error` of a response. */
export const errorOf = (
  error: unknown,
): { readonly code: number; readonly message: string; readonly data?: unknown } => {
  const { code, message, data } =
    error instanceof JsonRpcError ? error : failureError(failureOf(error));
  return { code, message, ...(data !== undefined && { data }) };
};
