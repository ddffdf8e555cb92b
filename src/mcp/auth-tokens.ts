/**
 * @module
 * Static tokens: a handful of long random texts, each of a principal. Only their digests are
 * kept, and all of them are compared, each in the same time whatever it holds.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import type { CheckToken } from './auth-jwt.ts';
import type { ResolvedAuthSettings } from './auth-settings.ts';

/** Shorter than this, a token could be found out by trying. */
const SHORTEST = 16;

type TokenSettings = ResolvedAuthSettings['tokens'][number];

const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/**
 * Checks static tokens.
 *
 * @param granted scopes of a token that names none
 * @throws Error naming each variable that does not hold a token; never its value
 */
export const tokenCheck = (
  tokens: readonly TokenSettings[],
  granted: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CheckToken => {
  const problems: string[] = [];
  const known = tokens.map(({ principal, env: variable, sha256 = '', scopes = granted }) => {
    const token = variable === undefined ? undefined : env[variable]?.trim();
    if (variable !== undefined && (token === undefined || token.length < SHORTEST)) {
      const what = token ? `has fewer than ${SHORTEST} characters` : 'is not set';
      problems.push(
        `the token of "${principal}": the variable ${variable} ${what}; make one with: openssl rand -hex 32`,
      );
    }
    const digest = token === undefined ? Buffer.from(sha256, 'hex') : digestOf(token);
    const info: AuthInfo = {
      token: '',
      clientId: principal,
      scopes: [...scopes],
      extra: { principal: `static:${principal}` },
    };
    return { digest, info };
  });
  if (problems.length > 0) throw new Error(problems.join('; '));
  return async (token) => {
    const given = digestOf(token);
    let found: AuthInfo | undefined;
    for (const { digest, info } of known) {
      if (timingSafeEqual(given, digest)) found = info;
    }
    return found;
  };
};
