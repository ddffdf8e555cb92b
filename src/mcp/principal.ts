/**
 * @module
 * Who calls, for everything that must be kept apart: cached answers, rate limits, sessions.
 */
import { createHash } from 'node:crypto';

/** What the MCP SDK tells of an access token; only what is needed here. */
export interface Credentials {
  readonly token?: string;
  readonly clientId?: string;
  readonly extra?: Readonly<Record<string, unknown>>;
}

/**
 * The principal that the door found (`extra.principal`); else one that stands for the access
 * token, since all users of an OAuth client share its id; else that id. The token itself is not
 * kept.
 */
export const principalOf = (credentials: Credentials | undefined): string | undefined => {
  if (credentials === undefined) return undefined;
  const { token, clientId, extra } = credentials;
  if (typeof extra?.principal === 'string') return extra.principal;
  return token ? `token:${createHash('sha256').update(token).digest('base64url')}` : clientId;
};

/**
 * Whom a session belongs to. Not told by the token: that is renewed while the session lasts, and
 * the session's id is a secret of its own.
 */
export const ownerOf = (credentials: Credentials | undefined): string | undefined => {
  const principal = credentials?.extra?.principal;
  return typeof principal === 'string' ? principal : credentials?.clientId;
};
