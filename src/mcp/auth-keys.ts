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
import { classify, type Failure } from '../resilience/failure.ts';
import type { Pipeline } from '../resilience/pipeline.ts';
import type { PolicySettings } from '../resilience/policy.ts';
import { keyLocation } from './auth-discovery.ts';
import { ask, readJson, refusalOf, unusable } from './auth-fetch.ts';
import type { JwtSettings } from './auth-settings.ts';

/** Finds the key that a token names. */
export type FindKey = JWTVerifyGetKey;

const WHAT = 'The key set';

/** Milliseconds between two lines about keys that cannot be had. */
const LOG_INTERVAL = 60_000;

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

const isKeySet = (value: unknown): value is JSONWebKeySet =>
  typeof value === 'object' && value !== null && 'keys' in value && Array.isArray(value.keys);

/** A set that was fetched, and the look-up in it. */
interface Fetched {
  readonly set: JSONWebKeySet;
  readonly find: FindKey;
}

const fetchSet = async (url: string, signal: AbortSignal): Promise<Fetched> => {
  const response = await ask(url, signal, 'application/jwk-set+json, application/json');
  if (response.status !== 200) throw await refusalOf(response, WHAT);
  const set = await readJson(response, WHAT);
  if (!isKeySet(set)) throw unusable(WHAT, 'it has no list of keys');
  try {
    return { set, find: createLocalJWKSet(set) };
  } catch {
    throw unusable(WHAT, 'its keys are no JWKs');
  }
};

/**
 * Keys of an endpoint: `jwksUri`, or where the metadata of the issuer say. They are fetched when
 * first needed, once for all who wait, again when they are older than `maxAge` or a token names an
 * unknown one (not within `cooldown` of the last fetch). While they cannot be fetched, old ones
 * hold for `staleIfError` more.
 *
 * The function rejects with `KeysUnavailableError` when it cannot tell, and with an error of jose
 * for a key that does not exist.
 */
export const remoteKeys = (
  settings: JwtSettings,
  pipeline: Pipeline,
  clock: Clock,
  log: (line: string) => void,
): FindKey => {
  const { issuer, cooldown, maxAge, staleIfError } = settings;
  const location = keyLocation(settings, clock);
  let saidAt = Number.NEGATIVE_INFINITY;
  const say = ({ code, message }: Failure): void => {
    // What opened the breaker was said before, and tells more.
    if (code === 'CIRCUIT_OPEN' || clock.now() - saidAt < LOG_INTERVAL) return;
    saidAt = clock.now();
    log(`warning: the keys of ${issuer} cannot be had, to check access tokens with: ${message}`);
  };
  let known: { readonly at: number; readonly find: FindKey } | undefined;
  const fetchNow = async (): Promise<Response> => {
    try {
      const { set, find } = await pipeline.execute(async ({ signal }) => {
        const url = await location.url(signal);
        try {
          return await fetchSet(url, signal);
        } catch (error) {
          location.missed();
          throw error;
        }
      });
      known = { at: clock.wallTime(), find };
      return Response.json(set);
    } catch (error) {
      const failure = classify(error);
      say(failure);
      throw new KeysUnavailableError(failure);
    }
  };
  // It asks for nothing itself: where the keys are, the location knows.
  const remote = createRemoteJWKSet(new URL('about:keys'), {
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
      } catch (old) {
        if (old instanceof errors.JWKSMultipleMatchingKeys) throw old;
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
