/**
 * @module
 * What counts against the error budget. otel/rules.yaml says the same; a test compares them.
 */
import { failureCodes, failureProfiles } from '../src/resilience/failure-codes.ts';
import { ERROR_TYPE_TOOL_ERROR } from '../src/telemetry/semconv.ts';

/**
 * Codes of JSON-RPC that say that the caller was wrong or has something to do first, which is
 * no failure of the service.
 */
const CALLER_CODES = ['-32700', '-32600', '-32601', '-32602', '-32002', '-32042'];

/** Weight `caller`, and yet what an operator has to mend: credentials, and defects. */
const OURS_TO_MEND: readonly string[] = ['AUTH_FAILED', 'INTERNAL_ERROR'];

/**
 * Values of `error.type` that are the caller's to mend, or the tool speaking: wrong arguments,
 * a name that does not exist, a tool that reports an error. A model that guesses wrong shall
 * not page anybody.
 */
export const NOT_OUR_FAULT: readonly string[] = [
  ...failureCodes.filter(
    (code) => failureProfiles[code].weight === 'caller' && !OURS_TO_MEND.includes(code),
  ),
  ERROR_TYPE_TOOL_ERROR,
  ...CALLER_CODES,
];
