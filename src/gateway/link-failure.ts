/**
 * @module
 * What went wrong between us and an upstream, as an error that `classify` understands and that
 * says whether the upstream may have seen the message.
 */
import {
  classify,
  createFailure,
  type Failure,
  type FailureDetails,
  ResilienceError,
} from '../resilience/failure.ts';
import { saysSessionLost, sessionLost } from '../resilience/failure-http.ts';
import type { HttpResponse } from './http-response.ts';
import type { LinkFailure } from './types.ts';

/** Details of a `LinkError` that stand beside its failure. */
export interface LinkErrorDetails {
  readonly status?: number;
  readonly headers?: Headers;
  readonly sessionLost?: boolean;
}

/**
 * The error of every link. Its `failure` is finer than its `delivery`: `answered` there means
 * that the upstream did answer, with what is of no use.
 */
export class LinkError extends ResilienceError implements LinkFailure {
  override readonly name = 'LinkError';
  readonly delivery: LinkFailure['delivery'];
  readonly status?: number;
  readonly headers?: Headers;
  readonly sessionLost?: boolean;

  constructor(failure: Failure, details: LinkErrorDetails = {}) {
    super(failure);
    const unseen = failure.delivery === 'not_sent' || failure.delivery === 'refused';
    this.delivery = unseen ? 'not-sent' : 'lost';
    if (details.status !== undefined) this.status = details.status;
    if (details.headers !== undefined) this.headers = details.headers;
    if (details.sessionLost !== undefined) this.sessionLost = details.sessionLost;
  }
}

/** The link is not open, or not any more. */
export const notOpen = (reason = 'The connection to the upstream is closed.'): LinkError =>
  new LinkError(createFailure('UPSTREAM_UNAVAILABLE', { message: reason, delivery: 'not_sent' }));

/** A connection that could not be made, or that broke. */
export const broken = (error: unknown): LinkError => new LinkError(classify(error));

/** The connection was lost in the middle of an answer. */
export const cutShort = (): LinkError =>
  new LinkError(
    createFailure('CONNECTION_RESET', {
      message: 'The connection to the upstream was lost before the answer was complete.',
    }),
  );

/** The stream on which the answer should have come ended in an orderly way, without it. */
export const unanswered = (): LinkError =>
  new LinkError(
    createFailure('CONNECTION_RESET', {
      message: 'The upstream ended the stream of the answer before the answer came.',
    }),
  );

/** An answer that cannot be used. */
export const unusable = (problem: string, details: FailureDetails = {}): LinkError =>
  new LinkError(
    createFailure('UPSTREAM_INVALID_RESPONSE', {
      message: `The answer of the upstream cannot be used: ${problem}.`,
      ...details,
    }),
  );

/** An answer beyond what is taken. The same request would bring the same flood again. */
export const tooLong = (maxBytes: number): LinkError =>
  unusable(`it is longer than ${maxBytes} bytes (maxMessageBytes); ask for less at a time`, {
    severity: 'permanent',
    retryable: false,
  });

/** The upstream does not know our session any more. */
export const forgotten = (details: LinkErrorDetails = {}): LinkError => {
  const { cause: _, ...failure } = sessionLost(undefined);
  return new LinkError(failure, { ...details, sessionLost: true });
};

/**
 * Statuses with which a server says that it did not take the request at all (RFC 9110 section
 * 15.5, RFC 6585, RFC 8470). Not in it: 400, 409 and 422, which servers also give to what they
 * began, and 503, which a proxy also gives when its server died in the middle.
 */
const NOT_EXECUTED: ReadonlySet<number> = new Set([
  401, 402, 403, 404, 405, 406, 407, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429, 431, 451,
]);

/** The headers of an answer, as `classify` and the policies read them. */
const headersOf = (response: Pick<HttpResponse, 'headers'>): Headers => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined) headers.append(name, value);
  }
  return headers;
};

/**
 * An answer with a status that is no success.
 *
 * @param text what its body says, for statuses that tell the caller what to mend
 * @param inSession whether the request named a session: then 404 says that it is gone
 */
export const refused = (
  response: Pick<HttpResponse, 'status' | 'headers'>,
  origin: string,
  text: string,
  inSession: boolean,
): LinkError => {
  const { status } = response;
  const headers = headersOf(response);
  const gone = status === 404 || (status === 400 && saysSessionLost(text));
  if (inSession && gone) return forgotten({ status, headers });
  const { cause: _, ...failure } = classify({ status, headers, url: origin, message: text });
  const delivery = NOT_EXECUTED.has(status) ? 'refused' : failure.delivery;
  return new LinkError({ ...failure, delivery }, { status, headers });
};
