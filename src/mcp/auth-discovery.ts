/**
 * @module
 * Where an issuer publishes its keys, as its own metadata say (RFC 8414; OpenID Connect Discovery
 * 1.0), for those who know the issuer alone.
 */
import type { Clock } from '../resilience/clock.ts';
import { ResilienceError } from '../resilience/failure.ts';
import { ask, readJson, refusalOf, unusable } from './auth-fetch.ts';
import { isSafeUrl, type JwtSettings } from './auth-settings.ts';
import { isObject } from './jsonrpc-check.ts';

const WHAT = 'The metadata';

/**
 * Where the metadata of an issuer can be, in the order in which clients look for them (2025-11-25,
 * basic/authorization, "Authorization Server Metadata Discovery").
 */
export const metadataUrls = (issuer: string): readonly string[] => {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const inserted = ['oauth-authorization-server', 'openid-configuration'].map(
    (name) => `${origin}/.well-known/${name}${path}`,
  );
  return path === ''
    ? inserted
    : [...inserted, `${origin}${path}/.well-known/openid-configuration`];
};

const quoted = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};

/** The `jwks_uri` of metadata. @throws ResilienceError when it must not be used */
export const jwksUriIn = (metadata: unknown, issuer: string): string => {
  if (!isObject(metadata)) throw unusable(WHAT, 'they are no JSON object');
  // RFC 8414, section 3.3: those of another issuer must not be used.
  if (metadata.issuer !== issuer) {
    const name = quoted(metadata.issuer);
    throw unusable(WHAT, `they are those of the issuer ${name}, letter by letter`);
  }
  const { jwks_uri: uri } = metadata;
  // Only an issuer of this machine may send us to something on this machine.
  const isLocal = issuer.startsWith('http:');
  if (typeof uri !== 'string' || !isSafeUrl(uri) || !(isLocal || uri.startsWith('https:'))) {
    throw unusable(WHAT, `their jwks_uri must be an https URL, and is ${quoted(uri)}`);
  }
  return uri;
};

/**
 * Asks an issuer where its keys are.
 *
 * @throws ResilienceError when none of its metadata can be had or used; what the connection failed
 * with; the signal's reason
 */
const discover = async (issuer: string, signal: AbortSignal): Promise<string> => {
  const failures: ResilienceError[] = [];
  for (const url of metadataUrls(issuer)) {
    const response = await ask(url, signal, 'application/json');
    try {
      if (response.status !== 200) throw await refusalOf(response, WHAT);
      return jwksUriIn(await readJson(response, WHAT), issuer);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ResilienceError)) throw error;
      failures.push(error);
    }
  }
  // One that cannot answer now tells more than one that does not exist; so does a wrong document.
  const worst = failures.find(({ failure }) => failure.retryable) ?? failures[0];
  if (worst?.failure.retryable) throw worst;
  throw unusable(WHAT, `there are none at ${metadataUrls(issuer).join(' and ')}`);
};

/** Where the keys are. */
export interface KeyLocation {
  /** The URL to fetch them from. @throws as `discover` does, when it was never known */
  url(signal: AbortSignal): Promise<string>;
  /** They were not there: they may have moved. */
  missed(): void;
}

/**
 * Where the keys of an issuer are: at `jwksUri`, or where its metadata say. What they said is kept
 * for `maxAge`, and holds for `staleIfError` more while they cannot be had; then they are asked for
 * at most once per `cooldown`.
 */
export const keyLocation = (settings: JwtSettings, clock: Clock): KeyLocation => {
  const { issuer, jwksUri, maxAge, staleIfError, cooldown } = settings;
  if (jwksUri !== undefined) return { url: async () => jwksUri, missed: () => {} };
  let known: { readonly url: string; readonly at: number; until: number } | undefined;
  return {
    url: async (signal) => {
      const now = clock.wallTime();
      if (known && now < known.until) return known.url;
      try {
        const url = await discover(issuer, signal);
        known = { url, at: now, until: now + maxAge };
      } catch (error) {
        if (!known || now >= known.at + maxAge + staleIfError) throw error;
        known.until = now + cooldown;
      }
      return known.url;
    },
    missed: () => {
      if (known) known.until = 0;
    },
  };
};
