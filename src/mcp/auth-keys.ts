/**
 * @module
 * The public keys that tokens are checked with: of an issuer's JWKS endpoint, or of a file. An
 * endpoint is a dependency like any other, so that it is called through a pipeline: one that is
 * down or hangs must neither keep every caller waiting nor be taken for a wrong token.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose';
import type { Clock } from '../resilience/clock.ts';
import { classify, createFailure, type Failure, ResilienceError } from '../resilience/failure.ts';
import type { Pipeline } from '../resilience/pipeline.ts';
import type { PolicySettings } from '../resilience/policy.ts';
import type { ResolvedAuthSettings } from './auth-settings.ts';

/** Settings of tokens that an authorization server signed. */
export type JwtSettings = NonNullable<ResolvedAuthSettings['jwt']>;

/** Finds the key that a token names. */
export type FindKey = JWTVerifyGetKey;

/** A key set of this size has hundreds of keys; nobody has so many. */
const MAX_BYTES = 256 * 1024;

/** The keys cannot be had at the moment, so that nothing can be said about a token. */
export class KeysUnavailableError extends Error {
  override readonly name = 'KeysUnavailableError';
  readonly failure: Failure;

  constructor(failure: Failure) {
    super('the keys of the authorization server are not available');
    this.failure = failure;
  }
}

/** What holds for the endpoint. A fetch repeats nothing but a read, so that it may be repeated. */
export const keysPolicy = ({ timeout }: JwtSettings): PolicySettings => ({
  deadline: 2 * timeout + 1_000,
  timeout,
  breaker: { threshold: 2, openDuration: 5_000, openBackoff: 2, maxOpenDuration: 60_000 },
  retry: { maxRetries: 1, baseDelay: 200, maxDelay: 1_000 },
});

const unusable = (problem: string): ResilienceError =>
  new ResilienceError(
    createFailure('UPSTREAM_INVALID_RESPONSE', {
      message: `The key set of the authorization server cannot be used: ${problem}.`,
    }),
  );

const isKeySet = (value: unknown): value is JSONWebKeySet =>
  typeof value === 'object' && value !== null && 'keys' in value && Array.isArray(value.keys);

/** A set that was fetched, and the look-up in it. */
interface Fetched {
  readonly set: JSONWebKeySet;
  readonly find: FindKey;
}

const readSet = async (response: Response): Promise<Fetched> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw unusable(`it has more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  let set: unknown;
  try {
    set = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw unusable('it is not valid JSON');
  }
  if (!isKeySet(set)) throw unusable('it has no list of keys');
  try {
    return { set, find: createLocalJWKSet(set) };
  } catch {
    throw unusable('its keys are no JWKs');
  }
};

const fetchSet = async (url: string, signal: AbortSignal): Promise<Fetched> => {
  const response = await fetch(url, {
    signal,
    // Keys that another origin serves are not those of the issuer.
    redirect: 'manual',
    headers: { accept: 'application/jwk-set+json, application/json' },
  });
  if (response.status === 200) return readSet(response);
  await response.body?.cancel();
  const failure = classify(response);
  // A redirect, or a success without keys, is none of the failures that statuses stand for.
  throw response.status < 400
    ? unusable(`the answer has status ${response.status}`)
    : new ResilienceError(failure);
};

/**
 * Keys of an endpoint. They are fetched when first needed, once for all who wait, again when they
 * are older than `maxAge` or a token names an unknown one (not within `cooldown` of the last
 * fetch). While they cannot be fetched, old ones hold for `staleIfError` more.
 *
 * The function rejects with `KeysUnavailableError` when it cannot tell, and with an error of jose
 * for a key that does not exist.
 */
export const remoteKeys = (
  url: string,
  settings: JwtSettings,
  pipeline: Pipeline,
  clock: Clock,
): FindKey => {
  const { cooldown, maxAge, staleIfError } = settings;
  let known: { readonly at: number; readonly find: FindKey } | undefined;
  const fetchNow = async (): Promise<Response> => {
    try {
      const { set, find } = await pipeline.execute(({ signal }) => fetchSet(url, signal));
      known = { at: clock.wallTime(), find };
      return Response.json(set);
    } catch (error) {
      throw new KeysUnavailableError(classify(error));
    }
  };
  const remote = createRemoteJWKSet(new URL(url), {
    cooldownDuration: cooldown,
    cacheMaxAge: maxAge,
    // The pipeline ends it earlier.
    timeoutDuration: 10 * settings.timeout + 10_000,
    [customFetch]: fetchNow,
  });
  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      if (!(error instanceof KeysUnavailableError) || known === undefined) throw error;
      if (clock.wallTime() - known.at >= maxAge + staleIfError) throw error;
      try {
        return await known.find(header, token);
      } catch {
        // It may be a new one, which only the endpoint knows.
        throw error;
      }
    }
  };
};

/** The keys in a text. @throws Error that says what is wrong with it */
const parseSet = (text: string, file: string): FindKey => {
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    throw new Error(`the key file ${file} is not valid JSON`);
  }
  if (!isKeySet(set) || set.keys.length === 0) {
    throw new Error(`the key file ${file} must hold a JWK Set: {"keys": [...]} with a key in it`);
  }
  try {
    return createLocalJWKSet(set);
  } catch {
    throw new Error(`the key file ${file} must hold a JWK Set: each key an object with "kty"`);
  }
};

/**
 * Keys of a file, which is read again when a token names a key that is not in it, at most once
 * per `cooldown`. While it cannot be read, what was read before holds.
 *
 * @throws Error when the file cannot be used at the start
 */
export const fileKeys = (file: string, settings: JwtSettings, clock: Clock): FindKey => {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`the key file ${file} cannot be read (${code ?? 'unknown error'})`);
  }
  let find = parseSet(text, file);
  let readAt = clock.now();
  return async (header, token) => {
    try {
      return await find(header, token);
    } catch (error) {
      const isNew = error instanceof errors.JWKSNoMatchingKey;
      if (!isNew || clock.now() - readAt < settings.cooldown) throw error;
      readAt = clock.now();
      try {
        find = parseSet(await readFile(file, 'utf8'), file);
      } catch {
        throw error;
      }
      return find(header, token);
    }
  };
};
