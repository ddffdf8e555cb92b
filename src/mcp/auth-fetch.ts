/**
 * @module
 * Documents of an authorization server: fetched from where they are said to be and nowhere else,
 * bounded in size, and valid JSON.
 */
import { classify, createFailure, ResilienceError } from '../resilience/failure.ts';

/** A key set of this size has hundreds of keys; nobody has so many. */
const MAX_BYTES = 256 * 1024;

/** A document that came and is of no use. `what` it is, as in "The key set". */
export const unusable = (what: string, problem: string): ResilienceError =>
  new ResilienceError(
    createFailure('UPSTREAM_INVALID_RESPONSE', {
      message: `${what} of the authorization server cannot be used: ${problem}.`,
    }),
  );

/** Asks for a document. The signal holds for the body as well. */
export const ask = (url: string, signal: AbortSignal, accept: string): Promise<Response> =>
  // What another origin serves is not the issuer's.
  fetch(url, { signal, redirect: 'manual', headers: { accept } });

/** What a status other than 200 stands for. The body is given up. */
export const refusalOf = async (response: Response, what: string): Promise<ResilienceError> => {
  await response.body?.cancel();
  // A redirect, or a success without a document, is none of the failures that statuses stand for.
  return response.status < 400
    ? unusable(what, `the answer has status ${response.status}`)
    : new ResilienceError(classify(response));
};

/**
 * Reads the body.
 *
 * @throws ResilienceError for one that is too long or no JSON; what the connection failed with
 */
export const readJson = async (response: Response, what: string): Promise<unknown> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw unusable(what, `it has more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw unusable(what, 'it is not valid JSON');
  }
};
