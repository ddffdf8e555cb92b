/**
 * @module
 * Access tokens that an authorization server signed: JWTs whose issuer, audience, time and
 * signature are checked (RFC 7519, RFC 8707; RFC 8725 for what must not be believed).
 */
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose';
import type { Clock } from '../resilience/clock.ts';
import { type FindKey, KeysUnavailableError } from './auth-keys.ts';
import type { JwtSettings } from './auth-settings.ts';

/** What a token is good for: `scope` of RFC 9068, or `scp` of Microsoft and Okta. */
const scopesOf = ({ scope, scp }: JWTPayload): string[] => {
  const given = scope ?? scp;
  const list = Array.isArray(given) ? given : typeof given === 'string' ? given.split(' ') : [];
  return list.filter((item): item is string => typeof item === 'string' && item !== '');
};

const textIn = (payload: JWTPayload, names: readonly string[]): string | undefined => {
  for (const name of names) {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
};

/**
 * Keys that are tried for a token which does not say with which one it was signed. An issuer has
 * two or three; somebody who makes tokens up shall not have us compute for long.
 */
const MAX_TRIES = 16;

/** The claims of a token that is good. @throws an error of jose; what `findKey` throws */
const verify = async (
  token: string,
  findKey: FindKey,
  options: JWTVerifyOptions,
): Promise<JWTPayload> => {
  try {
    return (await jwtVerify(token, findKey, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let tries = 0;
    for await (const key of error) {
      tries += 1;
      if (tries > MAX_TRIES) break;
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (other) {
        // Anything else was found out by the right key.
        if (!(other instanceof errors.JWSSignatureVerificationFailed)) throw other;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
};

/** How one kind of token is checked: undefined for one that is not good here. */
export type CheckToken = (token: string) => Promise<AuthInfo | undefined>;

/**
 * Checks JWTs. Nobody is told what was wrong with one: that would only help to make better ones.
 * The token itself is not part of what is returned: no handler can pass it on, or write it down.
 *
 * The function rejects with `KeysUnavailableError` when it cannot tell.
 */
export const jwtCheck = (
  settings: JwtSettings,
  resource: string,
  findKey: FindKey,
  clock: Clock,
): CheckToken => {
  const { issuer, audience = [resource], algorithms, clockTolerance, principalClaim } = settings;
  return async (token) => {
    let payload: JWTPayload;
    try {
      payload = await verify(token, findKey, {
        issuer,
        audience,
        algorithms,
        clockTolerance: clockTolerance / 1_000,
        currentDate: new Date(clock.wallTime()),
        // A token without an end could never be taken back.
        requiredClaims: ['exp'],
      });
    } catch (error) {
      if (error instanceof KeysUnavailableError) throw error;
      return undefined;
    }
    const client = textIn(payload, ['client_id', 'azp']);
    // A client that acts for itself has no subject with some servers.
    const who =
      textIn(payload, [principalClaim]) ?? (principalClaim === 'sub' ? client : undefined);
    if (who === undefined) return undefined;
    return {
      token: '',
      clientId: client ?? who,
      scopes: scopesOf(payload),
      ...(payload.exp !== undefined && { expiresAt: payload.exp }),
      resource: new URL(resource),
      extra: { principal: `jwt:${who}` },
    };
  };
};
