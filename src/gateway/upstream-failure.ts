/**
 * @module
 * What goes wrong on the way to an upstream, as failures that name it, say what happened to it,
 * and carry no secret.
 */
import type { JsonRpcError } from '../mcp/jsonrpc.ts';
import { classify, createFailure, type Failure, ResilienceError } from '../resilience/failure.ts';
import { sentence } from '../resilience/inspect.ts';
import { masked } from './config-secrets.ts';
import type { LinkEnd, LinkFailure, UpstreamConfig } from './types.ts';

/** The part of the configuration that failures are made from. */
export type Named = Pick<UpstreamConfig, 'name' | 'secrets'>;

/** True for what links reject with. */
export const isLinkFailure = (error: unknown): error is LinkFailure =>
  error instanceof Error &&
  'delivery' in error &&
  (error.delivery === 'not-sent' || error.delivery === 'lost');

/** "exited with code 1" reads twice where "exited" has been said already. */
const howItEnded = ({ kind, reason }: LinkEnd): string => {
  if (kind === 'exited') return `exited (${reason.replace(/^exited (?:with )?/, '')})`;
  if (kind === 'session') return `no longer knows the session (${reason})`;
  if (kind === 'lost') return `lost the connection (${reason})`;
  return `was closed (${reason})`;
};

/**
 * The failure of a request whose link has come to its end, and of a connection that ended.
 *
 * @param delivery `lost` when the upstream may have executed the request
 */
export const endedError = (
  { name, secrets }: Named,
  end: LinkEnd,
  delivery: 'lost' | 'not_sent' = 'lost',
): ResilienceError => {
  const lead = masked(`upstream "${name}" ${howItEnded(end)}`, secrets);
  const words = end.lastWords?.trim();
  const message = words ? sentence(`${lead}; its last words`, masked(words, secrets)) : lead;
  return new ResilienceError(createFailure('UPSTREAM_UNAVAILABLE', { message, delivery }));
};

/**
 * Whether the upstream has forgotten the session that the request named. Many servers say so with
 * HTTP 400 and a text of their own ("No valid session ID provided") in place of the 404 that the
 * specification asks for (2025-11-25, basic/transports, "Session Management").
 */
export const isSessionLost = (error: unknown, sessionId: string | undefined): boolean =>
  isLinkFailure(error) &&
  (error.sessionLost === true ||
    (sessionId !== undefined && error.status === 400 && /session/i.test(error.message)));

const SESSION_REFUSED =
  /session (?:not found|expired|terminated|closed)|(?:no valid|invalid|unknown) session|not initialized/i;
const SESSION_CODES: ReadonlySet<number> = new Set([-32600, -32000, -32001]);

/**
 * JSON-RPC errors by which a server refuses a session that it does not know (IBM
 * mcp-context-forge#6685). Only -32600 says for certain that the request was not even dispatched.
 */
export const refusesSession = ({ code, message }: JsonRpcError): boolean =>
  SESSION_CODES.has(code) && SESSION_REFUSED.test(message);

/** Nothing got as far as the upstream, and nothing will before it, or the way to it, is back. */
export const isUnreachable = (error: unknown): boolean => {
  if (!isLinkFailure(error) || error.delivery !== 'not-sent') return false;
  return error.status === undefined && classify(error).source === 'network';
};

/** HTTP statuses of a gateway on the way: what stands behind it may have done the work. */
const AMBIGUOUS: ReadonlySet<number> = new Set([408, 502, 504]);

/** What `classify` makes of it, with what the link knows for certain. */
const judged = (error: unknown, wallTime: () => number): Failure => {
  const failure = classify(error, { wallTime });
  if (!isLinkFailure(error)) return failure;
  const { delivery, status } = error;
  if (delivery === 'not-sent') {
    const refused = failure.delivery === 'refused' || status !== undefined;
    return { ...failure, delivery: refused ? 'refused' : 'not_sent' };
  }
  const answered = failure.delivery === 'answered' && !AMBIGUOUS.has(status ?? 0);
  return { ...failure, delivery: answered ? 'answered' : 'lost' };
};

/**
 * Whatever the connection threw, as an error whose failure names the upstream. Errors of ours pass
 * as they are.
 */
export const upstreamError = (
  { name, secrets }: Named,
  error: unknown,
  wallTime: () => number = Date.now,
): ResilienceError => {
  if (error instanceof ResilienceError && !isLinkFailure(error)) return error;
  const failure = judged(error, wallTime);
  const message = sentence(`upstream "${name}"`, masked(failure.message, secrets));
  return new ResilienceError({ ...failure, message, cause: error });
};

/** There is no connection, and the next try to make one is too far off to wait for it. */
export const unavailableError = (
  { name }: Named,
  last: Failure | undefined,
  retryAfter: number,
): ResilienceError => {
  const why = last ? `: ${last.message}` : '.';
  const message = `upstream "${name}" is down, and tried again in ${Math.ceil(retryAfter)} s${why}`;
  const details = { message, retryAfter, delivery: 'not_sent', cause: last?.cause } as const;
  return new ResilienceError(createFailure('UPSTREAM_UNAVAILABLE', details));
};

/** It did not answer to `initialize` in time, or its child was not up in time. */
export const connectTimeoutError = ({ name }: Named, timeout: number): ResilienceError => {
  const message = `upstream "${name}" was not ready within its connect timeout of ${timeout} ms.`;
  return new ResilienceError(createFailure('CONNECT_TIMEOUT', { message }));
};

/** What was asked of it is not what MCP servers answer. */
export const invalidAnswerError = ({ name, secrets }: Named, problem: string): ResilienceError => {
  const message = sentence(`upstream "${name}" cannot be used`, masked(problem, secrets));
  return new ResilienceError(createFailure('UPSTREAM_INVALID_RESPONSE', { message }));
};

/** The session is at its end, or its upstream is no longer configured so. */
export const closedError = ({ name }: Named): ResilienceError => {
  const message = `the session with upstream "${name}" was closed.`;
  const details = { message, delivery: 'not_sent', retryable: false } as const;
  return new ResilienceError(createFailure('UPSTREAM_UNAVAILABLE', details));
};

/**
 * Tells of a lost answer what the pipeline, which knows no upstreams, could not: what was asked,
 * and what became of the upstream. A request that was never handed to the link has not been
 * executed either, whatever ended it.
 */
export const lostAnswerError = (
  { name }: Named,
  what: string,
  error: ResilienceError,
  handed: boolean,
): ResilienceError => {
  if (error.code !== 'OUTCOME_UNKNOWN' || !(error.cause instanceof ResilienceError)) return error;
  const { failure } = error.cause;
  if (!handed) {
    return new ResilienceError({ ...failure, delivery: 'not_sent', retryable: true });
  }
  const message = `the answer of upstream "${name}" to ${what} was lost, and it may have been executed: ${failure.message}`;
  return new ResilienceError(createFailure('OUTCOME_UNKNOWN', { message, cause: error.cause }));
};
